"""What this worker holds of a job, and how it learns that it should stop."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

_MAX_BACKOFF_S = 30.0

_T = TypeVar("_T")


class Away(Exception):
    """What is needed can't be reached now; the same may be tried again."""


class JobStopped(Exception):
    """The job is to end: cancelled, lost to another worker, or given up with the agent."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


@dataclass(frozen=True)
class Claim:
    """What every request about an attempt's files and log shows."""

    worker_id: str
    attempt: int
    token: str | None = field(default=None, repr=False)

    @property
    def query(self) -> dict[str, str]:
        return {"worker_id": self.worker_id, "attempt": str(self.attempt)}

    @property
    def headers(self) -> dict[str, str]:
        return {} if self.token is None else {"X-Forge-Lease-Token": self.token}


class Lease:
    """A job in our hands. Threads that work for it ask here whether they still should."""

    def __init__(self, job: dict[str, Any], claim: Claim) -> None:
        self.job = job
        self.job_id = str(job["job_id"])
        self.attempt = claim.attempt
        self.job_type = str(job["job_type"])
        self.claim = claim
        self.why_stopped: str | None = None
        self._stopped = threading.Event()
        self._on_stop: list[Callable[[], None]] = []
        self._lock = threading.Lock()

    @classmethod
    def of(cls, job: dict[str, Any], worker_id: str, token: str | None = None) -> "Lease":
        """`job`: next_job's answer. `token`: what it was asked with."""
        return cls(job, Claim(worker_id, int(job["attempt"]), token))

    def stop(self, why: str) -> None:
        """The first reason counts; whoever asked to be told is told at once."""
        with self._lock:
            if self.why_stopped is not None:
                return
            self.why_stopped = why
            self._stopped.set()
            told = list(self._on_stop)
        for callback in told:
            callback()

    def part(self) -> "Lease":
        """The same for a part of the work, which may be ended by itself."""
        part = Lease(self.job, self.claim)
        self.on_stop(lambda: part.stop(self.why_stopped or ""))
        return part

    def on_stop(self, callback: Callable[[], None]) -> None:
        with self._lock:
            self._on_stop.append(callback)
            is_late = self.why_stopped is not None
        if is_late:
            callback()

    def require(self) -> None:
        """Raises JobStopped once the job is to end."""
        if self.why_stopped is not None:
            raise JobStopped(self.why_stopped)

    def sleep(self, seconds: float) -> None:
        """Raises JobStopped as soon as the job is to end."""
        self._stopped.wait(seconds)
        self.require()

    def persist(self, attempt: Callable[[], _T], away: Callable[[Exception], None]) -> _T:
        """Calls until it works, for as long as the job is ours; `away` hears of each failure.

        Hours may pass: whatever a job has made is not thrown away because the control plane is.
        """
        backoff_s = 0.5
        while True:
            self.require()
            try:
                return attempt()
            except Away as error:
                away(error)
            self.sleep(backoff_s)
            backoff_s = min(2 * backoff_s, _MAX_BACKOFF_S)
