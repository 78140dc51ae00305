"""Workers and deployments."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from pydantic import Field

from .base import Model


class Worker(Model):
    """A machine that runs jobs."""

    shown: ClassVar[tuple[str, ...]] = (
        "worker_id",
        "status",
        "status_reason",
        "draining",
        "gpu_type",
        "gpu_count",
        "current_job_id",
        "util",
    )

    worker_id: str
    status: str
    """`bootstrapping`, `idle`, `busy`, `error` or `dead`."""
    status_reason: str | None = None
    error_code: str | None = None
    draining: bool = False
    ssh_host: str | None = None
    gpu_count: int = 0
    gpu_type: str | None = None
    current_job_id: str | None = None
    last_heartbeat: float | None = None
    """Seconds since 1970."""
    gpu: dict[str, Any] = Field(default_factory=dict)
    tags: list[str] = Field(default_factory=list)
    job_types: list[str] | None = None
    version: str | None = None
    util: float | None = None
    mem_used: float | None = None
    mem_total: float | None = None
    jobs_handled: int = 0
    shared: bool = False


class FleetGpus(Model):
    """Numbers of workers and GPUs, for one type of GPU."""

    gpu_type: str
    workers: int = 0
    gpus: int = 0
    busy_gpus: int = 0
    idle_gpus: int = 0


class Fleet(Model):
    """Totals over all workers: numbers of workers and GPUs, utilisation and memory."""

    workers: int
    by_status: dict[str, int] = Field(default_factory=dict)
    draining: int = 0
    gpus: int = 0
    busy_gpus: int = 0
    idle_gpus: int = 0
    by_gpu_type: list[FleetGpus] = Field(default_factory=list)
    util: float | None = None
    """Mean utilisation in percent, of the active workers that report it."""
    mem_used: float | None = None
    """In GB, like `mem_total`."""
    mem_total: float | None = None


class WorkerSample(Model):
    """A worker's utilisation and memory in one time bucket."""

    at: datetime
    """Start of the time bucket."""
    util: float | None = None
    util_max: float | None = None
    mem_used: float | None = None
    mem_total: float | None = None


class WorkerSamples(Model):
    """A worker's utilisation and memory over time."""

    worker_id: str
    since: datetime
    until: datetime
    bucket_s: int
    samples: list[WorkerSample] = Field(default_factory=list)


class BootstrapStep(Model):
    """One step of setting up a machine."""

    shown: ClassVar[tuple[str, ...]] = ("step", "status", "tries", "error")

    step: str
    status: str
    does: str = ""
    tries: int = 0
    started_at: datetime | None = None
    ended_at: datetime | None = None
    error: str | None = None
    log: str = ""


class Bootstrap(Model):
    """The set-up of a machine over SSH."""

    shown: ClassVar[tuple[str, ...]] = ("run", "ssh_user", "steps")

    run: int = 1
    ssh_port: int = 22
    ssh_user: str | None = None
    ssh_key_path: str | None = None
    ssh_host_key: str | None = None
    provider: str | None = None
    metadata: dict[str, Any] | None = None
    steps: list[BootstrapStep] = Field(default_factory=list)


class WorkerDetail(Worker):
    """A worker with its set-up."""

    bootstrap: Bootstrap | None = None


class RegisteredWorker(Model):
    """A machine whose set-up was started."""

    worker_id: str
    status: str
    message: str | None = None


class BootstrapPlan(Model):
    """The planned set-up of a machine. Nothing was changed."""

    plan: list[dict[str, Any]] = Field(default_factory=list)
    files: dict[str, str] = Field(default_factory=dict)


class DecommissionedWorker(Model):
    """A decommissioned worker."""

    worker_id: str
    decommissioned: bool = True


class Deployment(Model):
    """A served model, independent of the worker that runs it."""

    shown: ClassVar[tuple[str, ...]] = (
        "deployment_id",
        "status",
        "checkpoint_id",
        "url",
        "trouble",
        "cost_usd",
    )

    deployment_id: str
    status: str
    """`active`, `stopping` or `stopped`."""
    user_id: str | None = None
    checkpoint_id: str | None = None
    job_id: str | None = None
    url: str | None = None
    """A stable address: `<url>/chat/completions` reaches any worker that serves the model."""
    inference_url: str | None = None
    scaling: dict[str, Any] = Field(default_factory=dict)
    replicas: list[dict[str, Any]] = Field(default_factory=list)
    trouble: str | None = None
    created_at: datetime | None = None
    stop_requested_at: datetime | None = None
    stopped_at: datetime | None = None
    stopped_by: str | None = None
    cost_usd: float = 0.0


class RequestCounts(Model):
    """Counts of a deployment's requests."""

    requests: int = 0
    errors: int = 0
    latency_p50_s: float | None = None
    latency_p99_s: float | None = None
    input_tokens: int | None = None
    """None: no response reported a number."""
    output_tokens: int | None = None


class RequestBucket(RequestCounts):
    """Counts of requests in one time bucket."""

    at: datetime
    """Start of the time bucket."""


class DeploymentStats(Model):
    """A deployment's requests over time."""

    deployment_id: str
    since: datetime
    until: datetime
    bucket_s: int
    total: RequestCounts
    buckets: list[RequestBucket] = Field(default_factory=list)


class DeploymentDetail(Deployment):
    """A deployment with its placements."""

    placements: list[dict[str, Any]] = Field(default_factory=list)
