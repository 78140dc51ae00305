"""What is asked of the API, before anything is sent: the same for both clients."""

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


@dataclass(frozen=True)
class Settled(Generic[T]):
    """How to tell whether a try that got no answer did what the next one is refused for."""

    codes: Set[str]
    """Refusals that say that nothing is left to do."""
    look: Request[T]
    is_ours: Callable[[T], bool]


@dataclass(frozen=True)
class Request(Generic[T]):
    method: str
    path: str
    parse: Callable[[Any], T]
    """Makes the result of the answer's JSON."""
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None
    """Sent as JSON, but for an Upload."""
    headers: Mapping[str, str] = field(default_factory=dict)
    creates: bool = False
    """It is sent with an Idempotency-Key: once made, it may be sent again without harm."""
    idempotency_key: str | None = None
    is_repeatable: bool = True
    """False: what may have arrived is not sent again."""
    is_text: bool = False
    """The answer is text, not JSON."""
    is_whole: bool = False
    """`parse` gets the whole answer, with its headers."""
    also: Set[int] = frozenset()
    """What is an answer beside success."""
    read_timeout_s: float | None = None
    """Where an answer may take longer than usual."""
    settled: Settled[T] | None = None

    def slow(self) -> Request[T]:
        """The same, where the answer has to be worked out."""
        return replace(self, read_timeout_s=120.0)


def get(path: str, parse: Callable[[Any], T], **query: object) -> Request[T]:
    return Request("GET", path, parse, query)


def create(
    path: str, parse: Callable[[Any], T], body: Mapping[str, Any], idempotency_key: str | None
) -> Request[T]:
    """A POST that makes something, once."""
    return Request(
        "POST",
        path,
        parse,
        body=without_none(body),
        creates=True,
        idempotency_key=idempotency_key,
    )


def post(path: str, parse: Callable[[Any], T], **body: object) -> Request[T]:
    """A POST that changes what is there. Fields that are None are not sent."""
    return Request("POST", path, parse, body=without_none(body))


def without_none(fields: Mapping[str, Any]) -> Json:
    """Only what was given: what is left out has the API's own default."""
    return {name: value for name, value in fields.items() if value is not None}


def path_of(template: str, *ids: object) -> str:
    """`path_of("/api/jobs/{}", job_id)`. Raises ForgeError for what can't be an id."""
    return template.format(*(_segment(template, each) for each in ids))


def _segment(template: str, value: object) -> str:
    # It becomes part of an address: ".." or "a/b" would be another one.
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", value):
        thing = re.findall(r"([a-z-]+)s/\{\}", template)[0]
        article = "an" if thing[0] in "aeiou" else "a"
        raise ForgeError(f"{value!r} is not the id of {article} {thing}")
    return quote(value, safe="")


def query_items(query: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Lists are repeated; times are ISO 8601; what is None is left out."""
    items: list[tuple[str, str]] = []
    for name, value in query.items():
        values = value if isinstance(value, (list, tuple, set, frozenset)) else [value]
        items += [(name, _as_text(each)) for each in values if each is not None]
    return items


def _as_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return time_text(value)
    return str(value)


def time_text(value: datetime | str) -> str:
    """A moment as the API takes it; a text goes as it is.

    Raises ForgeError for a time without a zone: the API's are UTC, a notebook's often are not.
    """
    if isinstance(value, str):
        return value
    if value.tzinfo is None:
        raise ForgeError(f"{value!r} has no time zone: use datetime.now(timezone.utc) or similar")
    return value.isoformat()
