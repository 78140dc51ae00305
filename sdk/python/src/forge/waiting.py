"""Waiting for a job's end: by its events where they arrive, by asking where they don't.

Each round asks for the job, then listens to one connection of its events until the job may have
ended. A connection that tells nothing, e.g. through a proxy that holds it back, is as good as a
pause between two questions.
"""

from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing, closing
from time import monotonic

from pydantic import ValidationError

from .async_transport import AsyncTransport
from .errors import ForgeAPIError, ForgeError, ForgeHTTPError
from .following import GONE, KEEP_ALIVE_S, Following, connect, connect_async
from .models import BaseJob, JobEvent
from .request import path_of
from .retries import Deadline, Passing
from .sse import ServerSentEvent
from .transport import Transport
from .wire import log

_SILENCE_S = KEEP_ALIVE_S + 5
_MAX_DUMB = 2
_AGAIN_AFTER = 12


class Watch:
    """The decisions of one wait, without I/O."""

    def __init__(self, job_id: str, poll_interval: float, timeout: float | None) -> None:
        if not poll_interval > 0:
            raise ForgeError("poll_interval must be more than 0")
        self._poll_interval = poll_interval
        self.deadline = Deadline(job_id, timeout)
        self._round_s = 0.0
        self._dumb = 0
        """Connections in a row that told nothing at all."""
        self._silence_s = _SILENCE_S
        self._has_ended = False
        """An event has said so."""
        self._is_late = False
        """And the job itself does not, yet: no hurry any more."""
        self.following = Following(path_of("/api/jobs/{}/events", job_id), {})

    def begin(self, job: BaseJob) -> None:
        """A round, with the job as it is now. Raises WaitTimeoutError."""
        self.deadline.status = str(job.status)
        self.deadline.check()
        self._round_s = monotonic()

    @property
    def listens(self) -> bool:
        # Where nothing is to be heard, now and then again.
        return self._dumb < _MAX_DUMB or self._dumb % _AGAIN_AFTER == 0

    def silence_s(self) -> float:
        """For how long to listen to nothing."""
        self._silence_s = max(0.05, min(_SILENCE_S, self.deadline.left_s()))
        return self._silence_s

    def hear(self, event: ServerSentEvent | None) -> JobEvent | None:
        """What a connection gave, as a job's event. None: a sign of life. Raises ForgeHTTPError."""
        self._has_ended = self._has_ended or event is GONE
        if event is None or event is GONE:
            return None
        found = job_event(event)
        self._has_ended = found.status is not None and found.status.is_final
        return found

    def is_enough(self) -> bool:
        """Whether it is time for the next round."""
        # Else the connection might stay silent for longer than there is time.
        return self._has_ended or self.deadline.left_s() < self._silence_s

    def end(self) -> float:
        """Of a round; for how long to pause before the next."""
        self._dumb = 0 if self.following.has_heard and self.listens else self._dumb + 1
        if self._has_ended and not self._is_late:
            self._is_late = True
            return 0.0
        spent_s = monotonic() - self._round_s
        return max(0.0, min(self._poll_interval - spent_s, self.deadline.left_s()))


def job_event(event: ServerSentEvent) -> JobEvent:
    """Raises ForgeHTTPError."""
    try:
        return JobEvent.model_validate({**event.json(), "event": event.event})
    except ValidationError:
        raise ForgeHTTPError("an event of a job is not what it should be") from None


def listen(transport: Transport, watch: Watch) -> Generator[JobEvent, None, None]:
    """One connection's events. Its failures end it: the next question tells more of them."""
    try:
        connection = connect(transport, watch.following, watch.silence_s())
        with closing(connection) as events:
            for each in events:
                event = watch.hear(each)
                if event:
                    yield event
                if watch.is_enough():
                    return
    except (Passing, ForgeHTTPError, ForgeAPIError) as error:
        log.debug("asking instead of listening: %s", error)


async def listen_async(transport: AsyncTransport, watch: Watch) -> AsyncGenerator[JobEvent, None]:
    """The same, by awaiting."""
    try:
        connection = connect_async(transport, watch.following, watch.silence_s())
        async with aclosing(connection) as events:
            async for each in events:
                event = watch.hear(each)
                if event:
                    yield event
                if watch.is_enough():
                    return
    except (Passing, ForgeHTTPError, ForgeAPIError) as error:
        log.debug("asking instead of listening: %s", error)
