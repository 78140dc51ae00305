"""`forge keys`."""

from typing import Annotated

import typer

from ..text import moment
from .connection import client_of
from .options import AsJson, KeyId, Limit
from .output import console, print_all, print_json, print_line, print_one

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.command("list")
def list_keys(context: typer.Context, limit: Limit = 50, as_json: AsJson = False) -> None:
    """List keys, without their secret values."""
    with client_of(context) as client:
        found = list(client.api_keys.list(limit=limit))
    rows = (
        (
            each.key_id,
            each.name,
            each.scope,
            "revoked" if each.revoked_at else f"…{each.last4 or ''}",
            moment(each.last_used_at),
            moment(each.expires_at),
        )
        for each in found
    )
    heads = ("KEY", "NAME", "SCOPE", "TEXT", "LAST USED", "EXPIRES")
    print_all("api_keys", found, heads, rows, nothing="No keys", as_json=as_json)


@app.command()
def create(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name of the key.")],
    scope: Annotated[str | None, typer.Option(help="user, or worker (for a GPU machine).")] = None,
    expires_at: Annotated[
        str | None, typer.Option(help="ISO 8601, e.g. 2027-01-01T00:00:00Z.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="With --scope worker: maximum number of workers.")
    ] = None,
    serving_host: Annotated[
        list[str] | None,
        typer.Option(help="With --workers: additional hosts of their models; repeatable."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Create a key. Its secret value is printed now and can't be shown again.

    \b
    forge keys create gpu-box-1 --scope worker --workers 1
    """
    with client_of(context) as client:
        found = client.api_keys.create(
            name, scope=scope, expires_at=expires_at, workers=workers, serving_hosts=serving_host
        )
    if as_json:
        print_json({**found.to_dict(), "key": found.key})
        return
    if found.key:
        print_line(console(), found.key)
    print_line(
        console(stderr=True), f"{found.key_id}: store the key above; it can't be shown again"
    )


@app.command()
def revoke(context: typer.Context, key_id: KeyId, as_json: AsJson = False) -> None:
    """Revoke a key immediately and permanently."""
    with client_of(context) as client:
        found = client.api_keys.revoke(key_id)
    print_one(found, f"{found.key_id} is revoked", as_json=as_json)
