"""Pipelines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..async_transport import AsyncTransport
from ..errors import ForgeError, PipelineFailedError
from ..following import OUTAGE_S
from ..listing import PageRequest
from ..models import Pipeline, PipelineEstimate
from ..operation import Async, M, Resource, Sync, listing, operation
from ..request import Request, Settled, create, get, path_of, post, without_none
from ..retries import Deadline
from ..transport import Transport

OnUpdate = Callable[[Pipeline], None]
Fields = Mapping[str, Any]


class PipelinesOperations(Resource[M]):
    """`client.pipelines`."""

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
        """Begins one: by a `template` (`byo-data`, `synthetic`) and `params` by step, or `steps`.

        A gate is `{"step": "evaluate", "condition": "scores.overall >= 0.7"}`.
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
        return create("/api/pipelines", Pipeline.model_validate, body, idempotency_key)

    run = create
    """The same as `create`."""

    @operation
    def submit(self, body: Fields, *, idempotency_key: str | None = None) -> Request[Pipeline]:
        """Begins one, by a body as the API takes it."""
        return create("/api/pipelines", Pipeline.model_validate, body, idempotency_key)

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
        """Pipelines, newest first; `limit` is how many in all.

        `q` is the beginning of an id, or a part of a name or of a tag.
        """
        query = {"status": status, "tag": tag, "q": q, "user_id": user_id}
        read = Pipeline.model_validate
        return PageRequest("/api/pipelines", "pipelines", read, query, limit, page_size)

    @operation
    def estimate(self, body: Mapping[str, Any]) -> Request[PipelineEstimate]:
        """What a pipeline would cost and take, by the body that `submit` takes."""
        parse = PipelineEstimate.model_validate
        return Request("POST", "/api/pipelines/estimate", parse, body=body)

    @operation
    def get(self, pipeline_id: str) -> Request[Pipeline]:
        """The pipeline as it is now."""
        return self._get(pipeline_id)

    @operation
    def cancel(self, pipeline_id: str) -> Request[Pipeline]:
        """Cancels it, and the jobs under way."""
        return post(path_of("/api/pipelines/{}/cancel", pipeline_id), Pipeline.model_validate)

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
        """Goes on from what failed; with `from_step`, that step and all after it are done again."""
        path = path_of("/api/pipelines/{}/resume", pipeline_id)
        body = {"from": from_step, "budget_usd": budget_usd, "gates": gates}
        return create(path, Pipeline.model_validate, body, idempotency_key)

    @operation
    def approve(
        self,
        pipeline_id: str,
        step: str | None = None,
        *,
        approved: bool = True,
        note: str | None = None,
    ) -> Request[Pipeline]:
        """Lets a step begin that waits for it; `approved=False` fails the pipeline.

        Without a `step` it is the one that waits; then it is not sent again where the answer is
        lost.
        """
        request = post(
            path_of("/api/pipelines/{}/approve", pipeline_id),
            Pipeline.model_validate,
            step=step,
            approved=approved,
            note=note,
        )
        if step is None:
            # Said twice, it might be heard by the next step that waits.
            return replace(request, is_repeatable=False)

        def is_ours(pipeline: Pipeline) -> bool:
            given = next((each.approval for each in pipeline.steps if each.name == step), None)
            return given is not None and (given.approved, given.note) == (approved, note)

        settled = Settled({"no_step_waiting", "step_not_waiting"}, self._get(pipeline_id), is_ours)
        return replace(request, settled=settled)

    @operation
    def set_budget(
        self, pipeline_id: str, budget_usd: float | None, *, warning_usd: float | None = None
    ) -> Request[Pipeline]:
        """Changes the budget of one that is under way; None takes it away."""
        path = path_of("/api/pipelines/{}/budget", pipeline_id)
        body = {"budget_usd": budget_usd, **without_none({"warning_usd": warning_usd})}
        return Request("PUT", path, Pipeline.model_validate, body=body)

    def _get(self, pipeline_id: str) -> Request[Pipeline]:
        return get(path_of("/api/pipelines/{}", pipeline_id), Pipeline.model_validate)


class _PipelineWatch:
    """The decisions of one wait, without I/O."""

    def __init__(
        self, pipeline_id: str, poll_interval: float, timeout: float | None, stop_at_approval: bool
    ) -> None:
        if not poll_interval > 0:
            raise ForgeError("poll_interval must be more than 0")
        self._poll_interval = poll_interval
        self.deadline = Deadline(pipeline_id, timeout)
        self._stop_at_approval = stop_at_approval
        self._last: Pipeline | None = None

    def is_news(self, pipeline: Pipeline) -> bool:
        is_news = pipeline != self._last
        self._last = pipeline
        return is_news

    def is_over(self, pipeline: Pipeline) -> bool:
        """Raises PipelineFailedError, and WaitTimeoutError."""
        if pipeline.status == "completed":
            return True
        if pipeline.is_final:
            raise PipelineFailedError(pipeline)
        if self._stop_at_approval and pipeline.status == "waiting_approval":
            return True
        self.deadline.status = pipeline.status
        self.deadline.check()
        return False

    def pause_s(self) -> float:
        return max(0.0, min(self._poll_interval, self.deadline.left_s()))


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
        """Returns when it has completed. Raises PipelineFailedError and WaitTimeoutError.

        `on_update` is told of it whenever something has changed. With `stop_at_approval` it also
        returns when a step waits for a person.
        """
        watch = _PipelineWatch(pipeline_id, poll_interval, timeout, stop_at_approval)
        while True:
            patience = self._transport.wire.patience(OUTAGE_S, watch.deadline)
            pipeline = self._transport.run(self._get(pipeline_id), patience)
            if watch.is_news(pipeline) and on_update:
                on_update(pipeline)
            if watch.is_over(pipeline):
                return pipeline
            self._transport.pause(watch.pause_s())


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
        """Returns when it has completed. Raises PipelineFailedError and WaitTimeoutError.

        `on_update` is told of it whenever something has changed. With `stop_at_approval` it also
        returns when a step waits for a person.
        """
        watch = _PipelineWatch(pipeline_id, poll_interval, timeout, stop_at_approval)
        while True:
            patience = self._transport.wire.patience(OUTAGE_S, watch.deadline)
            pipeline = await self._transport.run(self._get(pipeline_id), patience)
            if watch.is_news(pipeline) and on_update:
                on_update(pipeline)
            if watch.is_over(pipeline):
                return pipeline
            await self._transport.pause(watch.pause_s())
