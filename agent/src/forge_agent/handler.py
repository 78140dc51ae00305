"""Runs one job's handler: a process of its own, in a group and a folder of its own."""

import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

EXIT_TRANSIENT = 75
"""A handler's exit code for a failure that another try may mend (EX_TEMPFAIL)."""

_MESSAGE_LIMIT = 4096


def require_sendable(value: object) -> None:
    """Raises ValueError for what JSON or the control plane can't carry.

    That is NaN and infinities, half a surrogate pair, and NUL.
    """
    text = json.dumps(value, allow_nan=False, ensure_ascii=False)
    text.encode()
    if "\\u0000" in text:
        raise ValueError("text may not contain NUL")


def sendable_text(text: str) -> str:
    """The text with every character that can't be sent replaced."""
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()


class HandlerFailed(Exception):
    """The handler failed; `transient` says whether another try may help."""

    def __init__(self, message: str, *, transient: bool) -> None:
        super().__init__(message)
        self.transient = transient


class HandlerStopped(Exception):
    """The handler was stopped from outside: its job is no longer ours."""


@dataclass(frozen=True)
class Outcome:
    result: dict[str, Any]
    metrics: dict[str, Any]


class Handler:
    """One run of a job. `stop` may be called from another thread."""

    def __init__(self, folder: Path, job: dict[str, Any], inputs: dict[str, str]) -> None:
        self.output_dir = folder / "output"
        self.output_dir.mkdir(parents=True)
        self._folder = folder
        self._progress_file = folder / "progress"
        self._result_file = folder / "result.json"
        self._job_file = folder / "job.json"
        self._job_type = str(job["job_type"])
        self._stopped = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        description = {**job, "input_files": inputs, "output_dir": str(self.output_dir)}
        self._job_file.write_text(json.dumps(description))

    def run(self, log: Path) -> Outcome:
        """Runs the handler to its end.

        Raises HandlerFailed when it fails, HandlerStopped when `stop` ended it.
        """
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            process = subprocess.Popen(
                # The leash ends the handler with the agent, even when that is killed.
                [sys.executable, "-m", "forge_agent.leash", str(os.getpid()),
                 sys.executable, "-m", "forge_compute", self._job_type],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
                env=self._environment(),
                start_new_session=True,
            )  # fmt: skip
            self._process = process
            if self._stopped.is_set():
                self._signal(signal.SIGKILL)
            code = process.wait()
        if self._stopped.is_set():
            raise HandlerStopped
        if code != 0:
            message = self._error_message(code, log)
            raise HandlerFailed(message, transient=code == EXIT_TRANSIENT or code < 0)
        return self._read_outcome()

    def stop(self, grace_s: float) -> None:
        """SIGTERM to the whole group, SIGKILL after the grace."""
        self._stopped.set()
        if self._process is None:
            return
        self._signal(signal.SIGTERM)
        try:
            self._process.wait(grace_s)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)

    @property
    def progress(self) -> float | None:
        """From 0 to 1, as the handler last told; None before."""
        try:
            return min(1.0, max(0.0, float(self._progress_file.read_text())))
        except (OSError, ValueError):
            return None

    def _signal(self, number: signal.Signals) -> None:
        if self._process and self._process.poll() is None:
            os.killpg(self._process.pid, number)

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name != "SERVICE_API_KEY"}
        return {
            **kept,
            "FORGE_JOB_FILE": str(self._job_file),
            "FORGE_RESULT_FILE": str(self._result_file),
            "FORGE_PROGRESS": str(self._progress_file),
        }

    def _read_outcome(self) -> Outcome:
        try:
            written = json.loads(self._result_file.read_text())
            outcome = Outcome(result=dict(written["result"]), metrics=dict(written["metrics"]))
            require_sendable(written)
            return outcome
        except (OSError, ValueError, KeyError, TypeError) as error:
            message = f"the handler ended well but left no usable result.json: {error}"
            raise HandlerFailed(message, transient=False) from error

    def _error_message(self, code: int, log: Path) -> str:
        try:
            message = str(json.loads(self._result_file.read_text())["error"])
        except (OSError, ValueError, KeyError, TypeError):
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            tail = log.read_text(errors="replace").strip().splitlines()[-1:]
            message = f"the {self._job_type} handler ended with {how}: {' '.join(tail)}"
        return sendable_text(message)[:_MESSAGE_LIMIT]
