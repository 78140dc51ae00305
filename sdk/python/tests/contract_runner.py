"""Runs scenarios of sdk/contract with this SDK; test/e2e/sdk-contract.test.ts compares the results.

Stdin: a list of scenarios, each with its address and keys. Stdout: for each scenario, a list with
the result or error of each step. `--async` uses AsyncForge.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import tempfile
import urllib.request
from collections.abc import AsyncIterable, Awaitable, Iterable, Mapping
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

from forge import AsyncForge, Forge, ForgeAPIError, ForgeError, ForgeHTTPError, JobFailedError
from forge.models.base import Model
from forge.verification import Verification

Json = dict[str, Any]


async def run_scenario(scenario: Json, folder: Path, *, by_awaiting: bool) -> list[Json]:
    variables: dict[str, str] = dict(scenario["variables"])
    clients: dict[str, Forge | AsyncForge] = {}
    outcomes: list[Json] = []
    for step in scenario["steps"]:
        who = step.get("as", "user")
        if who not in clients:
            kind = AsyncForge if by_awaiting else Forge
            limits = scenario.get("limits", {})
            clients[who] = kind(scenario["keys"][who], scenario["base_url"], **limits)
        # Tells the test that a step begins. The test assigns the next requests to this step.
        urllib.request.urlopen(scenario["step_url"], data=b"").close()
        try:
            result = await run_step(clients[who], step, variables, folder)
            outcomes.append({"result": result})
            for name, path in step.get("keep", {}).items():
                variables[name] = str(at_path(result, path))
        except ForgeError as error:
            outcomes.append({"error": described(error)})
        except Exception as error:
            outcomes.append({"error": {"type": type(error).__name__, "message": str(error)}})
            break
    for client in clients.values():
        await settled(client.close())
    return outcomes


async def run_step(
    client: Forge | AsyncForge, step: Json, variables: Mapping[str, str], folder: Path
) -> Any:  # noqa: ANN401 - any result, as JSON
    method: Any = client
    for name in step["call"].split("."):
        method = getattr(method, name)
    args = [given(each, variables, folder) for each in step.get("args", [])]
    options = {k: given(v, variables, folder) for k, v in step.get("options", {}).items()}
    return await plain(method(*args, **options))


def given(value: Any, variables: Mapping[str, str], folder: Path) -> Any:  # noqa: ANN401
    """Replaces `${name}` by a variable, and `$file` and `$folder` objects by paths below `folder`.

    Writes the `text` of each `$file` object to its path.
    """
    if isinstance(value, str):
        return re.sub(r"\$\{(\w+)\}", lambda found: variables[found[1]], value)
    if isinstance(value, list):
        return [given(each, variables, folder) for each in value]
    if isinstance(value, dict):
        if "$file" in value:
            path = folder / value["$file"]
            path.write_text(value["text"])
            return path
        if "$folder" in value:
            return folder / value["$folder"]
        return {name: given(each, variables, folder) for name, each in value.items()}
    return value


async def settled(value: Any) -> Any:  # noqa: ANN401
    return await value if isinstance(value, Awaitable) else value


async def plain(value: Any) -> Any:  # noqa: ANN401
    """Converts a result to JSON values, and iterables to lists."""
    value = await settled(value)
    if isinstance(value, Model):
        return value.to_dict()
    if isinstance(value, Verification):
        return value.as_json()
    if isinstance(value, Path):
        return {"$file": value.read_text()}
    if is_dataclass(value) and not isinstance(value, type):
        return await plain(asdict(value))
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    if isinstance(value, Mapping):
        return {name: await plain(each) for name, each in value.items()}
    if isinstance(value, AsyncIterable):
        return [await plain(each) async for each in value]
    assert isinstance(value, Iterable), value
    return [await plain(each) for each in value]


def at_path(value: Any, path: str) -> Any:  # noqa: ANN401
    for name in path.split("."):
        value = value[int(name)] if isinstance(value, list) else value[name]
    return value


def described(error: ForgeError) -> Json:
    """The public attributes of an error."""
    report: Json = {"type": type(error).__name__, "message": str(error)}
    if isinstance(error, (ForgeAPIError, ForgeHTTPError)):
        report |= {"status": error.status, "code": error.code}
    if isinstance(error, ForgeAPIError):
        report |= {"param": error.param, "request_id": error.request_id}
    if isinstance(error, JobFailedError):
        report["job"] = error.job.to_dict()
    return report


async def main() -> None:
    by_awaiting = "--async" in sys.argv
    outcomes = []
    with tempfile.TemporaryDirectory() as folder:
        for scenario in json.load(sys.stdin):
            found = await run_scenario(scenario, Path(folder), by_awaiting=by_awaiting)
            outcomes.append(found)
    json.dump(outcomes, sys.stdout)


asyncio.run(main())
