"""`forge deployments`."""

from typing import Annotated, Any

import typer

from ..errors import ForgeError
from ..text import moment, shown, usd
from .connection import client_of
from .options import AsJson, DeploymentId, Limit
from .output import print_all, print_json, print_one, print_text

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.command("list")
def list_deployments(
    context: typer.Context,
    status: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="active, stopping or stopped; repeatable."),
    ] = None,
    limit: Limit = 20,
    as_json: AsJson = False,
) -> None:
    """List served models, newest first."""
    with client_of(context) as client:
        found = list(client.deployments.list(status=status, limit=limit))
    rows = (
        (
            each.deployment_id,
            each.status,
            usd(each.cost_usd),
            each.checkpoint_id,
            moment(each.created_at),
            each.trouble,
        )
        for each in found
    )
    heads = ("DEPLOYMENT", "STATUS", "COST", "CHECKPOINT", "CREATED", "TROUBLE")
    print_all("deployments", found, heads, rows, nothing="No deployments", as_json=as_json)


@app.command()
def get(context: typer.Context, deployment_id: DeploymentId, as_json: AsJson = False) -> None:
    """Show a deployment: its address and cost."""
    with client_of(context) as client:
        found = client.deployments.get(deployment_id)
    fields = {
        "deployment": found.deployment_id,
        "status": found.status,
        "trouble": found.trouble,
        "address": found.url,
        "checkpoint": found.checkpoint_id,
        "cost": usd(found.cost_usd),
        "created": moment(found.created_at),
        "stopped": moment(found.stopped_at),
    }
    print_one(found, fields, as_json=as_json)


@app.command()
def stats(context: typer.Context, deployment_id: DeploymentId, as_json: AsJson = False) -> None:
    """Show a deployment's requests of the last day."""
    with client_of(context) as client:
        found = client.deployments.stats(deployment_id)
    total = found.total
    fields = {
        "requests": total.requests,
        "errors": total.errors,
        "latency p50": _seconds(total.latency_p50_s),
        "latency p99": _seconds(total.latency_p99_s),
        "tokens in": total.input_tokens,
        "tokens out": total.output_tokens,
    }
    print_one(found, fields, as_json=as_json)


def _seconds(value: float | None) -> str | None:
    return None if value is None else f"{value:g} s"


@app.command()
def stop(context: typer.Context, deployment_id: DeploymentId, as_json: AsJson = False) -> None:
    """Stop a deployment and its billing."""
    with client_of(context) as client:
        found = client.deployments.stop(deployment_id)
    print_one(found, f"{found.deployment_id} is {found.status}", as_json=as_json)


@app.command()
def ask(
    context: typer.Context,
    deployment_id: DeploymentId,
    question: Annotated[str, typer.Argument(metavar="QUESTION")],
    system: Annotated[str | None, typer.Option(help="System message.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="Limit for the answer.")] = None,
    as_json: AsJson = False,
) -> None:
    """Send a question to a served model.

    \b
    forge deployments ask dep_... "What is 17 + 25?"
    """
    messages = [{"role": "system", "content": system}] if system else []
    body: dict[str, Any] = {"messages": [*messages, {"role": "user", "content": question}]}
    if max_tokens:
        body["max_tokens"] = max_tokens
    with client_of(context) as client:
        answer = client.deployments.ask(deployment_id, "chat/completions", body)
    if as_json:
        print_json(answer)
    else:
        print_text(_text_of(answer))


def _text_of(answer: dict[str, Any]) -> str:
    try:
        return str(answer["choices"][0]["message"]["content"])
    except (KeyError, IndexError, TypeError):
        raise ForgeError(f"the model's answer has no text: {shown(str(answer))[:200]}") from None
