"""Pipelines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..async_transport import AsyncTransport
from ..errors import PipelineFailedError
from ..following import OUTAGE_S
from ..listing import PageRequest
from ..models import Pipeline, PipelineEstimate
from ..operation import Async, M, Resource, Sync, listing, operation
from ..request import AppliedCheck, Request, create, get, path_of, post, without_none
from ..retry_policy import Deadline
from ..transport import Transport

OnUpdate = Callable[[Pipeline], None]
Fields = Mapping[str, Any]


class PipelinesOperations(Resource[M]):
    """The methods of `client.pipelines` that `Forge` and `AsyncForge` share."""

    @operation
    def create(
        self,
        template: str | None = None,
        params: Mapping[str, Fields] | None = None,
        *,
        steps: Sequence[Fields] | None = None,
        skip: Sequence[str] | None = None,
        gates: Sequence[Fields] | None = None,
        approvals: Sequence[str] | None = None,
        budget_usd: float | None = None,
        sweep: Sequence[Fields] | None = None,
        best_by: str | None = None,
        reuse: bool | None = None,
        name: str | None = None,
        tags: Sequence[str] | None = None,
        idempotency_key: str | None = None,
    ) -> Request[Pipeline]:
        """Starts a pipeline from `steps`, or a `template` (`byo-data`, `synthetic`) with `params`.

        `gates`: conditions that steps must meet, such as
        `{"step": "evaluate", "condition": "scores.overall >= 0.7"}`.
        """
        body = {
            "template": template,
            "params": params,
            "steps": steps,
            "skip": skip,
            "gates": gates,
            "approvals": approvals,
            "budget_usd": budget_usd,
            "sweep": sweep,
            "best_by": best_by,
            "reuse": reuse,
            "name": name,
            "tags": tags,
        }
        return create("/api/pipelines", Pipeline, body, idempotency_key)

    run = create
    """Alias of `create`."""

    @operation
    def submit(self, body: Fields, *, idempotency_key: str | None = None) -> Request[Pipeline]:
        """Starts a pipeline from a body in the API's format."""
        return create("/api/pipelines", Pipeline, body, idempotency_key)

    @listing
    def list(
        self,
        *,
        status: str | Sequence[str] | None = None,
        tag: str | Sequence[str] | None = None,
        q: str | None = None,
        user_id: str | None = None,
        limit: int | None = None,
        page_size: int | None = None,
    ) -> PageRequest[Pipeline]:
        """Lists pipelines, newest first. `limit`: maximum number in total.

        `q`: the beginning of an id, or a part of a name or tag.
        """
        query = {"status": status, "tag": tag, "q": q, "user_id": user_id}
        return PageRequest("/api/pipelines", "pipelines", Pipeline, query, limit, page_size)

    @operation
    def estimate(self, body: Mapping[str, Any]) -> Request[PipelineEstimate]:
        """Estimates cost and duration of a pipeline. Does not start it.

        `body`: as for `submit`.
        """
        return Request("POST", "/api/pipelines/estimate", PipelineEstimate, body=body)

    @operation
    def get(self, pipeline_id: str) -> Request[Pipeline]:
        """Reads the current state of the pipeline."""
        return self._get(pipeline_id)

    @operation
    def cancel(self, pipeline_id: str) -> Request[Pipeline]:
        """Cancels the pipeline and its running jobs."""
        return post(path_of("/api/pipelines/{}/cancel", pipeline_id), Pipeline)

    @operation
    def resume(
        self,
        pipeline_id: str,
        *,
        from_step: str | None = None,
        budget_usd: float | None = None,
        gates: Sequence[Fields] | None = None,
        idempotency_key: str | None = None,
    ) -> Request[Pipeline]:
        """Resumes from the failed step. With `from_step`, repeats that step and all later ones."""
        path = path_of("/api/pipelines/{}/resume", pipeline_id)
        body = {"from": from_step, "budget_usd": budget_usd, "gates": gates}
        return create(path, Pipeline, body, idempotency_key)

    @operation
    def approve(
        self,
        pipeline_id: str,
        step: str | None = None,
        *,
        approved: bool = True,
        note: str | None = None,
    ) -> Request[Pipeline]:
        """Approves a waiting step. With `approved=False`, rejects it: the pipeline fails.

        `step` defaults to the waiting step. Without `step`, the request is not retried if the
        response is lost.
        """
        path = path_of("/api/pipelines/{}/approve", pipeline_id)
        request = post(path, Pipeline, step=step, approved=approved, note=note)
        if step is None:
            # A retry could approve the next waiting step.
            return replace(request, is_repeatable=False)

        def is_ours(pipeline: Pipeline) -> bool:
            given = next((each.approval for each in pipeline.steps if each.name == step), None)
            return given is not None and (given.approved, given.note) == (approved, note)

        applied_check = AppliedCheck(
            {"no_step_waiting", "step_not_waiting"}, self._get(pipeline_id), is_ours
        )
        return replace(request, applied_check=applied_check)

    @operation
    def set_budget(
        self, pipeline_id: str, budget_usd: float | None, *, warning_usd: float | None = None
    ) -> Request[Pipeline]:
        """Changes the budget of a running pipeline. None removes it."""
        path = path_of("/api/pipelines/{}/budget", pipeline_id)
        body = {"budget_usd": budget_usd, **without_none({"warning_usd": warning_usd})}
        return Request("PUT", path, Pipeline, body=body)

    def _get(self, pipeline_id: str) -> Request[Pipeline]:
        return get(path_of("/api/pipelines/{}", pipeline_id), Pipeline)


