"""Defines each method once for both clients.

A resource's method builds a Request: what to send and how to parse the response. The decorators
`operation` and `listing` turn such a method into one that sends the request. On a resource of
`Forge`, the method blocks and returns the result; on a resource of `AsyncForge`, it returns an
awaitable. Signatures and types are preserved.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, cast, overload

from .listing import AsyncListing, Listing, PageRequest
from .request import Request


class Sync:
    """Type argument of `Resource` for the resources of `Forge`. Has no instances."""


class Async:
    """Type argument of `Resource` for the resources of `AsyncForge`. Has no instances."""


M = TypeVar("M", bound="Sync | Async")
P = ParamSpec("P")
T = TypeVar("T")


class Resource(Generic[M]):
    """A part of a client, e.g. `client.jobs`."""

    _transport: Any
    """A Transport if M is Sync, an AsyncTransport if M is Async."""

    def __init__(self, transport: object) -> None:
        self._transport = transport


class operation(Generic[P, T]):
    """Decorates a method that sends one request and returns one result."""

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
    """Decorates a method that returns a paginated list as one iterable."""

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
            return instance._transport.listing(self._build(instance, *args, **kwargs))

        cast(Any, call).__signature__ = self._signature
        return call


def _without_self(build: Callable[..., Any]) -> inspect.Signature:
    """Returns the signature that help() shows: without `self`."""
    whole = inspect.signature(build)
    return whole.replace(parameters=list(whole.parameters.values())[1:])
