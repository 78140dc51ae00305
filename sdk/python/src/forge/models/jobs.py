"""Jobs."""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from typing import Any, ClassVar

from pydantic import Field, model_validator

from .base import Model


class JobStatus(str, Enum):
    """What a client needs to know of a job's state; `Job.raw_status` has the state itself."""

    PENDING = "pending"
    """Waiting, also for a worker that is being set up, or that has not begun yet."""
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
        """Also of a state that this version does not know: has it ended, it did not complete."""
        try:
            return cls(raw)
        except ValueError:
            return cls.FAILED if has_ended else cls.PENDING


class PendingReason(Model):
    """Why a job waits."""

    code: str
    message: str = ""
    requirement: dict[str, Any] | None = None
    """What the nearest worker lacks."""
    queue_position: int | None = None
    """1 is next."""


class JobWarning(Model):
    """Something about a submission that may not be as meant."""

    code: str
    param: str | None = None
    message: str = ""


class BaseJob(Model):
    """A job as it was when it was read: what `Job` and `AsyncJob` have in common."""

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
    """The state as the API names it, e.g. `provisioning_worker`."""
    user_id: str | None = None
    created_by: str | None = None
    """The name of the key that submitted it."""
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
    """From 0 to 1, where the worker says."""
    priority: int = 0
    tags: list[str] = Field(default_factory=list)
    pipeline_id: str | None = None
    pipeline_step: str | None = None
    deployment_id: str | None = None
    retried_from: str | None = None
    pending_reason: PendingReason | None = None
    cancel_requested_at: datetime | None = None
    cancelled_by: str | None = None
    """The name of the key that asked for it."""
    workflow_id: str | None = None
    workflow_url: str | None = None
    """Where Temporal's UI shows it."""
    cost_usd: float | None = None
    """Of its billing record; of a live deployment so far."""
    estimated_cost_usd: float | None = None
    """Of an unfinished job."""
    warnings: list[JobWarning] = Field(default_factory=list)

    @model_validator(mode="before")
    @classmethod
    def _read_status(cls, answer: object) -> object:
        if not isinstance(answer, dict) or "raw_status" in answer or "status" not in answer:
            return answer
        raw = answer["status"]
        has_ended = answer.get("completed_at") is not None
        return {**answer, "status": JobStatus.of(raw, has_ended=has_ended), "raw_status": raw}

    @property
    def is_final(self) -> bool:
        """It has completed or failed, and nothing about it will change."""
        return self.status.is_final


class Attempt(Model):
    """One try to run a job."""

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
    """Something that changed."""

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
    """`job`, `pipeline`, `deployment`, `worker`, or `ready`: from here on events arrive."""
    resumed: bool | None = None
    """Of `ready`: False where some events may have been missed."""
    job_id: str | None = None
    pipeline_id: str | None = None
    deployment_id: str | None = None
    worker_id: str | None = None
    status: str | None = None
    """As the API names it."""
    job_type: str | None = None
    attempts: int | None = None
    error_code: str | None = None
    at: datetime | None = None


class JobCounts(Model):
    """How many jobs there are."""

    by_status: dict[str, int] = Field(default_factory=dict)
    """Unfinished jobs, and those that ended after `ended_after`."""
    by_job_type: dict[str, dict[str, int]] = Field(default_factory=dict)
    """By type, then by status."""
    by_pending_code: dict[str, int] = Field(default_factory=dict)
    by_error_code: dict[str, int] = Field(default_factory=dict)
    ended_after: datetime | None = None


class JobMetrics(Model):
    """What a job reported over time."""

    shown: ClassVar[tuple[str, ...]] = ("job_id", "attempt")

    job_id: str
    attempt: int = 1
    at: list[datetime] = Field(default_factory=list)
    series: dict[str, list[float | None]] = Field(default_factory=dict)
    """By name, a value for each of `at`; None where it was not reported."""


class ThroughputBucket(Model):
    """What happened to jobs in a step of time, and how many waited and ran at its end."""

    at: datetime
    """Where it begins."""
    submitted: int = 0
    started: int = 0
    completed: int = 0
    failed: int = 0
    waiting: int = 0
    running: int = 0


class JobThroughput(Model):
    """Jobs over time."""

    since: datetime
    until: datetime
    bucket_s: int
    buckets: list[ThroughputBucket] = Field(default_factory=list)


class JobEvent(Model):
    """A change of a job: of its status, or of its progress."""

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

    @model_validator(mode="before")
    @classmethod
    def _read_status(cls, answer: object) -> object:
        if not isinstance(answer, dict) or "raw_status" in answer or "status" not in answer:
            return answer
        return {**answer, "status": JobStatus.of(answer["status"]), "raw_status": answer["status"]}
