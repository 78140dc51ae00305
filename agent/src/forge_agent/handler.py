"""Builds the command of one job's handler, as a process or a container, and reads its result.

supervisor_client.py starts the command and ends its process group.
"""

import contextlib
import json
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .config import HandlerConfig
from .container import Container, container_command
from .environment import agent_variables, job_variables
from .handler_failed import HandlerFailed
from .handler_folder import HandlerFolder
from .job_files import read_small
from .job_report import Reports
from .sendable import require_sendable, sendable_text
from .slot_user import SlotUser
from .supervisor_client import Ending, SupervisedProcess

EXIT_TRANSIENT = 75
"""A handler's exit code for a failure that a retry may fix (EX_TEMPFAIL)."""

_SIGNALLED = 128
"""The exit code of a container that a signal ended is 128 plus the signal's number."""

_SIGNAL_NAMES = {int(each): each.name for each in signal.Signals}
_MESSAGE_LIMIT = 4096
_RESULT_LIMIT = 1024 * 1024


@dataclass(frozen=True)
class Outcome:
    result: dict[str, Any]
    metrics: dict[str, Any]

    def with_commit(self, commit: str | None) -> "Outcome":
        """Adds the handler's commit to the result, unless the handler has reported a commit."""
        if commit is None or "git_commit" in self.result:
            return self
        return Outcome({**self.result, "git_commit": commit}, self.metrics)


def start_handler(
    config: HandlerConfig,
    folder: HandlerFolder,
    env: Mapping[str, str],
    name: str,
    user: SlotUser | None = None,
    publish: tuple[str, int] | None = None,
) -> SupervisedProcess:
    """Starts a handler. `name`: its container's name; `publish`: its container's host and port.

    No process of an earlier handler may run in the folder. Raises HandlerFailed if the command
    can't be started.
    """
    folder.create(user)
    given = {**job_variables(folder), **env, **config.env}
    command = config.command
    try:
        if config.image:
            container = Container(name, folder, user, publish)
            command = container_command(config, container, given)
            # The container gets only the variables in `given`. The agent's own variables, such as
            # PATH, are for the runtime's client.
            return SupervisedProcess(
                command, folder.path, agent_variables() | given, config.memory_gb
            )
        own = user.variables(folder.temporary) if user else {}
        variables = agent_variables() | own | given
        return SupervisedProcess(command, folder.path, variables, config.memory_gb, user)
    except OSError as error:
        raise HandlerFailed(f"{command[0]}: {error.strerror}", transient=False) from error


def wait_for_handler(config: HandlerConfig, process: SupervisedProcess) -> Ending:
    """Waits for the end of a process that `start_handler` started with the same config."""
    ending = process.wait()
    return ending_of_container(ending) if config.image else ending


def ending_of_container(ending: Ending) -> Ending:
    """Returns how a container's handler ended, from the exit code of the container's runtime."""
    number = (ending.code or 0) - _SIGNALLED
    return Ending(None, number, ending.reason) if number in signal.valid_signals() else ending


def read_outcome(
    folder: HandlerFolder, ending: Ending, last_line: str, reports: Reports
) -> Outcome:
    """Reads an ended handler's result. Raises HandlerFailed if the handler failed.

    The error has the message that the handler wrote, if any. If the supervisor ended the handler,
    the error has the supervisor's reason instead.
    """
    if ending.code == 0 and ending.reason is None:
        return _read_result(folder, reports)
    message = _read_error(folder) or _describe(ending, last_line)
    if ending.reason:
        message = f"the handler {ending.reason}"
    transient = ending.code == EXIT_TRANSIENT or ending.signal is not None
    raise HandlerFailed(sendable_text(message)[:_MESSAGE_LIMIT], transient=transient)


def _read_result(folder: HandlerFolder, reports: Reports) -> Outcome:
    """The result file is optional: files and reported metrics may be a handler's only output."""
    written: Any = {}
    try:
        with contextlib.suppress(FileNotFoundError):
            written = json.loads(read_small(folder.result_file, _RESULT_LIMIT))
        require_sendable(written)
        metrics = {**reports.latest().metrics, **dict(written.get("metrics") or {})}
        return Outcome(result=dict(written.get("result") or {}), metrics=metrics)
    except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
        message = f"the handler succeeded but left no usable result.json: {error}"
        raise HandlerFailed(sendable_text(message)[:_MESSAGE_LIMIT], transient=False) from error


def _read_error(folder: HandlerFolder) -> str | None:
    try:
        return str(json.loads(read_small(folder.result_file, _RESULT_LIMIT))["error"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _describe(ending: Ending, last_line: str) -> str:
    if ending.signal is not None:
        # Most real-time signals have no name.
        name = _SIGNAL_NAMES.get(ending.signal, "real-time")
        how = f"signal {ending.signal} ({name})"
    else:
        how = f"exit code {ending.code}"
    return f"the handler ended with {how}: {last_line}"
