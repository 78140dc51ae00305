"""Chooses the address and key for a command."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import cast

import typer

from ..client import Forge
from . import saved_login


@dataclass(frozen=True)
class Chosen:
    """The chosen address and key. If a value is None, the SDK uses its default."""

    base_url: str | None
    api_key: str | None
    source: str


def choose(base_url: str | None, api_key: str | None) -> Chosen:
    """Chooses address and key. Precedence: options, environment, `forge login`, local stack.

    A saved key is only sent to the address that it was saved with.
    """
    url = base_url or os.environ.get("SERVICE_BASE_URL") or None
    key = api_key or os.environ.get("SERVICE_API_KEY") or None
    if url and key:
        return Chosen(url, key, "options" if base_url and api_key else "environment")
    saved = saved_login.read()
    if saved and (url is None or url.rstrip("/") == saved.base_url):
        source = "environment and login" if key else "login"
        return Chosen(saved.base_url, key or saved.api_key, source)
    return Chosen(url, key, "local stack")


def connect(base_url: str | None, api_key: str | None, **options: float) -> Forge:
    """Creates a client. Raises ForgeError if there is no address or no key."""
    chosen = choose(base_url, api_key)
    return Forge(chosen.api_key, chosen.base_url, **options)  # type: ignore[arg-type]


def client_of(context: typer.Context) -> Forge:
    """Creates the client of a command. Applies the options that the user gave to `forge`."""
    return cast(Forge, context.obj())


def chosen_for(context: typer.Context) -> Chosen:
    given = context.find_root().params
    return choose(given.get("base_url"), given.get("api_key"))
