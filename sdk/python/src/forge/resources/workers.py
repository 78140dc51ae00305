"""Workers: the machines that run jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from typing_extensions import NotRequired, TypedDict, Unpack

from ..listing import PageRequest
from ..models import (
    BootstrapPlan,
    DecommissionedWorker,
    Fleet,
    RegisteredWorker,
    Worker,
    WorkerDetail,
    WorkerSamples,
)
from ..operation import M, Resource, listing, operation
from ..request import AppliedCheck, Request, create, get, path_of, post


class Machine(TypedDict):
    """A machine to set up over SSH."""

    gpu_count: int
    gpu_type: str
    ssh_key_path: NotRequired[str | None]
    """A path on the server's disk."""
    ssh_port: NotRequired[int | None]
    ssh_host_key: NotRequired[str | None]
    provider: NotRequired[str | None]
    metadata: NotRequired[Mapping[str, str] | None]
    worker_id: NotRequired[str | None]
    tags: NotRequired[Sequence[str] | None]


class Workers(Resource[M]):
    """`client.workers`."""

    @listing
    def list(
        self,
        *,
        status: str | Sequence[str] | None = None,
        gpu: str | None = None,
        q: str | None = None,
        user_id: str | None = None,
        limit: int | None = None,
        page_size: int | None = None,
    ) -> PageRequest[Worker]:
        """Lists workers, newest first. `limit`: maximum number in total.

        `gpu`: a part of the GPU's name. `q`: a part of an id or tag.
        """
        query = {"status": status, "gpu": gpu, "q": q, "user_id": user_id}
        return PageRequest("/api/workers", "workers", Worker, query, limit, page_size)

    @operation
    def summary(self, *, user_id: str | None = None) -> Request[Fleet]:
        """Counts workers and GPUs, and reads their utilisation."""
        return get("/api/fleet", Fleet, user_id=user_id)

    @operation
    def samples(
        self,
        worker_id: str,
        *,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        bucket_s: int | None = None,
    ) -> Request[WorkerSamples]:
        """Reads a worker's utilisation and memory over time. Default: the last day."""
        path = path_of("/api/workers/{}/samples", worker_id)
        return get(path, WorkerSamples, since=since, until=until, bucket_s=bucket_s)

    @operation
    def get(self, worker_id: str) -> Request[WorkerDetail]:
        """Reads a worker with the progress of its set-up."""
        return get(path_of("/api/workers/{}", worker_id), WorkerDetail)

    @operation
    def register(
        self,
        ssh_host: str,
        ssh_user: str,
        *,
        idempotency_key: str | None = None,
        **machine: Unpack[Machine],
    ) -> Request[RegisteredWorker]:
        """Lets the server set up a machine over SSH."""
        body = {"ssh_host": ssh_host, "ssh_user": ssh_user, **machine}
        return create("/api/workers/register", RegisteredWorker, body, idempotency_key)

    @operation
    def plan(
        self, ssh_host: str, ssh_user: str, **machine: Unpack[Machine]
    ) -> Request[BootstrapPlan]:
        """Returns what `register` would do to the machine, without doing it."""
        body = {"ssh_host": ssh_host, "ssh_user": ssh_user, **machine, "plan": True}
        return post("/api/workers/register", BootstrapPlan, **body)

    @operation
    def bootstrap(
        self, worker_id: str, *, ssh_host_key: str | None = None
    ) -> Request[WorkerDetail]:
        """Sets up a machine again. A new `ssh_host_key` replaces the trusted one."""
        path = path_of("/api/workers/{}/bootstrap", worker_id)
        request = post(path, WorkerDetail, ssh_host_key=ssh_host_key)
        look = get(path_of("/api/workers/{}", worker_id), WorkerDetail)
        applied_check = AppliedCheck(
            {"worker_in_service"}, look, lambda worker: worker.status == "bootstrapping"
        )
        return replace(request, applied_check=applied_check)

    @operation
    def drain(self, worker_id: str) -> Request[Worker]:
        """Drains a worker: it finishes its job and accepts no other."""
        return post(path_of("/api/workers/{}/drain", worker_id), Worker)

    @operation
    def undrain(self, worker_id: str) -> Request[Worker]:
        """Lets a draining worker accept jobs again.

        If the worker's agent has already exited, start the agent again on the machine.
        """
        return post(path_of("/api/workers/{}/undrain", worker_id), Worker)

    @operation
    def reset(self, worker_id: str) -> Request[Worker]:
        """Resets a worker whose status is `error`, so that it accepts jobs again. For admins."""
        return post(path_of("/api/workers/{}/reset", worker_id), Worker)

    @operation
    def remove(self, worker_id: str) -> Request[DecommissionedWorker]:
        """Decommissions a worker."""
        return Request("DELETE", path_of("/api/workers/{}", worker_id), DecommissionedWorker)
