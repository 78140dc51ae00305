"""Runs one job's handler: a process group and a folder of its own."""

import contextlib
import json
import os
import re
import shutil
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .checkpoints import FOLDER as CHECKPOINTS
from .config import HandlerConfig
from .container import container_command
from .job_files import UnsafeFile, list_files, read_small
from .job_report import Reports
from .lease import Lease
from .leashed import Ending, Leashed
from .log_file import LogFile
from .sendable import require_sendable, sendable_text
from .storage import Storage, upload_all

EXIT_TRANSIENT = 75
"""A handler's exit code for a failure that another try may mend (EX_TEMPFAIL)."""

_MESSAGE_LIMIT = 4096
# The control plane refuses them: they lead elsewhere on another system, or speak to a terminal.
_UNSAFE = re.compile(r"[\\\x00-\x1f\x7f]")
_RESULT_LIMIT = 1024 * 1024
_SHOWN = 5
"""Names in one line of the log."""
_OWN_SECRETS = (
    "SERVICE_API_KEY",
    "S3_ACCESS_KEY_ID",
    "S3_SECRET_ACCESS_KEY",
    "SPACES_KEY",
    "SPACES_SECRET",
)


class HandlerFailed(Exception):
    """The handler failed; `transient` says whether another try may help."""

    def __init__(self, message: str, *, transient: bool) -> None:
        super().__init__(message)
        self.transient = transient


@dataclass(frozen=True)
class Outcome:
    result: dict[str, Any]
    metrics: dict[str, Any]


@dataclass(frozen=True)
class Outputs:
    """What a handler left in its output folder, by paths below that, with slashes."""

    files: list[str]
    left_out: list[str]
    """Links and special files."""
    has_manifest: bool
    """It wrote a manifest.json of its own. That name is the control plane's: it is not sent."""


class HandlerFolder:
    """The folder that one try of a handler may write to, and the job file beside it.

    What the handler left is only read by job_files.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.output = path / "output"
        self.checkpoints = path / CHECKPOINTS
        self.temporary = path / "tmp"
        self.job_file = path.with_name(f"{path.name}.json")
        self.result_file = path / "result.json"
        self.progress_file = path / "progress"

    def create(self) -> None:
        for folder in (self.output, self.checkpoints, self.temporary):
            folder.mkdir(parents=True, exist_ok=True)

    def describe(
        self,
        lease: Lease,
        inputs: Mapping[str, Path],
        resume_from: Path | None,
        teachers: Mapping[str, Mapping[str, str]],
    ) -> None:
        """Writes the job file: what the handler knows of its job (docs/agent.md)."""
        job = lease.job
        content = {
            **{name: job.get(name) for name in ("job_id", "job_type", "attempt", "timeout_s")},
            **{name: job.get(name, {}) for name in ("payload", "params", "output_ids")},
            "artifacts_uri": job["uploads"]["artifacts_uri"],
            "inputs": {name: str(path) for name, path in inputs.items()},
            "output_dir": str(self.output),
            "checkpoint_dir": str(self.checkpoints),
            "resume_from": None if resume_from is None else str(resume_from),
            "teachers": teachers,
        }
        self.job_file.write_text(json.dumps(content, indent=2))

    def outputs(self) -> Outputs:
        """The files of the artifact. Raises HandlerFailed for odd names, UnsafeFile for links."""
        entries = list_files(self.path, self.output.name)
        files = [entry.name for entry in entries if entry.is_regular]
        names = [name for name in files if name.lower() != "manifest.json"]
        for name in names:
            try:
                name.encode()
            except UnicodeEncodeError:
                message = f"{name!r}: the name of a file must be UTF-8"
                raise HandlerFailed(message, transient=False) from None
            if _UNSAFE.search(name):
                message = f"{name!r}: the name of a file has no backslash or control character"
                raise HandlerFailed(message, transient=False)
        left_out = [entry.name for entry in entries if not entry.is_regular]
        return Outputs(names, left_out, has_manifest=len(names) < len(files))

    def upload(self, storage: Storage, log: LogFile) -> None:
        """Stores the artifact's files. Raises HandlerFailed for what may not be sent."""
        try:
            outputs = self.outputs()
            if outputs.has_manifest:
                log.say("manifest.json is left out: the control plane writes its own")
            if outputs.left_out:
                shown = ", ".join(f"output/{name!a}" for name in outputs.left_out[:_SHOWN])
                log.say(f"{len(outputs.left_out)} links or special files are left out: {shown}")
            size = upload_all(storage, outputs.files, self.path, self.output.name)
        except UnsafeFile as error:
            raise HandlerFailed(str(error), transient=False) from error
        log.say(f"uploaded {len(outputs.files)} files, {size} bytes")

    def forget(self) -> None:
        """Frees what a try that failed has left, but for its checkpoints."""
        for folder in (self.output, self.temporary):
            shutil.rmtree(folder, ignore_errors=True)

    def environment(self, more: Mapping[str, str]) -> dict[str, str]:
        """The agent's own, without what opens its doors, and where everything is."""
        inputs: dict[str, str] = json.loads(self.job_file.read_text())["inputs"]
        kept = {name: value for name, value in os.environ.items() if name not in _OWN_SECRETS}
        return {
            **kept,
            "TMPDIR": str(self.temporary),
            "FORGE_JOB_FILE": str(self.job_file),
            "FORGE_RESULT_FILE": str(self.result_file),
            "FORGE_OUTPUT_DIR": str(self.output),
            "FORGE_CHECKPOINT_DIR": str(self.checkpoints),
            "FORGE_PROGRESS": str(self.progress_file),
            **{f"FORGE_INPUT_{name.upper()}": path for name, path in inputs.items()},
            **more,
        }


