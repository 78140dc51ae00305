"""`forge pipelines`."""

from typing import Annotated, Any

import typer

from ..client import Forge
from ..declared_types import TEMPLATES
from ..models import Pipeline
from ..text import moment, usd
from .connection import client_of
from .options import AsJson, Limit, PipelineId, Wait, assignments, finite, read_body, templates
from .output import console, print_all, print_json, print_line
from .pipeline_wait import show, wait_for

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

Step = Annotated[str | None, typer.Argument(help="Needed if several wait.", show_default=False)]
Note = Annotated[str | None, typer.Option(help="Stored with the decision.")]
Budget = Annotated[float | None, typer.Option("--budget", min=0, callback=finite, help="In USD.")]
Gates = Annotated[
    list[str] | None,
    typer.Option(
        "--gate", metavar="STEP:CONDITION", help='"evaluate:scores.overall >= 0.7"; repeatable.'
    ),
]


@app.command()
def run(
    context: typer.Context,
    file: Annotated[
        str | None,
        typer.Argument(metavar="[FILE]", help="A pipeline as JSON; - is standard input."),
    ] = None,
    template: Annotated[
        str | None,
        typer.Option(help=f"{' or '.join(TEMPLATES)}.", autocompletion=templates),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="STEP.FIELD=VALUE", help="Field of a step's payload; repeatable."
        ),
    ] = None,
    skip: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Step to skip; repeatable.")
    ] = None,
    gate: Gates = None,
    approval: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Step that needs approval; repeatable."),
    ] = None,
    budget: Budget = None,
    reuse: Annotated[
        bool | None, typer.Option("--reuse/--no-reuse", help="Reuse earlier artifacts.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Display name.")] = None,
    tag: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Tag to find it by; repeatable.")
    ] = None,
    idempotency_key: Annotated[
        str | None, typer.Option(help="Idempotency key: repeating it creates no second pipeline.")
    ] = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Run a pipeline from a template or a file.

    \b
    forge pipelines run --template byo-data --wait \\
      --set audit.dataset_uri=forge://artifacts/datasets/ds_.../raw.jsonl \\
      --set distill.teacher=llama-3-70b --set train.model=llama-3-8b \\
      --gate "evaluate:scores.overall >= 0.7" --approval deploy --budget 50
    """
    if file is None and template is None:
        raise typer.BadParameter("give a file or a template", param_hint="'--template'")
    body = read_body(file, "FILE") if file else {}
    given: dict[str, Any] = {
        "template": template,
        "skip": skip,
        "gates": _gates(gate),
        "approvals": approval,
        "budget_usd": budget,
        "reuse": reuse,
        "name": name,
        "tags": tag,
    }
    body |= {key: value for key, value in given.items() if value is not None}
    for path, value in assignments(set_, "--set").items():
        _set(body, path, value)
    with client_of(context) as client:
        pipeline = client.pipelines.submit(body, idempotency_key=idempotency_key)
        _after(client, pipeline, wait=wait, as_json=as_json)


def _gates(given: list[str] | None) -> list[dict[str, str]] | None:
    found = []
    for text in given or []:
        step, is_there, condition = text.partition(":")
        if not is_there or not step.strip() or not condition.strip():
            raise typer.BadParameter(f"{text!r} is not step:condition", param_hint="'--gate'")
        found.append({"step": step.strip(), "condition": condition.strip()})
    return found or None


def _set(body: dict[str, Any], path: str, value: object) -> None:
    """Sets a field of a step's payload in the request body.

    `path` consists of the step's name, a dot, and the field's path in the payload. If the body
    defines the step in `steps`, sets the field in the step's `payload`. Otherwise, the step comes
    from the template: sets the field in the body's `params`, under the step's name. For example,
    `train.params.lr` then sets `params.train.params.lr`.
    """
    step, _, rest = path.partition(".")
    if not rest:
        raise typer.BadParameter(f"{path!r} is not step.field", param_hint="'--set'")
    own = _own_step(body, step)
    target = body if own is None else own
    *parents, last = ["params", *path.split(".")] if own is None else ["payload", *rest.split(".")]
    for name in parents:
        if target.get(name) is None:
            target[name] = {}
        target = target[name]
        if not isinstance(target, dict):
            raise typer.BadParameter(f"{path}: {name!r} has no fields", param_hint="'--set'")
    target[last] = value


def _own_step(body: dict[str, Any], name: str) -> dict[str, Any] | None:
    """Finds a step that the body defines, by name. Skips invalid entries: the API reports them."""
    steps = body.get("steps")
    for each in steps if isinstance(steps, list) else []:
        if isinstance(each, dict) and each.get("name") == name:
            return each
    return None


def _after(client: Forge, pipeline: Pipeline, *, wait: bool, as_json: bool) -> None:
    if wait:
        if not as_json:
            print_line(console(stderr=True), f"Running {pipeline.pipeline_id}")
        wait_for(client, pipeline, as_json=as_json)
    if as_json:
        print_json(pipeline.to_dict())
        return
    print_line(console(), pipeline.pipeline_id)
    err = console(stderr=True)
    if err.is_terminal:
        print_line(err, f"To wait for it: forge pipelines wait {pipeline.pipeline_id}", "dim")


@app.command("list")
def list_pipelines(
    context: typer.Context,
    status: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="running, waiting_approval, failed …; repeatable."),
    ] = None,
    tag: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="All of these; repeatable.")
    ] = None,
    search: Annotated[
        str | None,
        typer.Option("--search", "-q", help="Beginning of an id, or part of a name or tag."),
    ] = None,
    limit: Limit = 20,
    as_json: AsJson = False,
) -> None:
    """List pipelines, newest first."""
    with client_of(context) as client:
        found = list(client.pipelines.list(status=status, tag=tag, q=search, limit=limit))
    rows = (
        (
            each.pipeline_id,
            each.status,
            each.name or each.template or "",
            f"{sum(step.status == 'completed' for step in each.steps)}/{len(each.steps)}",
            usd(each.cost_usd),
            moment(each.created_at),
        )
        for each in found
    )
    heads = ("PIPELINE", "STATUS", "NAME", "STEPS", "COST", "CREATED")
    print_all("pipelines", found, heads, rows, nothing="No pipelines", as_json=as_json)


@app.command()
def status(context: typer.Context, pipeline_id: PipelineId, as_json: AsJson = False) -> None:
    """Show the current state of a pipeline's steps."""
    with client_of(context) as client:
        show(client.pipelines.get(pipeline_id), as_json=as_json)


