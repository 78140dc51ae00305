"""Arguments and options of several commands, with shell completion."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from ..client import Forge
from ..declared_types import JOB_TYPES, TEMPLATES
from ..errors import ForgeError
from .connection import chosen_for

_MAX_COMPLETIONS = 30
"""Number of newest entries offered for completion."""

List = Callable[[Forge], Iterable[tuple[str, str]]]


def _ids(list_ids: List) -> Callable[[typer.Context, str], list[tuple[str, str]]]:
    """Returns a completion function for the shell. It offers ids, each with a description.

    If Forge does not respond quickly, the function offers nothing.
    """

    def complete(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
        try:
            chosen = chosen_for(ctx)
            with Forge(chosen.api_key, chosen.base_url, timeout=2, max_retries=0) as client:
                found = list(list_ids(client))
        except ForgeError:
            return []
        return [(name, about) for name, about in found if name.startswith(incomplete)]

    return complete


def _jobs(client: Forge) -> Iterable[tuple[str, str]]:
    jobs = client.jobs.list(limit=_MAX_COMPLETIONS)
    return ((job.job_id, f"{job.job_type}, {job.raw_status}") for job in jobs)


def _pipelines(client: Forge) -> Iterable[tuple[str, str]]:
    found = client.pipelines.list(limit=_MAX_COMPLETIONS)
    return ((each.pipeline_id, f"{each.name or each.template}, {each.status}") for each in found)


def _artifacts(client: Forge) -> Iterable[tuple[str, str]]:
    found = client.artifacts.list(limit=_MAX_COMPLETIONS)
    return ((each.artifact_id, each.name or each.kind) for each in found)


def _workers(client: Forge) -> Iterable[tuple[str, str]]:
    return ((each.worker_id, each.status) for each in client.workers.list(limit=_MAX_COMPLETIONS))


def _deployments(client: Forge) -> Iterable[tuple[str, str]]:
    found = client.deployments.list(limit=_MAX_COMPLETIONS)
    return ((each.deployment_id, each.status) for each in found)


def _keys(client: Forge) -> Iterable[tuple[str, str]]:
    found = client.api_keys.list(limit=_MAX_COMPLETIONS)
    return ((each.key_id, each.name) for each in found if not each.revoked_at)


def job_types(incomplete: str) -> list[str]:
    return [each for each in JOB_TYPES if each.startswith(incomplete)]


def templates(incomplete: str) -> list[str]:
    return [each for each in TEMPLATES if each.startswith(incomplete)]


def _id(metavar: str, list_ids: List) -> Any:  # noqa: ANN401 (typer gives no type)
    return typer.Argument(metavar=metavar, autocompletion=_ids(list_ids), show_default=False)


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, help="Maximum number.")]
JobTypes = Annotated[
    list[str] | None,
    typer.Option(
        "--type", metavar="NAME", help="train, audit …; repeatable.", autocompletion=job_types
    ),
]
Wait = Annotated[
    bool, typer.Option("--wait", "-w", help="Wait until it ends; exit code 1 if it failed.")
]
JobId = Annotated[str, _id("JOB_ID", _jobs)]
PipelineId = Annotated[str, _id("PIPELINE_ID", _pipelines)]
ArtifactId = Annotated[str, _id("ARTIFACT_ID", _artifacts)]
WorkerId = Annotated[str, _id("WORKER_ID", _workers)]
DeploymentId = Annotated[str, _id("DEPLOYMENT_ID", _deployments)]
KeyId = Annotated[str, _id("KEY_ID", _keys)]


def finite(value: float | None) -> float | None:
    """Refuses NaN and infinity, which JSON can't represent."""
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is not a number of USD")
    return value


Period = Annotated[
    str | None,
    typer.Option("--period", metavar="YYYY-MM", help="Month in UTC (default: current)."),
]


def assignments(given: list[str] | None, option: str) -> dict[str, Any]:
    """Parses `["lr=1e-4", "name=x"]`. A value that is not JSON is a string."""
    found: dict[str, Any] = {}
    for text in given or []:
        name, is_there, value = text.partition("=")
        if not is_there or not name:
            raise typer.BadParameter(f"{text!r} is not name=value", param_hint=f"'{option}'")
        try:
            found[name] = parse_json(value)
        except (OverflowError, RecursionError) as error:
            raise typer.BadParameter(f"{name}: {error}", param_hint=f"'{option}'") from None
        except ValueError:
            found[name] = value
    return found


def parse_json(text: str) -> Any:  # noqa: ANN401 (JSON)
    """Parses JSON.

    Raises ValueError for invalid JSON, RecursionError for JSON that is nested too deeply, and
    OverflowError for NaN, Infinity and 1e999.
    """
    try:
        return json.loads(text, parse_float=_number, parse_constant=_number)
    except RecursionError:
        raise RecursionError("it is nested too deeply") from None


def _number(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise OverflowError(f"{text} is not a valid JSON number")
    return number


def read_body(source: str, option: str = "--file") -> dict[str, Any]:
    """Reads a JSON object from a file, or from standard input for `-`."""
    try:
        if source == "-":
            text = typer.get_text_stream("stdin").read().removeprefix("\ufeff")
        else:
            text = Path(source).read_text("utf-8-sig")
        body = parse_json(text)
    except (OSError, ValueError, OverflowError, RecursionError) as error:
        raise typer.BadParameter(f"{source}: {error}", param_hint=f"'{option}'") from None
    if not isinstance(body, dict):
        raise typer.BadParameter(f"{source} has no JSON object", param_hint=f"'{option}'")
    return body
