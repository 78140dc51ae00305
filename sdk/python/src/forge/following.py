"""A stream of events through cuts: each connection goes on after the last event that arrived."""

from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import aclosing, closing
from time import monotonic
from typing import Any

import httpx2

from .async_transport import AsyncTransport
from .errors import ForgeHTTPError
from .request import Request
from .retries import Passing, Patience
from .sse import EventDecoder, ServerSentEvent
from .transport import Transport

KEEP_ALIVE_S = 15.0
"""How often the server sends something, whatever happens."""
SILENCE_S = 2 * KEEP_ALIVE_S + 5
"""After that, the connection is taken for dead."""
OUTAGE_S = 300.0
"""For so long a follower goes on trying while nothing answers: a server's restart is shorter."""
_LIVED_S = 5.0
GONE = ServerSentEvent("gone", "{}")
"""Stands for the answer that nothing more will come."""


class Following:
    """What is known of a stream, from one connection to the next."""

    def __init__(self, path: str, query: dict[str, Any], last_event_id: str | None = None) -> None:
        self.path = path
        self._query = query
        self.last_event_id = last_event_id
        self.has_heard = False
        """Something arrived on the present connection."""
        self._decoder = EventDecoder()
        self._opened_s = 0.0

    def request(self) -> Request[None]:
        """Begins a connection."""
        self._decoder = EventDecoder()
        self._opened_s = monotonic()
        self.has_heard = False
        headers = {"Accept": "text/event-stream", "Accept-Encoding": "identity"}
        if self.last_event_id:
            headers["Last-Event-ID"] = self.last_event_id
        return Request("GET", self.path, lambda _: None, self._query, headers=headers)

    def is_over(self, response: httpx2.Response) -> bool:
        """Whether the server says that nothing more will come. Raises where it isn't a stream."""
        if response.status_code == 204:
            return True
        kind = response.headers.get("content-type", "")
        if not kind.startswith("text/event-stream"):
            raise ForgeHTTPError(f"{self.path}: the answer is {kind or 'nothing'}, not events")
        return False

    def receive(self, chunk: bytes) -> Iterator[ServerSentEvent]:
        self.has_heard = True
        for event in self._decoder.feed(chunk):
            yield event
            # Only after it was taken: who gives up in between, gets it again.
            self.last_event_id = event.id or self.last_event_id

    def cut(self, patience: Patience) -> Passing:
        """The connection has ended, and the story has not."""
        if monotonic() - self._opened_s > _LIVED_S:
            patience.renew()
        return Passing(ForgeHTTPError(f"{self.path}: the stream ends before its end"))


def connect(
    transport: Transport, following: Following, silence_s: float = SILENCE_S
) -> Generator[ServerSentEvent | None, None, None]:
    """The events of one connection; None for each sign of life. Raises Passing too.

    `GONE` says that nothing more will come.
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
    """The same, by awaiting."""
    async with transport.open(following.request(), silence_s) as response:
        if following.is_over(response):
            yield GONE
            return
        async for chunk in response.aiter_bytes():
            yield None
            for event in following.receive(chunk):
                yield event


def follow(transport: Transport, following: Following) -> Generator[ServerSentEvent, None, None]:
    """All events, through cuts; the caller stops after the last. Raises ForgeError."""
    patience = transport.wire.patience(OUTAGE_S)
    while True:
        try:
            with closing(connect(transport, following)) as events:
                for event in events:
                    if event is GONE:
                        return
                    if event:
                        patience.renew()
                        yield event
            raise following.cut(patience)
        except Passing as passing:
            transport.pause(patience.pause_s(passing), passing)


async def follow_async(
    transport: AsyncTransport, following: Following
) -> AsyncGenerator[ServerSentEvent, None]:
    """The same, by awaiting."""
    patience = transport.wire.patience(OUTAGE_S)
    while True:
        try:
            async with aclosing(connect_async(transport, following)) as events:
                async for event in events:
                    if event is GONE:
                        return
                    if event:
                        patience.renew()
                        yield event
            raise following.cut(patience)
        except Passing as passing:
            await transport.pause(patience.pause_s(passing), passing)