@app.command()
def wait(context: typer.Context, pipeline_id: PipelineId, as_json: AsJson = False) -> None:
    """Wait until a pipeline ends; exit code 1 if it failed or was cancelled.

    Ctrl-C does not stop the pipeline.
    """
    with client_of(context) as client:
        wait_for(client, client.pipelines.get(pipeline_id), as_json=as_json)


@app.command()
def resume(
    context: typer.Context,
    pipeline_id: PipelineId,
    from_step: Annotated[
        str | None, typer.Option("--from", help="Repeat this step and all later ones.")
    ] = None,
    budget: Budget = None,
    gate: Gates = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Resume from the failed step. Keeps the results of earlier steps."""
    with client_of(context) as client:
        pipeline = client.pipelines.resume(
            pipeline_id, from_step=from_step, budget_usd=budget, gates=_gates(gate)
        )
        _after(client, pipeline, wait=wait, as_json=as_json)


@app.command()
def approve(
    context: typer.Context,
    pipeline_id: PipelineId,
    step: Step = None,
    note: Note = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Approve a waiting step."""
    with client_of(context) as client:
        name = step or _waiting_step(client, pipeline_id)
        pipeline = client.pipelines.approve(pipeline_id, name, note=note)
        _after(client, pipeline, wait=wait, as_json=as_json)


def _waiting_step(client: Forge, pipeline_id: str) -> str | None:
    """Returns the name of the only step that waits for approval. None if no or several steps wait.

    The client retries an approval only if the request names the step. Without a name, a retry could
    approve the next waiting step.
    """
    steps = client.pipelines.get(pipeline_id).steps
    waiting = [each.name for each in steps if each.status == "waiting_approval"]
    return waiting[0] if len(waiting) == 1 else None


@app.command()
def reject(
    context: typer.Context,
    pipeline_id: PipelineId,
    step: Step = None,
    note: Note = None,
    as_json: AsJson = False,
) -> None:
    """Reject a waiting step. The pipeline fails."""
    with client_of(context) as client:
        name = step or _waiting_step(client, pipeline_id)
        pipeline = client.pipelines.approve(pipeline_id, name, approved=False, note=note)
        _after(client, pipeline, wait=False, as_json=as_json)


@app.command()
def cancel(context: typer.Context, pipeline_id: PipelineId, as_json: AsJson = False) -> None:
    """Cancel a pipeline and its running jobs."""
    with client_of(context) as client:
        _after(client, client.pipelines.cancel(pipeline_id), wait=False, as_json=as_json)