class _PipelineWatch:
    """Decides when to end one wait. Used by `Forge` and `AsyncForge`. Does no I/O."""

    def __init__(
        self, pipeline_id: str, poll_interval: float, timeout: float | None, stop_at_approval: bool
    ) -> None:
        self.deadline = Deadline(pipeline_id, poll_interval, timeout)
        self._stop_at_approval = stop_at_approval
        self._last: Pipeline | None = None

    def has_changed(self, pipeline: Pipeline) -> bool:
        has_changed = pipeline != self._last
        self._last = pipeline
        return has_changed

    def is_over(self, pipeline: Pipeline) -> bool:
        """Whether to end the wait. Raises PipelineFailedError and WaitTimeoutError."""
        if pipeline.status == "completed":
            return True
        if pipeline.is_final:
            raise PipelineFailedError(pipeline)
        if self._stop_at_approval and pipeline.status == "waiting_approval":
            return True
        self.deadline.check(pipeline.status)
        return False


class Pipelines(PipelinesOperations[Sync]):
    """`Forge.pipelines`."""

    _transport: Transport

    def wait(
        self,
        pipeline_id: str,
        poll_interval: float = 5.0,
        timeout: float | None = None,
        on_update: OnUpdate | None = None,
        *,
        stop_at_approval: bool = False,
    ) -> Pipeline:
        """Waits until the pipeline has completed. Raises PipelineFailedError and WaitTimeoutError.

        `on_update` is called after each change. With `stop_at_approval`, also returns when a step
        waits for approval.
        """
        watch = _PipelineWatch(pipeline_id, poll_interval, timeout, stop_at_approval)
        while True:
            retry_policy = self._transport.wire.retry_policy(OUTAGE_S, watch.deadline)
            pipeline = self._transport.run(self._get(pipeline_id), retry_policy)
            if watch.has_changed(pipeline) and on_update:
                on_update(pipeline)
            if watch.is_over(pipeline):
                return pipeline
            self._transport.pause(watch.deadline.pause_s())


class AsyncPipelines(PipelinesOperations[Async]):
    """`AsyncForge.pipelines`."""

    _transport: AsyncTransport

    async def wait(
        self,
        pipeline_id: str,
        poll_interval: float = 5.0,
        timeout: float | None = None,
        on_update: OnUpdate | None = None,
        *,
        stop_at_approval: bool = False,
    ) -> Pipeline:
        """Waits until the pipeline has completed. Raises PipelineFailedError and WaitTimeoutError.

        `on_update` is called after each change. With `stop_at_approval`, also returns when a step
        waits for approval.
        """
        watch = _PipelineWatch(pipeline_id, poll_interval, timeout, stop_at_approval)
        while True:
            retry_policy = self._transport.wire.retry_policy(OUTAGE_S, watch.deadline)
            pipeline = await self._transport.run(self._get(pipeline_id), retry_policy)
            if watch.has_changed(pipeline) and on_update:
                on_update(pipeline)
            if watch.is_over(pipeline):
                return pipeline
            await self._transport.pause(watch.deadline.pause_s())