def start_handler(
    config: HandlerConfig, folder: HandlerFolder, env: Mapping[str, str], name: str
) -> Leashed:
    """`name`: of its container, if any. Raises HandlerFailed where it can't be started."""
    environment = {**folder.environment(env), **config.env}
    command = config.command
    if config.image:
        command = container_command(config, folder.path.parent, environment, name)
    try:
        return Leashed(command, folder.path, environment, config.memory_gb)
    except OSError as error:
        raise HandlerFailed(f"{command[0]}: {error.strerror}", transient=False) from error


def read_outcome(
    folder: HandlerFolder, ending: Ending, last_words: str, reports: Reports
) -> Outcome:
    """What the handler left when it ended. Raises HandlerFailed, in its own words if it has any."""
    if ending.code == 0 and ending.reason is None:
        return _read_result(folder, reports)
    message = _read_error(folder) or _describe(ending, last_words)
    if ending.reason:
        message = f"the handler {ending.reason}"
    transient = ending.code == EXIT_TRANSIENT or ending.signal is not None
    raise HandlerFailed(sendable_text(message)[:_MESSAGE_LIMIT], transient=transient)


def _read_result(folder: HandlerFolder, reports: Reports) -> Outcome:
    """A handler need not leave a result: its files, and what it reported, may be all there is."""
    written: Any = {}
    try:
        with contextlib.suppress(FileNotFoundError):
            written = json.loads(read_small(folder.result_file, _RESULT_LIMIT))
        require_sendable(written)
        metrics = {**reports.latest().metrics, **dict(written.get("metrics") or {})}
        return Outcome(result=dict(written.get("result") or {}), metrics=metrics)
    except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
        message = f"the handler ended well but left no usable result.json: {error}"
        raise HandlerFailed(sendable_text(message)[:_MESSAGE_LIMIT], transient=False) from error


def _read_error(folder: HandlerFolder) -> str | None:
    try:
        return str(json.loads(read_small(folder.result_file, _RESULT_LIMIT))["error"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _describe(ending: Ending, last_words: str) -> str:
    if ending.signal is not None:
        how = f"signal {ending.signal} ({signal.Signals(ending.signal).name})"
    else:
        how = f"exit code {ending.code}"
    return f"the handler ended with {how}: {last_words}"
