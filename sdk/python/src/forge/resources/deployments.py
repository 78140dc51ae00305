"""Deployments: served models."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote

from ..async_transport import AsyncTransport
from ..errors import ForgeError
from ..listing import PageRequest
from ..models import Deployment, DeploymentDetail, DeploymentStats
from ..operation import Async, M, Resource, Sync, listing, operation
from ..request import Request, get, path_of, post, without_none
from ..retry_policy import TransientFailure
from ..sse import EventDecoder, ServerSentEvent
from ..transport import Transport

_ANSWER_S = 600.0
"""Time-out for a response: a model may compute for a long time before it responds."""


class DeploymentsOperations(Resource[M]):
    """The methods of `client.deployments` that `Forge` and `AsyncForge` share."""

    @listing
    def list(
        self,
        *,
        status: str | Sequence[str] | None = None,
        user_id: str | None = None,
        limit: int | None = None,
        page_size: int | None = None,
    ) -> PageRequest[Deployment]:
        """Lists deployments, newest first. `limit`: maximum number in total."""
        query = {"status": status, "user_id": user_id}
        return PageRequest("/api/deployments", "deployments", Deployment, query, limit, page_size)

    @operation
    def get(self, deployment_id: str) -> Request[DeploymentDetail]:
        """Reads a deployment with its placements."""
        return get(path_of("/api/deployments/{}", deployment_id), DeploymentDetail)

    @operation
    def stats(
        self,
        deployment_id: str,
        *,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        bucket_s: int | None = None,
        user_id: str | None = None,
    ) -> Request[DeploymentStats]:
        """Reads the numbers of requests, errors and tokens, and the latencies.

        Default: the last 24 hours.
        """
        path = path_of("/api/deployments/{}/stats", deployment_id)
        query = {"since": since, "until": until, "bucket_s": bucket_s, "user_id": user_id}
        return get(path, DeploymentStats, **query)

    @operation
    def stop(self, deployment_id: str) -> Request[DeploymentDetail]:
        """Stops the deployment and its billing."""
        return post(path_of("/api/deployments/{}/stop", deployment_id), DeploymentDetail)

    @operation
    def scale(
        self,
        deployment_id: str,
        *,
        min_replicas: int | None = None,
        max_replicas: int | None = None,
    ) -> Request[DeploymentDetail]:
        """Changes the number of replicas."""
        path = path_of("/api/deployments/{}", deployment_id)
        body = without_none({"min_replicas": min_replicas, "max_replicas": max_replicas})
        return Request("PATCH", path, DeploymentDetail, body=body)

    @operation
    def ask(
        self, deployment_id: str, path: str, body: object = None, *, method: str | None = None
    ) -> Request[dict[str, Any]]:
        """Sends a request to the model: `ask(id, "chat/completions", {"messages": […]})`.

        `method` defaults to GET without a body, else to POST. Requests other than GET are not
        retried if they may have reached the model.
        """
        return _question(deployment_id, path, body, method)


class Deployments(DeploymentsOperations[Sync]):
    """`Forge.deployments`."""

    _transport: Transport

    def stream(
        self, deployment_id: str, path: str, body: object
    ) -> Generator[ServerSentEvent, None, None]:
        """Sends a POST to the model. Yields the server-sent events of the response.

        `path` is the same as for `ask`. `body` must request a stream: `{"stream": True, …}`.
        """
        request = _question(deployment_id, path, body, "POST")
        decoder = EventDecoder()
        try:
            with self._transport.open(request, _ANSWER_S) as response:
                for chunk in response.iter_bytes():
                    yield from decoder.feed(chunk)
        except TransientFailure as failure:
            raise failure.final from failure.__cause__


class AsyncDeployments(DeploymentsOperations[Async]):
    """`AsyncForge.deployments`."""

    _transport: AsyncTransport

    async def stream(
        self, deployment_id: str, path: str, body: object
    ) -> AsyncGenerator[ServerSentEvent, None]:
        """Sends a POST to the model. Yields the server-sent events of the response.

        `path` is the same as for `ask`. `body` must request a stream: `{"stream": True, …}`.
        """
        request = _question(deployment_id, path, body, "POST")
        decoder = EventDecoder()
        try:
            async with self._transport.open(request, _ANSWER_S) as response:
                async for chunk in response.aiter_bytes():
                    for event in decoder.feed(chunk):
                        yield event
        except TransientFailure as failure:
            raise failure.final from failure.__cause__


def _question(
    deployment_id: str, path: str, body: object, method: str | None
) -> Request[dict[str, Any]]:
    names = path.strip("/").split("/")
    if not all(name and name.strip(".") and name.isprintable() for name in names):
        raise ForgeError(f"{path!r} is not a valid path below a deployment's address")
    base = path_of("/api/deployments/{}/v1", deployment_id)
    method = method or ("GET" if body is None else "POST")
    return Request(
        method,
        f"{base}/{'/'.join(quote(name, safe='') for name in names)}",
        dict,
        body=body,
        is_repeatable=method == "GET",
        read_timeout_s=_ANSWER_S,
    )
