"""Paginated lists."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any, Generic, TypeVar

from .errors import ForgeError, ForgeHTTPError
from .models.base import Model, html_table
from .request import Parse, Request, parsed

T = TypeVar("T")

MAX_PAGE = 200
_SHOWN = 20
"""Number of entries that a notebook shows."""


@dataclass(frozen=True)
class Page(Generic[T]):
    """One page of a list."""

    items: tuple[T, ...]
    has_more: bool
    next_cursor: str | None


@dataclass(frozen=True)
class PageRequest(Generic[T]):
    path: str
    name: str
    """Name of the response field with the entries."""
    parse: Parse[T]
    query: Mapping[str, Any]
    limit: int | None = None
    """Maximum number of entries in total."""
    page_size: int | None = None

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 0:
            raise ForgeError("limit must not be negative")

    def page(self, after: str | None, left: int | None) -> Request[Page[T]]:
        size = self.page_size
        if left is not None:
            size = min(size or MAX_PAGE, left, MAX_PAGE)
        query = {**self.query, "limit": size, "after": after}
        return Request("GET", self.path, self._parse_page, query)

    def _parse_page(self, answer: Mapping[str, Any]) -> Page[T]:
        entries = answer.get(self.name)
        if not isinstance(entries, list):
            raise ForgeHTTPError(f"{self.path}: {self.name} in the response is not a list")
        cursor = answer.get("next_cursor")
        has_more = answer.get("has_more") is True
        if has_more and not (isinstance(cursor, str) and cursor):
            raise ForgeHTTPError(f"{self.path}: the response has_more but no next_cursor")
        return Page(tuple(parsed(self.parse, entry) for entry in entries), has_more, cursor)


class _Iteration(Generic[T]):
    """The state of one iteration."""

    def __init__(self, pages: PageRequest[T]) -> None:
        self._pages = pages
        self._after: str | None = None
        self._left = pages.limit
        self.is_over = self._left == 0

    def request(self) -> Request[Page[T]]:
        return self._pages.page(self._after, self._left)

    def take(self, page: Page[T]) -> Page[T]:
        if self._left is not None:
            page = Page(page.items[: self._left], page.has_more, page.next_cursor)
            self._left -= len(page.items)
        if page.has_more and page.next_cursor == self._after:
            raise ForgeHTTPError("a next_cursor leads to the same page")
        self._after = page.next_cursor
        self.is_over = not page.has_more or self._left == 0
        return page


class Listing(Generic[T]):
    """An iterable list. Fetches pages on demand. Each iteration starts from the beginning."""

    def __init__(self, run: Callable[[Request[Page[T]]], Page[T]], pages: PageRequest[T]) -> None:
        self._run = run
        self._pages = pages

    def __iter__(self) -> Iterator[T]:
        for page in self.pages():
            yield from page.items

    def pages(self) -> Iterator[Page[T]]:
        """Iterates over pages."""
        iteration = _Iteration(self._pages)
        while not iteration.is_over:
            yield iteration.take(self._run(iteration.request()))

    def __repr__(self) -> str:
        return f"<{self._pages.name}: iterate over it, or use list()>"

    def _repr_html_(self) -> str:
        """Shows the first entries as a table in notebooks."""
        try:
            page = next(self.pages(), None)
        except ForgeError as error:
            return escape(f"{self!r} {error}")
        items = page.items[:_SHOWN] if page else ()
        models = [item for item in items if isinstance(item, Model)]
        has_more = page is not None and (page.has_more or len(page.items) > len(models))
        return html_table(self._pages.name, models, "and more" if has_more else "")


class AsyncListing(Generic[T]):
    """A list for `async for`. Fetches pages on demand."""

    def __init__(self, run: Callable[[Request[Page[T]]], Any], pages: PageRequest[T]) -> None:
        self._run = run
        self._pages = pages

    async def __aiter__(self) -> AsyncIterator[T]:
        async for page in self.pages():
            for item in page.items:
                yield item

    async def pages(self) -> AsyncIterator[Page[T]]:
        """Iterates over pages."""
        iteration = _Iteration(self._pages)
        while not iteration.is_over:
            yield iteration.take(await self._run(iteration.request()))

    def __repr__(self) -> str:
        return f"<{self._pages.name}: iterate over it with `async for`>"
