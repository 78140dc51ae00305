"""The common options of all submission commands."""

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Annotated, Any

import typer

from ..request import without_none
from .options import AsJson, Wait, assignments, read_body

Payload = dict[str, Any]
Finish = Callable[..., None]
"""Submits a body: `finish(context, job_type, body, idempotency_key, wait=…, as_json=…)`."""


def options(
    context: typer.Context,
    gpu: Annotated[int | None, typer.Option(min=0, help="Number of GPUs.")] = None,
    gpu_type: Annotated[str | None, typer.Option(help="Part of the GPU's name, e.g. A100.")] = None,
    memory_gb: Annotated[
        int | None, typer.Option("--memory-gb", min=0, help="Minimum memory of one GPU.")
    ] = None,
    worker_tag: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Tag that the worker must have; repeatable."),
    ] = None,
    priority: Annotated[
        int | None, typer.Option(min=-100, max=100, help="Higher runs first.")
    ] = None,
    tag: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Tag to find it by; repeatable.")
    ] = None,
    param: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Passed to the worker, e.g. lr=1e-4; repeatable."),
    ] = None,
    notes: Annotated[str | None, typer.Option(help="Free text.")] = None,
    timeout_s: Annotated[
        int | None, typer.Option("--timeout", min=1, help="Time-out of one attempt, in seconds.")
    ] = None,
    max_attempts: Annotated[int | None, typer.Option(min=1, help="Attempts in total.")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Any other field; repeatable."),
    ] = None,
    file: Annotated[
        str | None,
        typer.Option("--file", help="JSON file with the body; - is standard input."),
    ] = None,
    idempotency_key: Annotated[
        str | None, typer.Option(help="Idempotency key: repeating it creates no second job.")
    ] = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Declares the common options. `submission` copies the signature. The code never calls this."""


def submission(app: typer.Typer, finish: Finish) -> Callable[[Callable[..., Payload]], Any]:
    """Returns a decorator. It turns a function that returns a job type's payload into a command."""

    def decorate(payload_of: Callable[..., Payload]) -> Any:  # noqa: ANN401
        own = inspect.signature(payload_of).parameters
        common = inspect.signature(options).parameters

        @wraps(payload_of)
        def command(context: typer.Context, **given: Any) -> None:  # noqa: ANN401
            payload = payload_of(**{name: given.pop(name) for name in own})
            body = {
                **(read_body(given["file"]) if given["file"] else {}),
                **without_none(payload),
                **_option_fields(given),
                **assignments(given["set_"], "--set"),
            }
            finish(
                context,
                payload_of.__name__,
                body,
                given["idempotency_key"],
                wait=given["wait"],
                as_json=given["as_json"],
            )

        parameters = [
            each.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for each in (*own.values(), *common.values())
        ]
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return app.command()(command)

    return decorate


def _option_fields(given: Mapping[str, Any]) -> Payload:
    resources = {
        "gpu": given["gpu"],
        "gpu_type": given["gpu_type"],
        "memory_gb": given["memory_gb"],
        "tags": given["worker_tag"],
    }
    return without_none(
        {
            "resources": without_none(resources) or None,
            "priority": given["priority"],
            "tags": given["tag"],
            "params": assignments(given["param"], "--param") or None,
            "notes": given["notes"],
            "timeout_s": given["timeout_s"],
            "max_attempts": given["max_attempts"],
        }
    )
