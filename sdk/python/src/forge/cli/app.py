"""The commands of `forge`. Imports their implementations lazily."""

from functools import partial
from typing import Annotated

import typer

from .._version import __version__
from .lazy import lazily

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)

_GROUPS = {
    "jobs": "Submit jobs, follow them, cancel them.",
    "pipelines": "Run several jobs in order: from data to a served model.",
    "datasets": "Upload and list datasets.",
    "artifacts": "Artifacts of jobs: files, verification, lineage.",
    "deployments": "Served models.",
    "workers": "The machines that run jobs.",
    "billing": "Costs, budgets and estimates.",
    "keys": "API keys.",
}

_DEFAULTS = {"billing": "summary"}

for _name, _help in _GROUPS.items():
    _group = lazily(_name, _DEFAULTS.get(_name))
    app.add_typer(
        typer.Typer(no_args_is_help=True, rich_markup_mode=None, cls=_group), name=_name, help=_help
    )

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def _say_version(is_asked: bool) -> None:
    if is_asked:
        print(f"forge {__version__}")
        raise typer.Exit


@app.callback()
def forge(
    context: typer.Context,
    base_url: Annotated[
        str | None, typer.Option(help="Address of Forge (default: SERVICE_BASE_URL).")
    ] = None,
    api_key: Annotated[
        str | None,
        typer.Option(help="Your key. SERVICE_API_KEY is safer: `ps` shows options to others."),
    ] = None,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_say_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """The command line of Forge.

    Without an address and key, uses the saved `forge login`, else the local stack.

    \b
    forge jobs submit generate --domain law --num-samples 100 --wait
    forge jobs list
    forge doctor
    """
    context.obj = partial(_connect, base_url, api_key)


def _connect(base_url: str | None, api_key: str | None, **options: float) -> object:
    from .connection import connect

    return connect(base_url, api_key, **options)


@app.command()
def login(
    address: Annotated[
        str | None,
        typer.Argument(metavar="[ADDRESS]", help="Address of Forge (default: prompt)."),
    ] = None,
    api_key_stdin: Annotated[
        bool, typer.Option("--api-key-stdin", help="Read the key from standard input.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check an address and a key, and save them on this machine.

    \b
    forge login https://forge.example.com
    forge login https://forge.example.com --api-key-stdin < key.txt
    """
    from . import account

    account.login(address, from_stdin=api_key_stdin, as_json=as_json)


@app.command()
def logout(as_json: AsJson = False) -> None:
    """Delete the saved login. The key itself stays valid: see `forge keys revoke`."""
    from . import account

    account.logout(as_json=as_json)


@app.command()
def whoami(context: typer.Context, as_json: AsJson = False) -> None:
    """Show the owner of the key, and where address and key come from."""
    from . import account

    account.whoami(context, as_json=as_json)


@app.command()
def doctor(context: typer.Context, as_json: AsJson = False) -> None:
    """Check the connection to Forge step by step, and show how to fix problems.

    Exit code 1 if there is a problem.
    """
    from .doctor import doctor as run

    run(context, as_json=as_json)
