"""The command `forge`.

Exit codes: 0 as asked, 1 what was looked at is not right, 2 wrong usage or no good answer, 130
Ctrl-C, 141 nobody reads what it prints.
"""

import io
import json
import os
import sys
import traceback
import warnings
from functools import partial

import typer

from ..errors import ForgeAPIError, ForgeError, ForgeHTTPError, IntegrityError
from ..text import shown
from .app import app

_UNREAD = 141
"""As of a process that SIGPIPE has ended."""


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    as_json = "--json" in sys.argv[1:]
    warnings.showwarning = partial(_say_warning, as_json=as_json)
    try:
        code = app(prog_name="forge", standalone_mode=False)
        sys.stdout.flush()
    except typer.TyperException as error:
        _say_usage(error, as_json=as_json)
        code = 2
    except typer.Abort:
        code = 2
    except SystemExit as end:
        # rich and typer make a 1 of it, which here says that what was looked at is not right.
        if not isinstance(end.__context__, BrokenPipeError):
            raise
        code = _unread()
    except BrokenPipeError:
        code = _unread()
    except (ForgeError, OSError) as error:
        _say(error, as_json=as_json)
        code = 1 if isinstance(error, IntegrityError) else 2
    except UnicodeEncodeError:
        _say(ForgeError("a text that was given is not valid UTF-8"), as_json=as_json)
        code = 2
    except Exception as error:
        if os.environ.get("FORGE_DEBUG") == "1":
            traceback.print_exc()
        # Not its own text: nobody knows what that quotes.
        text = f"unexpected {type(error).__name__}: FORGE_DEBUG=1 shows where it comes from"
        _say(ForgeError(text), as_json=as_json)
        code = 2
    sys.exit(code or 0)


def _unread() -> int:
    """As `forge jobs list | head -1`: nothing is wrong, and what is left to flush goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return _UNREAD


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
