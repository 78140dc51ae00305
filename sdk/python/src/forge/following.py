"""Follows an event stream. Resumes from the last received event after an interruption."""

from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import aclosing, closing
from time import monotonic
from typing import Any

import httpx2

from .async_transport import AsyncTransport
from .errors import ForgeHTTPError
from .request import Request
from .retry_policy import RetryPolicy, TransientFailure
from .sse import EventDecoder, ServerSentEvent
from .transport import Transport

KEEP_ALIVE_S = 15.0
"""The server sends data at least this often, even if there are no events."""
SILENCE_S = 2 * KEEP_ALIVE_S + 5
"""After this time without data, the connection counts as lost."""
OUTAGE_S = 300.0
"""How long to retry during an outage. A server's restart takes less time."""
_LIVED_S = 5.0
GONE = ServerSentEvent("gone", "{}")
"""Represents the server's response that the stream has ended."""


class Following:
    """The state of a stream, kept across connections."""

    def __init__(self, path: str, query: dict[str, Any], last_event_id: str | None = None) -> None:
        self.path = path
        self._query = query
        self.last_event_id = last_event_id
        self.has_received = False
        """Whether the current connection has received data."""
        self._decoder = EventDecoder()
        self._opened_s = 0.0

    def request(self) -> Request[None]:
        """Returns the request for a new connection. Resets all state except the last event's id."""
        self._decoder = EventDecoder()
        self._opened_s = monotonic()
        self.has_received = False
        headers = {"Accept": "text/event-stream", "Accept-Encoding": "identity"}
        if self.last_event_id:
            headers["Last-Event-ID"] = self.last_event_id
        return Request("GET", self.path, lambda _: None, self._query, headers=headers)

    def is_over(self, response: httpx2.Response) -> bool:
        """Whether the server says that the stream has ended.

        Raises ForgeHTTPError if the response is something other than an event stream.
        """
        if response.status_code == 204:
            return True
        kind = response.headers.get("content-type", "")
        if not kind.startswith("text/event-stream"):
            raise ForgeHTTPError(
                f"{self.path}: the response is {kind or 'empty'}, not an event stream"
            )
        return False

    def receive(self, chunk: bytes) -> Iterator[ServerSentEvent]:
        self.has_received = True
        for event in self._decoder.feed(chunk):
            yield event
            # Runs only when the caller asks for the next event. If the caller stops before that,
            # the next connection receives the current event again.
            self.last_event_id = event.id or self.last_event_id

    def interrupted(self, retry_policy: RetryPolicy) -> TransientFailure:
        """Returns the TransientFailure for a connection that ended before the stream's end.

        Also resets the retry policy if the connection lasted longer than _LIVED_S. Such a
        connection counts as working, even if no event arrived.
        """
        if monotonic() - self._opened_s > _LIVED_S:
            retry_policy.reset()
        return TransientFailure(ForgeHTTPError(f"{self.path}: the stream was interrupted"))


def connect(
    transport: Transport, following: Following, silence_s: float = SILENCE_S
) -> Generator[ServerSentEvent | None, None, None]:
    """Yields the events of one connection, and None for each received chunk of bytes.

    The None lets the caller stop even if no event arrives. Yields `GONE` if the stream has ended.
    May raise TransientFailure.
    """
    with transport.open(following.request(), silence_s) as response:
        if following.is_over(response):
            yield GONE
            return
        for chunk in response.iter_bytes():
            yield None
            yield from following.receive(chunk)


async def connect_async(
    transport: AsyncTransport, following: Following, silence_s: float = SILENCE_S
) -> AsyncGenerator[ServerSentEvent | None, None]:
    """The asynchronous equivalent of `connect`."""
    async with transport.open(following.request(), silence_s) as response:
        if following.is_over(response):
            yield GONE
            return
        async for chunk in response.aiter_bytes():
            yield None
            for event in following.receive(chunk):
                yield event


def follow(transport: Transport, following: Following) -> Generator[ServerSentEvent, None, None]:
    """Yields all events. Reconnects after interruptions. Raises ForgeError.

    The caller must stop after the stream's last event: if the server closes the connection,
    `follow` reconnects.
    """
    retry_policy = transport.wire.retry_policy(OUTAGE_S)
    while True:
        try:
            with closing(connect(transport, following)) as events:
                for event in events:
                    if event is GONE:
                        return
                    if event:
                        retry_policy.reset()
                        yield event
            raise following.interrupted(retry_policy)
        except TransientFailure as failure:
            transport.pause(retry_policy.pause_s(failure), failure)


async def follow_async(
    transport: AsyncTransport, following: Following
) -> AsyncGenerator[ServerSentEvent, None]:
    """The asynchronous equivalent of `follow`."""
    retry_policy = transport.wire.retry_policy(OUTAGE_S)
    while True:
        try:
            async with aclosing(connect_async(transport, following)) as events:
                async for event in events:
                    if event is GONE:
                        return
                    if event:
                        retry_policy.reset()
                        yield event
            raise following.interrupted(retry_policy)
        except TransientFailure as failure:
            await transport.pause(retry_policy.pause_s(failure), failure)
