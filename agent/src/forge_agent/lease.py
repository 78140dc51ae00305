"""The worker's lease on a job, and the signal to stop working on it."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

_MAX_BACKOFF_S = 30.0

_T = TypeVar("_T")


class Unavailable(Exception):
    """A service can't be reached now. The call may be retried."""


class JobStopped(Exception):
    """The job must end: it was cancelled, lost to another worker, or the agent stops."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


@dataclass(frozen=True)
class LeaseProof:
    """Proof of the lease, sent with every request about an attempt's files and log."""

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
    """A job assigned to this worker. The job's threads check the lease before they continue."""

    def __init__(self, job: dict[str, Any], proof: LeaseProof) -> None:
        self.job = job
        self.job_id = str(job["job_id"])
        self.attempt = proof.attempt
        self.job_type = str(job["job_type"])
        self.proof = proof
        self.why_stopped: str | None = None
        self._stopped = threading.Event()
        self._on_stop: list[Callable[[], None]] = []
        self._lock = threading.Lock()

    @classmethod
    def of(cls, job: dict[str, Any], worker_id: str, token: str | None = None) -> "Lease":
        """`job`: the response of next_job. `token`: the lease token of that request."""
        return cls(job, LeaseProof(worker_id, int(job["attempt"]), token))

    def stop(self, why: str) -> None:
        """Stops the lease and runs all callbacks in this thread. Later calls have no effect."""
        with self._lock:
            if self.why_stopped is not None:
                return
            self.why_stopped = why
            self._stopped.set()
            callbacks = list(self._on_stop)
        for callback in callbacks:
            callback()

    def child(self) -> "Lease":
        """Returns a lease for a part of the work. It stops when this lease stops.

        Stopping the returned lease does not stop this one.
        """
        child = Lease(self.job, self.proof)
        self.on_stop(lambda: child.stop(self.why_stopped or ""))
        return child

    def on_stop(self, callback: Callable[[], None]) -> None:
        """Runs the callback when the lease stops; immediately if it has already stopped."""
        with self._lock:
            self._on_stop.append(callback)
            is_late = self.why_stopped is not None
        if is_late:
            callback()

    def require(self) -> None:
        """Raises JobStopped if the lease has stopped."""
        if self.why_stopped is not None:
            raise JobStopped(self.why_stopped)

    def sleep(self, seconds: float) -> None:
        """Sleeps. Raises JobStopped as soon as the lease stops."""
        self._stopped.wait(seconds)
        self.require()

    def retry(self, call: Callable[[], _T], on_unavailable: Callable[[Exception], None]) -> _T:
        """Retries the call while it raises Unavailable, until the lease stops.

        This may take hours: an outage of the control plane must not discard a job's output.
        """
        backoff_s = 0.5
        while True:
            self.require()
            try:
                return call()
            except Unavailable as error:
                on_unavailable(error)
            self.sleep(backoff_s)
            backoff_s = min(2 * backoff_s, _MAX_BACKOFF_S)
