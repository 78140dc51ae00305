"""Asynchronous HTTP requests. `transport` is the blocking equivalent."""

from asyncio import sleep, to_thread
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import httpx2

from .errors import ForgeAPIError
from .listing import AsyncListing, PageRequest
from .request import Request
from .retry_policy import RetryPolicy, TransientFailure, failure_of
from .upload import Upload
from .wire import Wire, log, result_of

T = TypeVar("T")


class AsyncTransport:
    """Sends requests. Use it in one event loop only."""

    def __init__(self, wire: Wire, client: httpx2.AsyncClient | None = None) -> None:
        self.wire = wire
        self._client = client or httpx2.AsyncClient(**wire.client_options())

    async def close(self) -> None:
        await self._client.aclose()

    def with_wire(self, wire: Wire) -> "AsyncTransport":
        """Returns a transport with other settings that uses the same connections."""
        return AsyncTransport(wire, self._client)

    async def run(self, request: Request[T], retry_policy: RetryPolicy | None = None) -> T:
        """Sends a request, with retries. Raises ForgeHTTPError and ForgeAPIError."""
        retry_policy = retry_policy or self.wire.retry_policy()
        request = self.wire.with_idempotency_key(request)
        is_again = False
        while True:
            try:
                return result_of(request, await self._send(request, retry_policy.try_s()))
            except TransientFailure as failure:
                await self.pause(retry_policy.pause_s(failure), failure)
                is_again = True
            except ForgeAPIError as refusal:
                applied_check = request.applied_check
                if not applied_check or not is_again or refusal.code not in applied_check.codes:
                    raise
                found = await self.run(applied_check.state_request)
                if not applied_check.is_ours(found):
                    raise
                return found

    def listing(self, pages: PageRequest[T]) -> AsyncListing[T]:
        return AsyncListing(self.run, pages)

    async def _send(self, request: Request[Any], at_most_s: float | None) -> httpx2.Response:
        with self.wire.connection(request):
            options = self.wire.send_options(request, at_most_s=at_most_s)
            if isinstance(request.body, Upload):
                options["content"] = _read_in_thread(request.body.pieces())
            return await self._client.request(request.method, request.path, **options)

    @asynccontextmanager
    async def open(
        self, request: Request[Any], read_timeout_s: float | None = None
    ) -> AsyncIterator[httpx2.Response]:
        """Opens a response for streaming. Does not retry: may raise TransientFailure."""
        options = self.wire.send_options(request, read_timeout_s, at_most_s=read_timeout_s)
        with self.wire.connection(request):
            async with self._client.stream(request.method, request.path, **options) as response:
                if not response.is_success and response.status_code not in request.other_statuses:
                    await response.aread()
                    raise failure_of(request, response)
                yield response

    async def pause(self, seconds: float, failure: TransientFailure | None = None) -> None:
        if failure:
            log.info("retrying in %.1f s: %s", seconds, failure)
        await sleep(seconds)


async def _read_in_thread(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Reads a file in a thread, because disk access would block the event loop."""
    while piece := await to_thread(next, pieces, b""):
        yield piece
