"""Requests over HTTP, by awaiting. `transport` is the same, by blocking."""

from asyncio import sleep, to_thread
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import httpx2

from .errors import ForgeAPIError
from .listing import AsyncListing, PageRequest
from .request import Request
from .retries import Passing, Patience
from .upload import Upload
from .wire import Wire, failure_of, log, result_of

T = TypeVar("T")


class AsyncTransport:
    """For one event loop."""

    def __init__(self, wire: Wire, client: httpx2.AsyncClient | None = None) -> None:
        self.wire = wire
        self._client = client or httpx2.AsyncClient(**wire.client_options())

    async def close(self) -> None:
        await self._client.aclose()

    def with_wire(self, wire: Wire) -> "AsyncTransport":
        """Another way to use the same connections."""
        return AsyncTransport(wire, self._client)

    async def run(self, request: Request[T], patience: Patience | None = None) -> T:
        """Raises ForgeHTTPError and ForgeAPIError."""
        patience = patience or self.wire.patience()
        request = self.wire.ready(request)
        is_again = False
        while True:
            try:
                return result_of(request, await self._send(request, patience.try_s()))
            except Passing as passing:
                await self.pause(patience.pause_s(passing), passing)
                is_again = True
            except ForgeAPIError as refusal:
                settled = request.settled
                if not settled or not is_again or refusal.code not in settled.codes:
                    raise
                found = await self.run(settled.look)
                if not settled.is_ours(found):
                    raise
                return found

    def listing(self, pages: PageRequest[T]) -> AsyncListing[T]:
        return AsyncListing(self.run, pages)

    async def _send(self, request: Request[Any], at_most_s: float | None) -> httpx2.Response:
        try:
            options = self.wire.send_options(request, at_most_s=at_most_s)
            if isinstance(request.body, Upload):
                options["content"] = _read_in_thread(request.body.pieces())
            return await self._client.request(request.method, request.path, **options)
        except httpx2.RequestError as error:
            raise self.wire.failure_of_connection(request, error) from error

    @asynccontextmanager
    async def open(
        self, request: Request[Any], read_timeout_s: float | None = None
    ) -> AsyncIterator[httpx2.Response]:
        """An answer to be read in pieces; tried once. Raises Passing too."""
        options = self.wire.send_options(request, read_timeout_s, at_most_s=read_timeout_s)
        try:
            async with self._client.stream(request.method, request.path, **options) as response:
                if not response.is_success:
                    await response.aread()
                    raise failure_of(request, response)
                yield response
        except httpx2.RequestError as error:
            raise self.wire.failure_of_connection(request, error) from error

    async def pause(self, seconds: float, passing: Passing | None = None) -> None:
        if passing:
            log.info("once more in %.1f s: %s", seconds, passing)
        await sleep(seconds)


async def _read_in_thread(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """A disk would hold up the event loop."""
    while piece := await to_thread(next, pieces, b""):
        yield piece
