"""Waits for a job's end: by events if they arrive, else by polling.

Each round polls the job once, then listens to one event connection. The round ends when an event
says that the job has ended, when the connection ends, or when the deadline is near. A connection
that delivers nothing (for example behind a buffering proxy) delays the next poll. After two
such connections in a row, only every 12th round opens a connection. The other rounds only poll.
"""

from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing, closing
from time import monotonic

from pydantic import ValidationError

from .async_transport import AsyncTransport
from .errors import ForgeAPIError, ForgeHTTPError
from .following import GONE, KEEP_ALIVE_S, Following, connect, connect_async
from .models import BaseJob, JobEvent
from .request import path_of
from .retry_policy import Deadline, TransientFailure
from .sse import ServerSentEvent
from .transport import Transport
from .wire import log

_SILENCE_S = KEEP_ALIVE_S + 5
_MAX_SILENT = 2
"""After this number of consecutive rounds without data, most rounds open no connection."""
_RETRY_EVERY = 12
"""After `_MAX_SILENT` rounds without data, only every 12th round opens a connection."""


class Watch:
    """Decides when one wait listens to events, and when it polls.

    Used by `Forge` and `AsyncForge`. Does no I/O.
    """

    def __init__(self, job_id: str, poll_interval: float, timeout: float | None) -> None:
        self.deadline = Deadline(job_id, poll_interval, timeout)
        self._round_s = 0.0
        self._silent_rounds = 0
        """Number of consecutive rounds in which no event connection delivered anything."""
        self._silence_s = _SILENCE_S
        self._has_ended = False
        """Whether an event said that the job has ended."""
        self._has_polled_at_end = False
        """Whether an event about the job's end has already caused a poll without a pause. If this
        poll did not show the end, all later polls wait for the poll interval."""
        self.following = Following(path_of("/api/jobs/{}/events", job_id), {})

    def begin(self, job: BaseJob) -> None:
        """Records the poll of a round. Call it before you open the round's event connection.

        `job`: the result of the poll. Raises WaitTimeoutError after the deadline.
        """
        self.deadline.check(str(job.status))
        self._round_s = monotonic()

    @property
    def listens(self) -> bool:
        return self._silent_rounds < _MAX_SILENT or self._silent_rounds % _RETRY_EVERY == 0

    def silence_s(self) -> float:
        """Returns the read time-out of the next event connection, in seconds."""
        self._silence_s = max(0.05, min(_SILENCE_S, self.deadline.left_s()))
        return self._silence_s

    def receive(self, event: ServerSentEvent | None) -> JobEvent | None:
        """Handles an item that `connect` yields. Returns the job event, or None for other items.

        The other items are None (a chunk was received) and `GONE` (the stream has ended). Raises
        ForgeHTTPError if the event is invalid.
        """
        self._has_ended = self._has_ended or event is GONE
        if event is None or event is GONE:
            return None
        found = job_event(event)
        self._has_ended = found.status is not None and found.status.is_final
        return found

    def is_round_over(self) -> bool:
        """Whether to end this round."""
        # A connection without data times out only after `_silence_s`. If the deadline is earlier,
        # end the round now, because the wait might otherwise exceed the deadline.
        return self._has_ended or self.deadline.left_s() < self._silence_s

    def end(self) -> float:
        """Ends a round. Returns how long to pause before the next one."""
        self._silent_rounds = (
            0 if self.following.has_received and self.listens else self._silent_rounds + 1
        )
        if self._has_ended and not self._has_polled_at_end:
            self._has_polled_at_end = True
            return 0.0
        return self.deadline.pause_s(monotonic() - self._round_s)


def job_event(event: ServerSentEvent) -> JobEvent:
    """Parses a job event. Raises ForgeHTTPError if it is invalid."""
    try:
        return JobEvent.model_validate({**event.json(), "event": event.event})
    except ValidationError:
        raise ForgeHTTPError("an event of a job is invalid") from None


def listen(transport: Transport, watch: Watch) -> Generator[JobEvent, None, None]:
    """Yields the events of one connection. Ends without an error if the connection fails."""
    try:
        with closing(connect(transport, watch.following, watch.silence_s())) as events:
            for each in events:
                event = watch.receive(each)
                if event:
                    yield event
                if watch.is_round_over():
                    return
    except (TransientFailure, ForgeHTTPError, ForgeAPIError) as error:
        log.debug("polling, because the event stream failed: %s", error)


async def listen_async(transport: AsyncTransport, watch: Watch) -> AsyncGenerator[JobEvent, None]:
    """The asynchronous equivalent of `listen`."""
    try:
        async with aclosing(connect_async(transport, watch.following, watch.silence_s())) as events:
            async for each in events:
                event = watch.receive(each)
                if event:
                    yield event
                if watch.is_round_over():
                    return
    except (TransientFailure, ForgeHTTPError, ForgeAPIError) as error:
        log.debug("polling, because the event stream failed: %s", error)
