"""Jobs with their methods."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from pydantic import PrivateAttr
from typing_extensions import Self

from .errors import ForgeError
from .models import Artifact, Attempt, BaseJob, JobEvent

if TYPE_CHECKING:
    from .resources.jobs import AsyncJobs, Jobs

R = TypeVar("R")


class _Attached(BaseJob):
    _jobs: Any = PrivateAttr(default=None)
    """The `jobs` resource of the client that read this job."""

    def attach(self, jobs: object) -> Self:
        self._jobs = jobs
        return self

    def _client(self) -> object:
        if self._jobs is None:
            raise ForgeError(f"{self.job_id} is not attached to a client; use client.jobs")
        return self._jobs

    def __eq__(self, other: object) -> bool:
        # Compares the declared fields. Ignores `_jobs`, so that snapshots read by different clients
        # can be equal.
        return type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return hash(self.job_id)

    def __getstate__(self) -> dict[Any, Any]:
        # Leaves out the client: its key and connections must not be pickled.
        return {**super().__getstate__(), "__pydantic_private__": {"_jobs": None}}


class Job(_Attached):
    """A snapshot of a job. `refresh` and `wait` return a new snapshot."""

    if TYPE_CHECKING:

        def _client(self) -> Jobs: ...

    def refresh(self) -> Job:
        """Reads the current state of the job."""
        return self._client().get(self.job_id)

    def wait(
        self,
        poll_interval: float = 5.0,
        timeout: float | None = None,
        on_event: Callable[[JobEvent], None] | None = None,
        *,
        progress: bool = True,
    ) -> Job:
        """Waits until the job has completed. Raises JobFailedError and WaitTimeoutError.

        Shows a progress line in a terminal, unless `progress=False`.
        """
        return self._client().wait(self.job_id, poll_interval, timeout, on_event, progress=progress)

    def events(self) -> Iterator[JobEvent]:
        """Yields all changes of status and progress. Reconnects after interruptions."""
        return self._client().events(self.job_id)

    @overload
    def logs(
        self,
        *,
        follow: Literal[False] = False,
        attempt: int | None = None,
        tail_bytes: int | None = None,
    ) -> str: ...
    @overload
    def logs(self, *, follow: Literal[True], attempt: int | None = None) -> Iterator[str]: ...
    def logs(
        self, *, follow: bool = False, attempt: int | None = None, tail_bytes: int | None = None
    ) -> str | Iterator[str]:
        """Returns the log as a string. With `follow`, yields the log's lines as they arrive."""
        if follow:
            return self._client().logs(self.job_id, follow=True, attempt=attempt)
        return self._client().logs(self.job_id, attempt=attempt, tail_bytes=tail_bytes)

    def cancel(self) -> Job:
        """Cancels the job.

        Raises ConflictError if the job has ended, or its result is already being recorded.
        """
        return self._client().cancel(self.job_id)

    def retry(self, *, idempotency_key: str | None = None) -> Job:
        """Submits a new job with the same payload."""
        return self._client().retry(self.job_id, idempotency_key=idempotency_key)

    def get_artifacts(self) -> list[Artifact]:
        """The artifacts of the job."""
        return self._client().artifacts(self.job_id)

    def get_attempts(self) -> list[Attempt]:
        """The attempts of the job."""
        return self._client().attempts(self.job_id)


class AsyncJob(_Attached):
    """A snapshot of a job. `refresh` and `wait` return a new snapshot."""

    if TYPE_CHECKING:

        def _client(self) -> AsyncJobs: ...

    async def refresh(self) -> AsyncJob:
        """Reads the current state of the job."""
        return await self._client().get(self.job_id)

    async def wait(
        self,
        poll_interval: float = 5.0,
        timeout: float | None = None,
        on_event: Callable[[JobEvent], None] | None = None,
    ) -> AsyncJob:
        """Waits until the job has completed. Raises JobFailedError and WaitTimeoutError."""
        return await self._client().wait(self.job_id, poll_interval, timeout, on_event)

    def events(self) -> AsyncIterator[JobEvent]:
        """Yields all changes of status and progress. Reconnects after interruptions."""
        return self._client().events(self.job_id)

    @overload
    def logs(
        self,
        *,
        follow: Literal[False] = False,
        attempt: int | None = None,
        tail_bytes: int | None = None,
    ) -> Coroutine[Any, Any, str]: ...
    @overload
    def logs(self, *, follow: Literal[True], attempt: int | None = None) -> AsyncIterator[str]: ...
    def logs(
        self, *, follow: bool = False, attempt: int | None = None, tail_bytes: int | None = None
    ) -> Coroutine[Any, Any, str] | AsyncIterator[str]:
        """Returns an awaitable of the log as a string.

        With `follow`, returns an async iterator that yields the log's lines as they arrive.
        """
        if follow:
            return self._client().logs(self.job_id, follow=True, attempt=attempt)
        return self._client().logs(self.job_id, attempt=attempt, tail_bytes=tail_bytes)

    async def cancel(self) -> AsyncJob:
        """Cancels the job.

        Raises ConflictError if the job has ended, or its result is already being recorded.
        """
        return await self._client().cancel(self.job_id)

    async def retry(self, *, idempotency_key: str | None = None) -> AsyncJob:
        """Submits a new job with the same payload."""
        return await self._client().retry(self.job_id, idempotency_key=idempotency_key)

    async def get_artifacts(self) -> list[Artifact]:
        """The artifacts of the job."""
        return await self._client().artifacts(self.job_id)

    async def get_attempts(self) -> list[Attempt]:
        """The attempts of the job."""
        return await self._client().attempts(self.job_id)
