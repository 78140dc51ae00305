"""Jobs: reading, following, waiting for them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Generator, Iterator
from contextlib import aclosing, closing
from typing import Any, Literal, overload

from ..async_transport import AsyncTransport
from ..following import OUTAGE_S, Following, follow, follow_async
from ..job import AsyncJob, Job
from ..live import is_shown, job_line, say
from ..log_lines import LogLines
from ..models import JobEvent
from ..operation import Async, Sync
from ..retries import Patience
from ..transport import Transport
from ..waiting import Watch, job_event, listen, listen_async
from .job_requests import JobRef, JobsOperations, completed, id_of

OnEvent = Callable[[JobEvent], None]


class Jobs(JobsOperations[Sync, Job]):
    """`Forge.jobs`. Where a `job_id` is asked for, a job will do."""

    _transport: Transport

    def read(self, answer: object) -> Job:
        """A job of this client, by what the API answered."""
        return Job.model_validate(answer).attach(self)

    def wait(
        self,
        job_id: JobRef,
        poll_interval: float = 5.0,
        timeout: float | None = None,
        on_event: OnEvent | None = None,
        *,
        progress: bool = True,
    ) -> Job:
        """Returns when it has completed. Raises JobFailedError and WaitTimeoutError.

        `on_event` is told of each status and progress. Where events don't arrive, the job is asked
        for each `poll_interval` seconds; an outage of some minutes is waited through.

        In a terminal a line shows how it stands, but for `progress=False`, or `FORGE_PROGRESS=0`;
        Ctrl-C says how to come back, and raises KeyboardInterrupt: the job goes on.
        """
        name = id_of(job_id)
        try:
            with job_line(name, lambda: self._glance(name), progress=progress) as line:

                def tell(event: JobEvent) -> None:
                    line.hear(event)
                    if on_event:
                        on_event(event)

                return self._wait(Watch(name, poll_interval, timeout), name, line.see, tell)
        except KeyboardInterrupt:
            if not is_shown(progress):
                raise
            say(f'{name} goes on. To come back: client.wait("{name}")')
            # Where in the HTTP library it was, would push that off the screen.
            raise KeyboardInterrupt from None

    def _wait(
        self, watch: Watch, job_id: str, on_job: Callable[[Job], None], on_event: OnEvent
    ) -> Job:
        while True:
            patience = self._transport.wire.patience(OUTAGE_S, watch.deadline)
            job = self._transport.run(self._get(job_id), patience)
            on_job(job)
            if job.is_final:
                return completed(job)
            watch.begin(job)
            if watch.listens:
                with closing(listen(self._transport, watch)) as events:
                    for event in events:
                        on_event(event)
            self._transport.pause(watch.end())

    def _glance(self, job_id: str) -> Job:
        """The job as it is now, where it can be read at once."""
        return self._transport.run(self._get(job_id), Patience(0))

    def events(self, job_id: JobRef) -> Generator[JobEvent, None, None]:
        """Each status so far, then each status and progress as it comes, until the job's end.

        Goes on after a cut, without a gap.
        """
        with closing(follow(self._transport, self._events(job_id))) as events:
            for each in events:
                event = job_event(each)
                yield event
                if event.status and event.status.is_final:
                    return

    @overload
    def logs(
        self,
        job_id: JobRef,
        *,
        follow: Literal[False] = False,
        attempt: int | None = None,
        tail_bytes: int | None = None,
    ) -> str: ...
    @overload
    def logs(
        self, job_id: JobRef, *, follow: Literal[True], attempt: int | None = None
    ) -> Iterator[str]: ...
    def logs(
        self,
        job_id: JobRef,
        *,
        follow: bool = False,
        attempt: int | None = None,
        tail_bytes: int | None = None,
    ) -> str | Iterator[str]:
        """The log of the latest attempt, or of another; the last `tail_bytes` of it.

        With `follow`, its lines as they come, through further attempts, until nothing more will
        come; cuts are mended.
        """
        if follow:
            return self._lines(self._log_stream(job_id, attempt))
        return self._transport.run(self._log(job_id, attempt, tail_bytes))

    def _lines(self, following: Following) -> Generator[str, None, None]:
        lines = LogLines()
        with closing(follow(self._transport, following)) as events:
            for event in events:
                yield from lines.take(event)
                if lines.is_over:
                    break
        yield from lines.rest()


class AsyncJobs(JobsOperations[Async, AsyncJob]):
    """`AsyncForge.jobs`. Where a `job_id` is asked for, a job will do."""

    _transport: AsyncTransport

    def read(self, answer: object) -> AsyncJob:
        """A job of this client, by what the API answered."""
        return AsyncJob.model_validate(answer).attach(self)

    async def wait(
        self,
        job_id: JobRef,
        poll_interval: float = 5.0,
        timeout: float | None = None,
        on_event: OnEvent | None = None,
    ) -> AsyncJob:
        """Returns when it has completed. Raises JobFailedError and WaitTimeoutError.

        `on_event` is told of each status and progress. Where events don't arrive, the job is asked
        for each `poll_interval` seconds; an outage of some minutes is waited through.
        """
        watch = Watch(id_of(job_id), poll_interval, timeout)
        while True:
            patience = self._transport.wire.patience(OUTAGE_S, watch.deadline)
            job = await self._transport.run(self._get(job_id), patience)
            if job.is_final:
                return completed(job)
            watch.begin(job)
            if watch.listens:
                async with aclosing(listen_async(self._transport, watch)) as events:
                    async for event in events:
                        if on_event:
                            on_event(event)
            await self._transport.pause(watch.end())

    async def events(self, job_id: JobRef) -> AsyncGenerator[JobEvent, None]:
        """Each status so far, then each status and progress as it comes, until the job's end.

        Goes on after a cut, without a gap.
        """
        async with aclosing(follow_async(self._transport, self._events(job_id))) as events:
            async for each in events:
                event = job_event(each)
                yield event
                if event.status and event.status.is_final:
                    return

    @overload
    def logs(
        self,
        job_id: JobRef,
        *,
        follow: Literal[False] = False,
        attempt: int | None = None,
        tail_bytes: int | None = None,
    ) -> Coroutine[Any, Any, str]: ...
    @overload
    def logs(
        self, job_id: JobRef, *, follow: Literal[True], attempt: int | None = None
    ) -> AsyncIterator[str]: ...
    def logs(
        self,
        job_id: JobRef,
        *,
        follow: bool = False,
        attempt: int | None = None,
        tail_bytes: int | None = None,
    ) -> Coroutine[Any, Any, str] | AsyncIterator[str]:
        """The log of the latest attempt, or of another, to await; the last `tail_bytes` of it.

        With `follow`, its lines for `async for` as they come, through further attempts, until
        nothing more will come; cuts are mended.
        """
        if follow:
            return self._lines(self._log_stream(job_id, attempt))
        return self._transport.run(self._log(job_id, attempt, tail_bytes))

    async def _lines(self, following: Following) -> AsyncGenerator[str, None]:
        lines = LogLines()
        async with aclosing(follow_async(self._transport, following)) as events:
            async for event in events:
                for line in lines.take(event):
                    yield line
                if lines.is_over:
                    break
        for line in lines.rest():
            yield line
