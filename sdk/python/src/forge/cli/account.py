"""`forge login`, `logout` and `whoami`."""

import getpass
import os
import sys
from collections.abc import Callable

import typer

from ..client import Forge
from ..errors import ForgeError
from ..settings import Settings
from . import saved_login
from .connection import chosen_for, client_of
from .job_wait import INTERRUPTED
from .output import console, print_fields, print_json, print_line


def login(address: str | None, *, from_stdin: bool, as_json: bool) -> None:
    base_url = address or _ask_address(can_ask=not from_stdin and not as_json)
    key = _read_key(from_stdin=from_stdin, can_ask=not as_json)
    settings = Settings.load(key, base_url, {})
    with Forge(settings.api_key, settings.base_url) as client:
        identity = client.service.ping()
    saved_login.write(saved_login.SavedLogin(settings.base_url, settings.api_key))
    if as_json:
        print_json({"base_url": settings.base_url, **identity.to_dict()})
        return
    out = console()
    print_line(out, f"Logged in to {settings.base_url} as {identity.user_id}, in", "green")
    print_line(out, str(saved_login.path()))
    if os.environ.get("SERVICE_API_KEY") or os.environ.get("SERVICE_BASE_URL"):
        print_line(
            console(stderr=True),
            "SERVICE_API_KEY and SERVICE_BASE_URL take precedence while they are set",
            "yellow",
        )


def _ask_address(*, can_ask: bool) -> str:
    if not can_ask or not sys.stdin.isatty():
        raise ForgeError("give the address: forge login https://forge.example.com")
    try:
        saved = saved_login.read()
    except ForgeError:
        saved = None  # unreadable; the new login will replace it
    return _answer(
        lambda: typer.prompt("Address", default=saved.base_url if saved else None, err=True)
    )


def _read_key(*, from_stdin: bool, can_ask: bool) -> str:
    if sys.stdin.isatty() and (can_ask or from_stdin):
        key = _answer(lambda: getpass.getpass("Key (not shown): ")).strip()
    elif from_stdin:
        key = sys.stdin.readline().strip()
    else:
        raise ForgeError("not a terminal, so the key can't be asked for; use --api-key-stdin")
    if not key:
        raise ForgeError("no key was given")
    return key


def _answer(ask: Callable[[], str]) -> str:
    """Prompts the user. After Ctrl-C, prints a line end and exits with code 130."""
    try:
        return ask()
    except (typer.Abort, KeyboardInterrupt) as error:
        print(file=sys.stderr)
        if isinstance(error.__context__, EOFError):
            raise
        raise typer.Exit(INTERRUPTED) from None


def logout(*, as_json: bool) -> None:
    was_there = saved_login.remove()
    if as_json:
        print_json({"logged_out": was_there})
    else:
        print_line(console(), "Logged out" if was_there else "Not logged in")


def whoami(context: typer.Context, *, as_json: bool) -> None:
    chosen = chosen_for(context)
    with client_of(context) as client:
        identity = client.service.ping()
        base_url = client.base_url
    if as_json:
        print_json({**identity.to_dict(), "base_url": base_url, "source": chosen.source})
        return
    print_fields(
        {
            "user": identity.user_id,
            "key": f"{identity.key_id} ({identity.scope})",
            "address": base_url,
            "by": chosen.source,
        }
    )
