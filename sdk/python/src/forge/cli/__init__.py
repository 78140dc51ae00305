"""The command `forge`.

Exit codes: 0 as asked, 1 what was looked at is not right, 2 wrong usage or no good answer.
"""

import io
import sys
from functools import partial
from typing import Annotated

import typer

from ..client import Forge
from ..errors import ForgeError, IntegrityError
from . import artifacts
from .output import shown

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(artifacts.app, name="artifacts")


@app.callback()
def forge(
    context: typer.Context,
    base_url: Annotated[
        str | None, typer.Option(help="Address of Forge; else SERVICE_BASE_URL.")
    ] = None,
    api_key: Annotated[
        str | None,
        typer.Option(help="Your key; others on this machine may see it here: SERVICE_API_KEY."),
    ] = None,
) -> None:
    """Forge, from a terminal. Without an address or key, the local stack's are used."""
    context.obj = partial(Forge, api_key, base_url)


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        app(prog_name="forge")
    except (ForgeError, OSError) as error:
        print(f"forge: {shown(str(error))}", file=sys.stderr)
        sys.exit(1 if isinstance(error, IntegrityError) else 2)
