"""The two clients."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Generator
from dataclasses import replace
from typing import ClassVar, Generic

from typing_extensions import Self

from .async_transport import AsyncTransport
from .errors import ForgeError
from .job import AsyncJob, Job
from .models import TenantEvent
from .operation import Async, M, Sync
from .resources.accounts import ApiKeys, RateCards, Users
from .resources.artifacts import Artifacts, AsyncArtifacts
from .resources.billing import Billing
from .resources.datasets import AsyncDatasets, Datasets
from .resources.deployments import AsyncDeployments, Deployments
from .resources.jobs import AsyncJobs, Jobs, OnEvent
from .resources.pipelines import AsyncPipelines, Pipelines
from .resources.service import Service
from .resources.submissions import Submissions
from .resources.submitting import J
from .resources.workers import Workers
from .settings import Settings
from .tenant_events import tenant_events, tenant_events_async
from .transport import Transport
from .wire import DEFAULT_MAX_RETRIES, DEFAULT_TIMEOUT_S, Wire


class _Client(Submissions[M, J], Generic[M, J]):
    """The common part of both clients."""

    _transport_type: ClassVar[type[Transport | AsyncTransport]]

    def __init__(
        self,
        api_key: str | None = None,
        base_url: str | None = None,
        *,
        timeout: float = DEFAULT_TIMEOUT_S,
        max_retries: int = DEFAULT_MAX_RETRIES,
        bearer: bool = False,
    ) -> None:
        settings = Settings.load(api_key, base_url, os.environ)
        wire = _checked(Wire(settings, timeout, max_retries, bearer))
        self._begin(self._transport_type(wire))

    def _begin(self, transport: object) -> None:
        super().__init__(transport)
        self.billing: Billing[M] = Billing(transport)
        self.workers: Workers[M] = Workers(transport)
        self.api_keys: ApiKeys[M] = ApiKeys(transport)
        self.users: Users[M] = Users(transport)
        self.rate_cards: RateCards[M] = RateCards(transport)
        self.service: Service[M] = Service(transport)

    def with_options(self, *, timeout: float | None = None, max_retries: int | None = None) -> Self:
        """Returns a new client with another time-out or number of retries.

        Both clients share their connections: closing one client closes the connections of both.
        """
        wire: Wire = self._transport.wire
        changed = replace(
            wire,
            timeout_s=wire.timeout_s if timeout is None else timeout,
            max_retries=wire.max_retries if max_retries is None else max_retries,
        )
        other = type(self).__new__(type(self))
        other._begin(self._transport.with_wire(_checked(changed)))
        return other

    @property
    def base_url(self) -> str:
        """The address of Forge."""
        wire: Wire = self._transport.wire
        return wire.settings.base_url


class Forge(_Client[Sync, Job]):
    """The client of one tenant. Use it as a context manager, or close it. Thread-safe.

    Missing arguments default to the environment variables `SERVICE_API_KEY` and `SERVICE_BASE_URL`.
    If these are not set, the local stack's stack.json in `FORGE_HOME` (default `.forge`) is used.
    Raises ForgeError if no key or no address is found.

    `timeout` limits each step of a request (connecting, sending or receiving a chunk), in seconds.
    `max_retries` limits consecutive retries after transient failures. `bearer` sends the key as
    `Authorization: Bearer` instead of `X-Service-Api-Key`.
    """

    _transport_type = Transport

    def _begin(self, transport: object) -> None:
        super()._begin(transport)
        self.jobs: Jobs = Jobs(transport)
        self.pipelines = Pipelines(transport)
        self.datasets = Datasets(transport)
        self.artifacts = Artifacts(transport)
        self.deployments = Deployments(transport)

    def wait(
        self,
        job_id: str | Job,
        poll_interval: float = 5.0,
        timeout: float | None = None,
        on_event: OnEvent | None = None,
        *,
        progress: bool = True,
    ) -> Job:
        """Waits until a job has completed. Raises JobFailedError and WaitTimeoutError.

        Shows a progress line in a terminal, unless `progress=False`.
        """
        return self.jobs.wait(job_id, poll_interval, timeout, on_event, progress=progress)

    def events(self, *, limit: int | None = None) -> Generator[TenantEvent, None, None]:
        """Yields changes of your jobs, pipelines, deployments and workers, from now on.

        Reconnects after interruptions. The first event is `ready`. Ends after `limit` events.
        """
        return tenant_events(self._transport, limit)

    def close(self) -> None:
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Forge({self.base_url!r})"


class AsyncForge(_Client[Async, AsyncJob]):
    """The asynchronous `Forge`, with the same methods.

    Use a client in one event loop only. Open it with `async with`, or await `close` at the end.
    """

    _transport_type = AsyncTransport

    def _begin(self, transport: object) -> None:
        super()._begin(transport)
        self.jobs: AsyncJobs = AsyncJobs(transport)
        self.pipelines = AsyncPipelines(transport)
        self.datasets = AsyncDatasets(transport)
        self.artifacts = AsyncArtifacts(transport)
        self.deployments = AsyncDeployments(transport)

    async def wait(
        self,
        job_id: str | AsyncJob,
        poll_interval: float = 5.0,
        timeout: float | None = None,
        on_event: OnEvent | None = None,
    ) -> AsyncJob:
        """Waits until a job has completed. Raises JobFailedError and WaitTimeoutError."""
        return await self.jobs.wait(job_id, poll_interval, timeout, on_event)

    def events(self, *, limit: int | None = None) -> AsyncGenerator[TenantEvent, None]:
        """Yields changes of your jobs, pipelines, deployments and workers, from now on.

        Reconnects after interruptions. The first event is `ready`. Ends after `limit` events.
        """
        return tenant_events_async(self._transport, limit)

    async def close(self) -> None:
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"AsyncForge({self.base_url!r})"


def _checked(wire: Wire) -> Wire:
    if wire.timeout_s <= 0:
        raise ForgeError("timeout must be more than 0")
    if wire.max_retries < 0:
        raise ForgeError("max_retries must not be negative")
    return wire
