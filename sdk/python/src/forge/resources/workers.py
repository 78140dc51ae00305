"""Workers: the machines that pull jobs."""

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
from ..request import Request, Settled, create, get, path_of, post


class Machine(TypedDict):
    """A machine to be set up over SSH."""

    gpu_count: int
    gpu_type: str
    ssh_key_path: NotRequired[str | None]
    """On the server's own disk."""
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
        """Workers, newest first; `limit` is how many in all.

        `gpu` is a part of the GPU's name, `q` a part of an id or of a tag.
        """
        read = Worker.model_validate
        query = {"status": status, "gpu": gpu, "q": q, "user_id": user_id}
        return PageRequest("/api/workers", "workers", read, query, limit, page_size)

    @operation
    def summary(self, *, user_id: str | None = None) -> Request[Fleet]:
        """How many workers and GPUs there are, and how busy they are."""
        return get("/api/fleet", Fleet.model_validate, user_id=user_id)

    @operation
    def samples(
        self,
        worker_id: str,
        *,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        bucket_s: int | None = None,
    ) -> Request[WorkerSamples]:
        """Its utilisation and memory over the last day."""
        path = path_of("/api/workers/{}/samples", worker_id)
        query = {"since": since, "until": until, "bucket_s": bucket_s}
        return get(path, WorkerSamples.model_validate, **query)

    @operation
    def get(self, worker_id: str) -> Request[WorkerDetail]:
        """A worker, and how far its setting up has come."""
        return get(path_of("/api/workers/{}", worker_id), WorkerDetail.model_validate)

    @operation
    def register(
        self,
        ssh_host: str,
        ssh_user: str,
        *,
        idempotency_key: str | None = None,
        **machine: Unpack[Machine],
    ) -> Request[RegisteredWorker]:
        """Has a machine set up over SSH."""
        body = {"ssh_host": ssh_host, "ssh_user": ssh_user, **machine}
        parse = RegisteredWorker.model_validate
        return create("/api/workers/register", parse, body, idempotency_key)

    @operation
    def plan(
        self, ssh_host: str, ssh_user: str, **machine: Unpack[Machine]
    ) -> Request[BootstrapPlan]:
        """What `register` would do to the machine, and nothing of it."""
        body = {"ssh_host": ssh_host, "ssh_user": ssh_user, **machine, "plan": True}
        return post("/api/workers/register", BootstrapPlan.model_validate, **body)

    @operation
    def bootstrap(
        self, worker_id: str, *, ssh_host_key: str | None = None
    ) -> Request[WorkerDetail]:
        """Sets a machine up again; a new `ssh_host_key` is trusted from now on."""
        path = path_of("/api/workers/{}/bootstrap", worker_id)
        request = post(path, WorkerDetail.model_validate, ssh_host_key=ssh_host_key)
        look = get(path_of("/api/workers/{}", worker_id), WorkerDetail.model_validate)
        settled = Settled(
            {"worker_in_service"}, look, lambda worker: worker.status == "bootstrapping"
        )
        return replace(request, settled=settled)

    @operation
    def drain(self, worker_id: str) -> Request[Worker]:
        """Lets it finish its job, and take no other."""
        return post(path_of("/api/workers/{}/drain", worker_id), Worker.model_validate)

    @operation
    def undrain(self, worker_id: str) -> Request[Worker]:
        """Lets a draining one take jobs again; an agent that has left must be started again."""
        return post(path_of("/api/workers/{}/undrain", worker_id), Worker.model_validate)

    @operation
    def reset(self, worker_id: str) -> Request[Worker]:
        """Puts one that is in error back into service; for admins."""
        return post(path_of("/api/workers/{}/reset", worker_id), Worker.model_validate)

    @operation
    def remove(self, worker_id: str) -> Request[DecommissionedWorker]:
        """Decommissions it."""
        path = path_of("/api/workers/{}", worker_id)
        return Request("DELETE", path, DecommissionedWorker.model_validate)
