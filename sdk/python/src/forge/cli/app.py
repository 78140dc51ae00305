"""The commands of `forge`, without what they need to run."""

from functools import partial
from typing import Annotated

import typer

from .._version import __version__
from .lazy import lazily

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

_GROUPS = {
    "jobs": "Submit jobs, follow them, cancel them.",
    "pipelines": "Run jobs one after the other: from data to a served model.",
    "datasets": "Your own data.",
    "artifacts": "What jobs left behind: files, proofs, where they came from.",
    "deployments": "Models that are served.",
    "workers": "The machines that run jobs.",
    "billing": "What it has cost, and what it will.",
    "keys": "Keys to the API.",
}

_DEFAULTS = {"billing": "summary"}

for _name, _help in _GROUPS.items():
    _group = lazily(_name, _DEFAULTS.get(_name))
    app.add_typer(
        typer.Typer(no_args_is_help=True, rich_markup_mode=None, cls=_group),
        name=_name,
        help=_help,
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
        str | None, typer.Option(help="Address of Forge; else SERVICE_BASE_URL.")
    ] = None,
    api_key: Annotated[
        str | None,
        typer.Option(help="Your key; others on this machine may see it here: SERVICE_API_KEY."),
    ] = None,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_say_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Forge, from a terminal.

    Without an address and key it uses those of `forge login`, else the stack that runs here.

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
        str | None, typer.Argument(metavar="[ADDRESS]", help="Of Forge; asked for, if absent.")
    ] = None,
    api_key_stdin: Annotated[
        bool, typer.Option("--api-key-stdin", help="Read the key from standard input.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Save an address and a key on this machine, once they are found to be good.

    \b
    forge login https://forge.example.com
    forge login https://forge.example.com --api-key-stdin < key.txt
    """
    from . import account

    account.login(address, from_stdin=api_key_stdin, as_json=as_json)


@app.command()
def logout(as_json: AsJson = False) -> None:
    """Forget what `forge login` has saved. The key itself stays good: see `forge keys revoke`."""
    from . import account

    account.logout(as_json=as_json)


@app.command()
def whoami(context: typer.Context, as_json: AsJson = False) -> None:
    """Say whose key is used, and where address and key come from."""
    from . import account

    account.whoami(context, as_json=as_json)


@app.command()
def doctor(context: typer.Context, as_json: AsJson = False) -> None:
    """Look at the way to Forge, step by step, and say what to do about what is wrong.

    Exit code 1 when something is.
    """
    from .doctor import doctor as run

    run(context, as_json=as_json)
