"""The command `forge`.

Exit codes: 0 success, 1 a job or a check failed, 2 usage error or no usable response, 130
Ctrl-C, 141 the reader of the output has closed the pipe.
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
"""The exit code of a process ended by SIGPIPE."""


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
        # After a broken pipe, the libraries rich and typer exit with code 1. In `forge`, code 1
        # means that a job or a check failed.
        if not isinstance(end.__context__, BrokenPipeError):
            raise
        code = _unread()
    except BrokenPipeError:
        code = _unread()
    except (ForgeError, OSError) as error:
        _say(error, as_json=as_json)
        code = 1 if isinstance(error, IntegrityError) else 2
    except UnicodeEncodeError:
        _say(ForgeError("an argument is not valid UTF-8"), as_json=as_json)
        code = 2
    except Exception as error:
        if os.environ.get("FORGE_DEBUG") == "1":
            traceback.print_exc()
        # Leaves out the error's own text, which might contain a secret.
        text = f"unexpected {type(error).__name__}: FORGE_DEBUG=1 shows the traceback"
        _say(ForgeError(text), as_json=as_json)
        code = 2
    sys.exit(code or 0)


def _unread() -> int:
    """Handles a closed pipe, as in `forge jobs list | head -1`. Discards the remaining output."""
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
    """Prints only the message of a warning. Python would add the line of code that warned."""
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
