"""The stream of a tenant's events."""

from collections import OrderedDict
from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing, closing

from pydantic import ValidationError

from .async_transport import AsyncTransport
from .errors import ForgeError, ForgeHTTPError
from .following import Following, follow, follow_async
from .models import TenantEvent
from .sse import ServerSentEvent
from .transport import Transport

_KNOWN = 10_000


class _Reader:
    """Drops duplicates: a resumed stream sends some events again."""

    def __init__(self, limit: int | None) -> None:
        if limit is not None and limit < 0:
            raise ForgeError("limit must not be negative")
        self.following = Following("/api/events", {})
        self._known: OrderedDict[str, None] = OrderedDict()
        self._left = limit

    @property
    def is_over(self) -> bool:
        return self._left == 0

    def read(self, sent: ServerSentEvent) -> TenantEvent | None:
        if sent.id and sent.event != "ready":
            if sent.id in self._known:
                return None
            self._known[sent.id] = None
            if len(self._known) > _KNOWN:
                self._known.popitem(last=False)
        try:
            event = TenantEvent.model_validate({**sent.json(), "event": sent.event})
        except ValidationError:
            raise ForgeHTTPError("/api/events: an event is invalid") from None
        if self._left is not None:
            self._left -= 1
        return event


def tenant_events(
    transport: Transport, limit: int | None = None
) -> Generator[TenantEvent, None, None]:
    """Yields events. Reconnects after interruptions. Ends after `limit` events.

    A `ready` event with `resumed=False` says that some events may have been missed.
    """
    reader = _Reader(limit)
    if reader.is_over:
        return
    with closing(follow(transport, reader.following)) as events:
        for sent in events:
            if event := reader.read(sent):
                yield event
            if reader.is_over:
                return


async def tenant_events_async(
    transport: AsyncTransport, limit: int | None = None
) -> AsyncGenerator[TenantEvent, None]:
    """The asynchronous equivalent of `tenant_events`."""
    reader = _Reader(limit)
    if reader.is_over:
        return
    async with aclosing(follow_async(transport, reader.following)) as events:
        async for sent in events:
            if event := reader.read(sent):
                yield event
            if reader.is_over:
                return
