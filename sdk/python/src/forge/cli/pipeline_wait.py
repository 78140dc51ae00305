"""Waits for a pipeline and shows its progress."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import NoReturn

import typer

from ..client import Forge
from ..errors import PipelineFailedError
from ..live import board, is_shown
from ..models import Pipeline, PipelineStep
from ..text import usd
from .job_wait import detach
from .output import console, print_json, print_line
from .pipeline_tree import PipelineTree

_POLL_INTERVAL_S = 1.0


def wait_for(client: Forge, pipeline: Pipeline, *, as_json: bool) -> NoReturn:
    """Waits until the pipeline ends, then ends the command.

    Exit code 0 if the pipeline has completed, 1 if it has failed or was cancelled. When a step
    waits for approval, shows how to approve the step, and continues to wait.
    """
    pipeline_id = pipeline.pipeline_id
    tree = PipelineTree(pipeline)
    is_drawn = not as_json and is_shown(True)
    print_changes = _status_printer(approvals_only=as_json)

    def on_update(pipeline: Pipeline) -> None:
        tree.update(pipeline)
        if not is_drawn:
            print_changes(pipeline)

    code = 0
    try:
        with board.show(tree) if is_drawn else nullcontext():
            pipeline = client.pipelines.wait(pipeline_id, _POLL_INTERVAL_S, on_update=on_update)
    except PipelineFailedError as error:
        pipeline, code = error.pipeline, 1
    except KeyboardInterrupt:
        detach(
            pipeline_id,
            f"forge pipelines wait {pipeline_id}",
            f"forge pipelines status {pipeline_id}",
        )
    show(pipeline, as_json=as_json)
    if code and not as_json and pipeline.status == "failed":
        err = console(stderr=True)
        print_line(err, "To resume from the failed step after a fix:")
        print_line(err, f"  forge pipelines resume {pipeline_id} --wait")
    raise typer.Exit(code)


def show(pipeline: Pipeline, *, as_json: bool) -> None:
    if as_json:
        print_json(pipeline.to_dict())
        return
    console().print(PipelineTree(pipeline))
    for step in pipeline.steps:
        if step.status == "waiting_approval":
            _ask(pipeline, step)


def _ask(pipeline: Pipeline, step: PipelineStep) -> None:
    err = console(stderr=True)
    print_line(err, f"{step.name} waits for approval:")
    print_line(err, f"  forge pipelines approve {pipeline.pipeline_id} {step.name}")


def _status_printer(*, approvals_only: bool) -> Callable[[Pipeline], None]:
    """Returns a function that prints each step whose status has changed.

    With `approvals_only`, the function prints only steps that now wait for approval. `wait_for`
    uses the function if there is no live display.
    """
    known: dict[str, str] = {}

    def print_changes(pipeline: Pipeline) -> None:
        for step in pipeline.steps:
            if known.get(step.name, "pending") != step.status:
                if not approvals_only:
                    words = [f"{step.name}: {step.status}", usd(step.cost_usd), step.error]
                    print_line(console(stderr=True), "  ".join(word for word in words if word))
                if step.status == "waiting_approval":
                    _ask(pipeline, step)
            known[step.name] = step.status

    return print_changes
