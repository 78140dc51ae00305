"""Jobs."""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from typing import Any, ClassVar

from pydantic import Field, model_validator

from .base import Model


class JobStatus(str, Enum):
    """A job's status, simplified. `Job.raw_status` has the API's status."""

    PENDING = "pending"
    """Not running yet. Includes jobs whose worker is still being set up or started."""
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"

    def __str__(self) -> str:
        return str(self.value)

    @property
    def is_final(self) -> bool:
        return self in (JobStatus.COMPLETED, JobStatus.FAILED)

    @classmethod
    def of(cls, raw: object, *, has_ended: bool = False) -> JobStatus:
        """Converts the API's status to a JobStatus.

        An unknown status counts as failed if the job has ended, else as pending.
        """
        try:
            return cls(raw)
        except ValueError:
            return cls.FAILED if has_ended else cls.PENDING


class _WithStatus(Model):
    """Splits the API's status into `status` (simplified) and `raw_status` (unchanged)."""

    @model_validator(mode="before")
    @classmethod
    def _read_status(cls, answer: object) -> object:
        if not isinstance(answer, dict) or "raw_status" in answer or "status" not in answer:
            return answer
        raw = answer["status"]
        has_ended = answer.get("completed_at") is not None
        return {**answer, "status": JobStatus.of(raw, has_ended=has_ended), "raw_status": raw}


class PendingReason(Model):
    """Why a job waits."""

    code: str
    message: str = ""
    requirement: dict[str, Any] | None = None
    """The requirement that the best-matching worker does not meet."""
    queue_position: int | None = None
    """Position in the queue. 1 is next. None if the queue is too long to tell, or if the job waits
    for another reason than busy workers."""


class JobWarning(Model):
    """A possible mistake in a submission."""

    code: str
    param: str | None = None
    message: str = ""


class BaseJob(_WithStatus):
    """A snapshot of a job: the common base of `Job` and `AsyncJob`."""

    shown: ClassVar[tuple[str, ...]] = (
        "job_id",
        "job_type",
        "status",
        "progress",
        "worker_id",
        "error_code",
        "error",
        "result",
        "created_at",
    )

    job_id: str
    job_type: str
    status: JobStatus
    raw_status: str
    """The API's status, e.g. `provisioning_worker`."""
    user_id: str | None = None
    created_by: str | None = None
    """The name of the key that submitted the job."""
    payload: dict[str, Any] = Field(default_factory=dict)
    attempts: int = 0
    worker_id: str | None = None
    result: dict[str, Any] | None = None
    error: str | None = None
    error_code: str | None = None
    created_at: datetime | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    artifacts_uri: str | None = None
    logs_uri: str | None = None
    resources: dict[str, Any] = Field(default_factory=dict)
    params: dict[str, Any] = Field(default_factory=dict)
    notes: str | None = None
    timeout_s: float | None = None
    max_attempts: int | None = None
    progress: float | None = None
    """From 0 to 1, if reported."""
    priority: int = 0
    tags: list[str] = Field(default_factory=list)
    pipeline_id: str | None = None
    pipeline_step: str | None = None
    deployment_id: str | None = None
    retried_from: str | None = None
    pending_reason: PendingReason | None = None
    cancel_requested_at: datetime | None = None
    cancelled_by: str | None = None
    """The name of the key that cancelled the job."""
    workflow_id: str | None = None
    workflow_url: str | None = None
    """The address of the job's workflow in Temporal's UI."""
    cost_usd: float | None = None
    """From the job's billing record. For an active deployment: the cost so far."""
    estimated_cost_usd: float | None = None
    """The estimated cost. Set only while the job is unfinished."""
    warnings: list[JobWarning] = Field(default_factory=list)

    @property
    def is_final(self) -> bool:
        """Whether the job has completed or failed. A final job never changes."""
        return self.status.is_final


class Attempt(Model):
    """One attempt to run a job."""

    attempt: int
    worker_id: str | None = None
    queued_at: datetime | None = None
    assigned_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    outcome: str | None = None
    error: str | None = None
    usage: dict[str, Any] | None = None
    gpu_hours_measured: float | None = None


class TenantEvent(Model):
    """An event of `client.events`: one of the tenant's objects has changed."""

    shown: ClassVar[tuple[str, ...]] = (
        "event",
        "job_id",
        "pipeline_id",
        "deployment_id",
        "worker_id",
        "status",
        "at",
    )

    event: str
    """The object's kind: `job`, `pipeline`, `deployment`, `worker`. `ready`: the stream begins."""
    resumed: bool | None = None
    """Set for a `ready` event. False: some events may have been missed."""
    job_id: str | None = None
    pipeline_id: str | None = None
    deployment_id: str | None = None
    worker_id: str | None = None
    status: str | None = None
    """The API's status."""
    job_type: str | None = None
    attempts: int | None = None
    error_code: str | None = None
    at: datetime | None = None


class JobCounts(Model):
    """Numbers of jobs by status, type, pending reason and error."""

    by_status: dict[str, int] = Field(default_factory=dict)
    """Counts unfinished jobs, and jobs that ended after `ended_after`."""
    by_job_type: dict[str, dict[str, int]] = Field(default_factory=dict)
    """By type, then by status."""
    by_pending_code: dict[str, int] = Field(default_factory=dict)
    by_error_code: dict[str, int] = Field(default_factory=dict)
    ended_after: datetime | None = None


class JobMetrics(Model):
    """A job's reported metrics over time."""

    shown: ClassVar[tuple[str, ...]] = ("job_id", "attempt")

    job_id: str
    attempt: int = 1
    at: list[datetime] = Field(default_factory=list)
    series: dict[str, list[float | None]] = Field(default_factory=dict)
    """Each metric's values by its name: one value per element of `at`, None if not reported."""


class ThroughputBucket(Model):
    """Job counts in one time bucket. `waiting` and `running` are the counts at the bucket's end."""

    at: datetime
    """Start of the time bucket."""
    submitted: int = 0
    started: int = 0
    completed: int = 0
    failed: int = 0
    waiting: int = 0
    running: int = 0


class JobThroughput(Model):
    """Job counts over time."""

    since: datetime
    until: datetime
    bucket_s: int
    buckets: list[ThroughputBucket] = Field(default_factory=list)


class JobEvent(_WithStatus):
    """A change of a job's status or progress."""

    shown: ClassVar[tuple[str, ...]] = ("event", "status", "progress", "worker_id", "at")

    event: str
    """`status` or `progress`."""
    job_id: str
    status: JobStatus | None = None
    raw_status: str | None = None
    progress: float | None = None
    attempts: int | None = None
    worker_id: str | None = None
    error_code: str | None = None
    at: datetime | None = None
