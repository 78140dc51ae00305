"""The command `forge`.

Exit codes: 0 as asked, 1 what was looked at is not right, 2 wrong usage or no good answer, 130
Ctrl-C.
"""

import io
import json
import sys
import warnings
from functools import partial

import typer

from ..errors import ForgeAPIError, ForgeError, ForgeHTTPError, IntegrityError
from ..text import shown
from .app import app


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    as_json = "--json" in sys.argv[1:]
    warnings.showwarning = partial(_say_warning, as_json=as_json)
    try:
        code = app(prog_name="forge", standalone_mode=False)
    except typer.TyperException as error:
        _say_usage(error, as_json=as_json)
        code = 2
    except typer.Abort:
        code = 2
    except (ForgeError, OSError) as error:
        _say(error, as_json=as_json)
        code = 1 if isinstance(error, IntegrityError) else 2
    sys.exit(code or 0)


def _say(error: Exception, *, as_json: bool) -> None:
    if not as_json:
        print(f"forge: {shown(str(error))}", file=sys.stderr)
        return
    about: dict[str, object] = {"code": "error", "message": str(error)}
    if isinstance(error, ForgeAPIError):
        about["message"] = error.message
    if isinstance(error, (ForgeAPIError, ForgeHTTPError)):
        names = ("code", "status", "param", "request_id")
        about |= {name: value for name in names if (value := getattr(error, name, None))}
    _print_error(about)


def _say_warning(message: Warning | str, *_: object, as_json: bool) -> None:
    """Without the line of code that it came from: that is none of the user's."""
    if not as_json:
        print(f"forge: {shown(str(message))}", file=sys.stderr)


def _say_usage(error: typer.TyperException, *, as_json: bool) -> None:
    show = getattr(error, "show", None)
    if as_json or show is None:
        _print_error({"code": "wrong_usage", "message": error.format_message()})
    else:
        show()


def _print_error(about: dict[str, object]) -> None:
    json.dump({"error": about}, sys.stderr)
    sys.stderr.write("\n")
