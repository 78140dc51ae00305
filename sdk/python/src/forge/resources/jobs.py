"""Jobs: methods with several requests, such as waiting and following logs."""

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
from ..retry_policy import RetryPolicy
from ..transport import Transport
from ..waiting import Watch, job_event, listen, listen_async
from .job_requests import JobRef, JobsOperations, completed, id_of

OnEvent = Callable[[JobEvent], None]


class Jobs(JobsOperations[Sync, Job]):
    """`Forge.jobs`. Parameters named `job_id` also accept a job."""

    _transport: Transport

    def read(self, answer: object) -> Job:
        """Converts a job in a response to an object that uses this client."""
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
        """Waits until the job has completed. Raises JobFailedError and WaitTimeoutError.

        `on_event` is called for each change of status and progress. If events don't arrive, polls
        every `poll_interval` seconds. Retries during outages of up to five minutes.

        Shows a progress line in a terminal, unless `progress=False` or `FORGE_PROGRESS=0`. Ctrl-C
        raises KeyboardInterrupt, and the job continues. If the progress line is shown, a message
        says how to wait again.
        """
        name = id_of(job_id)
        try:
            with job_line(name, lambda: self._read_once(name), progress=progress) as line:

                def report(event: JobEvent) -> None:
                    line.record(event)
                    if on_event:
                        on_event(event)

                return self._wait(Watch(name, poll_interval, timeout), name, line.update, report)
        except KeyboardInterrupt:
            if not is_shown(progress):
                raise
            say(f'{name} continues. To wait for it again: client.wait("{name}")')
            # `from None` leaves out the HTTP library's traceback, which would hide this message.
            raise KeyboardInterrupt from None

    def _wait(
        self, watch: Watch, job_id: str, on_job: Callable[[Job], None], on_event: OnEvent
    ) -> Job:
        while True:
            retry_policy = self._transport.wire.retry_policy(OUTAGE_S, watch.deadline)
            job = self._transport.run(self._get(job_id), retry_policy)
            on_job(job)
            if job.is_final:
                return completed(job)
            watch.begin(job)
            if watch.listens:
                with closing(listen(self._transport, watch)) as events:
                    for event in events:
                        on_event(event)
            self._transport.pause(watch.end())

    def _read_once(self, job_id: str) -> Job:
        """Reads the current state of the job without retries."""
        return self._transport.run(self._get(job_id), RetryPolicy(0))

    def events(self, job_id: JobRef) -> Generator[JobEvent, None, None]:
        """Yields past statuses, then changes of status and progress until the job's end.

        Reconnects after interruptions, without gaps.
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
        """Reads the log of one attempt. Default: the latest attempt.

        With `tail_bytes`, reads only the last bytes of the log.

        With `follow`, yields the log's lines as they arrive, until the log is complete. Reconnects
        after interruptions. Without `attempt`, continues with the logs of later attempts.
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
    """`AsyncForge.jobs`. Parameters named `job_id` also accept a job."""

    _transport: AsyncTransport

    def read(self, answer: object) -> AsyncJob:
        """Converts a job in a response to an object that uses this client."""
        return AsyncJob.model_validate(answer).attach(self)

    async def wait(
        self,
        job_id: JobRef,
        poll_interval: float = 5.0,
        timeout: float | None = None,
        on_event: OnEvent | None = None,
    ) -> AsyncJob:
        """Waits until the job has completed. Raises JobFailedError and WaitTimeoutError.

        `on_event` is called for each change of status and progress. If events don't arrive, polls
        every `poll_interval` seconds. Retries during outages of up to five minutes.
        """
        watch = Watch(id_of(job_id), poll_interval, timeout)
        while True:
            retry_policy = self._transport.wire.retry_policy(OUTAGE_S, watch.deadline)
            job = await self._transport.run(self._get(job_id), retry_policy)
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
        """Yields past statuses, then changes of status and progress until the job's end.

        Reconnects after interruptions, without gaps.
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
        """Reads the log of one attempt. Default: the latest attempt.

        With `tail_bytes`, reads only the last bytes of the log.

        With `follow`, returns an async iterator instead of an awaitable. The iterator yields the
        log's lines as they arrive, until the log is complete. It reconnects after interruptions.
        Without `attempt`, it continues with the logs of later attempts.
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
