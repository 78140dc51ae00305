"""One method, two clients.

A resource's method says what to send and how to read the answer, and returns that as a Request.
These decorators turn it into a method that does it: on a resource of `Forge` it blocks and returns
the result, on one of `AsyncForge` it returns something to await. What is known of its parameters
and result, to a person and to a type checker, stays.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, cast, overload

from .listing import AsyncListing, Listing, PageRequest
from .request import Request


class Sync:
    """Marks resources of `Forge`."""


class Async:
    """Marks resources of `AsyncForge`."""


M = TypeVar("M", bound="Sync | Async")
P = ParamSpec("P")
T = TypeVar("T")


class Resource(Generic[M]):
    """A part of a client, e.g. `client.jobs`."""

    _transport: Any
    """A Transport where M is Sync, an AsyncTransport where it is Async."""

    def __init__(self, transport: object) -> None:
        self._transport = transport


class operation(Generic[P, T]):
    """One request, one result."""

    def __init__(self, build: Callable[Concatenate[Any, P], Request[T]]) -> None:
        self._build = build
        functools.update_wrapper(cast(Any, self), build)
        self._signature = _without_self(build)

    @overload
    def __get__(self, instance: None, owner: type) -> operation[P, T]: ...
    @overload
    def __get__(self, instance: Resource[Sync], owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(
        self, instance: Resource[Async], owner: type
    ) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self

        @functools.wraps(self._build)
        def call(*args: P.args, **kwargs: P.kwargs) -> object:
            return instance._transport.run(self._build(instance, *args, **kwargs))

        cast(Any, call).__signature__ = self._signature
        return call


class listing(Generic[P, T]):
    """A list that comes in pages, and is iterated over as one."""

    def __init__(self, build: Callable[Concatenate[Any, P], PageRequest[T]]) -> None:
        self._build = build
        functools.update_wrapper(cast(Any, self), build)
        self._signature = _without_self(build)

    @overload
    def __get__(self, instance: None, owner: type) -> listing[P, T]: ...
    @overload
    def __get__(self, instance: Resource[Sync], owner: type) -> Callable[P, Listing[T]]: ...
    @overload
    def __get__(self, instance: Resource[Async], owner: type) -> Callable[P, AsyncListing[T]]: ...
    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self

        @functools.wraps(self._build)
        def call(*args: P.args, **kwargs: P.kwargs) -> object:
            transport = instance._transport
            return transport.listing(self._build(instance, *args, **kwargs))

        cast(Any, call).__signature__ = self._signature
        return call


def _without_self(build: Callable[..., Any]) -> inspect.Signature:
    """So that help() shows the parameters that a caller gives."""
    whole = inspect.signature(build)
    return whole.replace(parameters=list(whole.parameters.values())[1:])
