"""`forge doctor`."""

import os
from collections.abc import Iterator
from dataclasses import asdict

import httpx2
import typer
from rich.text import Text

from ..client import Forge
from ..errors import ForgeError
from ..settings import Settings
from ..text import shown
from .connection import chosen_for
from .doctor_checks import (
    FAILED,
    OK,
    WARNING,
    Check,
    account_checks,
    network_checks,
    service_checks,
)
from .output import console, print_json, print_line

_STYLES = {OK: "green", WARNING: "yellow", FAILED: "red"}


def doctor(context: typer.Context, *, as_json: bool) -> None:
    checks = []
    for check in _checks(context):
        checks.append(check)
        if not as_json:
            _show(check)
    is_well = all(check.state != FAILED for check in checks)
    if as_json:
        print_json({"ok": is_well, "checks": [asdict(check) for check in checks]})
    raise typer.Exit(0 if is_well else 1)


def _show(check: Check) -> None:
    out = console()
    line = Text(f"{check.state:<8} ", _STYLES[check.state])
    line.append(f"{check.name}: ", "not bold default").append(shown(check.detail), "default")
    out.print(line, soft_wrap=True)
    if check.advice:
        print_line(out, f"         {check.advice}")


def _checks(context: typer.Context) -> Iterator[Check]:
    """Runs the checks in order.

    Skips the remaining groups of checks if the settings are invalid, or if a check of the network
    or the service fails. A failure of the check `versions` skips nothing.
    """
    try:
        chosen = chosen_for(context)
        settings = Settings.load(chosen.api_key, chosen.base_url, os.environ)
    except ForgeError as error:
        advice = "Log in: forge login. Or start a local stack: npm start."
        yield Check("settings", FAILED, str(error), advice)
        return
    yield Check("settings", OK, f"{settings.base_url} (from {chosen.source})")
    for part in (network_checks(httpx2.URL(settings.base_url)), service_checks(settings)):
        found = []
        for check in part:
            found.append(check)
            yield check
        if any(check.name != "versions" and check.state == FAILED for check in found):
            return
    with Forge(settings.api_key, settings.base_url, timeout=10, max_retries=0) as client:
        yield from account_checks(client)
