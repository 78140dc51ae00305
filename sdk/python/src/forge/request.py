"""Descriptions of API requests, shared by both clients."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Generic, TypeVar
from urllib.parse import quote

from .errors import ForgeError

T = TypeVar("T")

Json = dict[str, Any]
Parse = Callable[[Any], T] | type[T]
"""A function that converts the response's content, or a model class."""


def parsed(parse: Parse[T], content: Any) -> T:  # noqa: ANN401 (JSON)
    """Parses the content. If `parse` is a model, raises ValidationError for invalid content."""
    validate: Any = getattr(parse, "model_validate", parse)
    result: T = validate(content)
    return result


@dataclass(frozen=True)
class AppliedCheck(Generic[T]):
    """Detects that an earlier try was applied although its response was lost.

    If a retry fails with one of `codes`, the client reads the current state by `state_request`. If
    `is_ours` returns True for this state, the client treats the retry as successful.
    """

    codes: Set[str]
    """Error codes that mean that the change may already be applied."""
    state_request: Request[T]
    is_ours: Callable[[T], bool]


@dataclass(frozen=True)
class Request(Generic[T]):
    method: str
    path: str
    parse: Parse[T]
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None
    """Sent as JSON, except for an Upload."""
    headers: Mapping[str, str] = field(default_factory=dict)
    creates: bool = False
    """Sent with an Idempotency-Key, so that a retry is safe."""
    idempotency_key: str | None = None
    is_repeatable: bool = True
    """False: not retried if the request may have arrived."""
    is_text: bool = False
    """The response is text, not JSON."""
    is_whole: bool = False
    """`parse` gets the whole response, with its headers."""
    other_statuses: Set[int] = frozenset()
    """Additional status codes that are not errors."""
    read_timeout_s: float | None = None
    """Time-out for the response, if it may take longer than usual."""
    applied_check: AppliedCheck[T] | None = None

    def slow(self) -> Request[T]:
        """Returns a copy with a longer time-out, for a response that takes long to compute."""
        return replace(self, read_timeout_s=120.0)


def get(path: str, parse: Parse[T], **query: object) -> Request[T]:
    return Request("GET", path, parse, query)


def get_list(path: str, name: str, parse: Parse[T], **query: object) -> Request[list[T]]:
    """A GET whose result is the list in the response's field `name`."""
    return get(path, lambda answer: [parsed(parse, each) for each in answer.get(name, [])], **query)


def create(
    path: str, parse: Parse[T], body: Mapping[str, Any], idempotency_key: str | None
) -> Request[T]:
    """A POST that creates something. Its Idempotency-Key makes retries safe."""
    return Request(
        "POST", path, parse, body=without_none(body), creates=True, idempotency_key=idempotency_key
    )


def post(path: str, parse: Parse[T], **body: object) -> Request[T]:
    """A POST that changes something that exists. Leaves out fields that are None."""
    return Request("POST", path, parse, body=without_none(body))


def without_none(fields: Mapping[str, Any]) -> Json:
    """Leaves out None values, so that the API's defaults apply."""
    return {name: value for name, value in fields.items() if value is not None}


def path_of(template: str, *ids: object) -> str:
    """Inserts ids: `path_of("/api/jobs/{}", job_id)`. Raises ForgeError for an invalid id."""
    return template.format(*(_segment(template, each) for each in ids))


def _segment(template: str, value: object) -> str:
    # The id becomes part of the URL, and ".." or "a/b" would change the path.
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", value):
        thing = re.findall(r"([a-z-]+)s/\{\}", template)[0]
        article = "an" if thing[0] in "aeiou" else "a"
        raise ForgeError(f"{value!r} is not the id of {article} {thing}")
    return quote(value, safe="")


def query_items(query: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Builds the parameters of a query. Omits parameters whose value is None.

    A list becomes one parameter for each item. Times are formatted in ISO 8601.
    """
    items: list[tuple[str, str]] = []
    for name, value in query.items():
        values = value if isinstance(value, (list, tuple, set, frozenset)) else [value]
        items += [(name, _as_text(each)) for each in values if each is not None]
    return items


def _as_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(time_text(value) if isinstance(value, datetime) else value)


def time_text(value: datetime | str | None) -> str | None:
    """Formats a time for the API. Strings and None are not changed.

    Raises ForgeError for a time without a time zone, because the caller might not mean UTC.
    """
    if value is None or isinstance(value, str):
        return value
    if value.tzinfo is None:
        raise ForgeError(f"{value!r} has no time zone; use datetime.now(timezone.utc) or similar")
    return value.isoformat()
