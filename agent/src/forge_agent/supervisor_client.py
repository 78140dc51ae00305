"""Runs a command as the child of a supervisor process.

Signals the command's process group through the supervisor, and waits for the command's end.

supervisor.py is the program of the supervisor process.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from .slot_user import SlotUser
from .user_processes import end_processes_of

MARKER = "FORGE_JOB_FILE"
"""A variable whose value identifies the processes of one try of a job."""

_MARKED_TIMEOUT_S = 5.0
_EMPTY_SCANS = 3
"""Number of consecutive scans that must find no process."""
_PAUSE_S = 0.02

_SUPERVISOR = Path(__file__).with_name("supervisor.py")


@dataclass(frozen=True)
class Ending:
    code: int | None
    """None if a signal ended the command."""
    signal: int | None
    reason: str | None
    """Why the supervisor ended the command, or None."""


class SupervisedProcess:
    """One command with all its descendants. Read its output from `output`. Thread-safe."""

    def __init__(
        self,
        command: Sequence[str],
        cwd: Path,
        env: Mapping[str, str],
        memory_gb: float | None = None,
        user: SlotUser | None = None,
    ) -> None:
        """`user`: the user to run the command as. Default: the agent's."""
        status_read, status_write = os.pipe()
        memory_bytes = int((memory_gb or 0) * 1e9)
        run_as = f"{user.uid}:{','.join(map(str, user.groups))}" if user else "-"
        options = [str(status_write), str(memory_bytes), run_as]
        # -I ignores the job's variables that change how Python starts. -S ignores site packages.
        supervisor = [sys.executable, "-I", "-S", str(_SUPERVISOR), *options]
        try:
            self._process = subprocess.Popen(
                [*supervisor, *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                cwd=cwd,
                env=dict(env),
                pass_fds=[status_write],
                start_new_session=True,
            )
        except BaseException:
            os.close(status_read)
            raise
        finally:
            os.close(status_write)
        self._status = os.fdopen(status_read)
        self._marker = env.get(MARKER)
        self._user = user
        self._timer: threading.Timer | None = None
        self._ending = Ending(code=None, signal=9, reason="its supervisor was killed")
        self.pid = int(json.loads(self._status.readline() or '{"pid": 0}')["pid"])
        # A thread waits for the supervisor's end. If the supervisor is killed, this thread ends the
        # command's processes immediately, even if `wait` is not called.
        self._watcher = threading.Thread(target=self._watch, name="supervisor", daemon=True)
        self._watcher.start()

    @property
    def output(self) -> IO[bytes]:
        stream = self._process.stdout
        assert stream is not None
        return stream

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def wait(self) -> Ending:
        """Waits until the command and all its descendants have ended."""
        self._watcher.join()
        return self._ending

    def stop(self, grace_s: float) -> None:
        """Sends SIGTERM to the process group, and SIGKILL after the grace period. Does not wait."""
        if grace_s <= 0:
            self._send(b"kill\n")
            return
        self._send(b"term\n")
        timer = threading.Timer(grace_s, self._send, [b"kill\n"])
        timer.daemon = True
        timer.start()
        self._timer = timer

    def _send(self, word: bytes) -> None:
        with contextlib.suppress(OSError, ValueError):
            assert self._process.stdin is not None
            self._process.stdin.write(word)
            self._process.stdin.flush()

    def _watch(self) -> None:
        line = self._status.readline()
        self._process.wait()
        if self._timer:
            self._timer.cancel()
        self._status.close()
        with contextlib.suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        if line:
            status = json.loads(line)
            self._ending = Ending(status["code"], status["signal"], status["reason"])
        else:  # the supervisor itself was killed
            if self.pid:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self.pid, signal.SIGKILL)
            end_marked(self._marker)
            if self._user:
                # A process may have left the group and removed MARKER from its environment. So end
                # all processes of the user. If the command is a model server, this also ends the
                # slot's other model servers, which run as the same user. The agent restarts those
                # servers (deployment.py).
                end_processes_of(self._user.uid)


def end_marked(marker: str | None) -> None:
    """Ends every process whose variable MARKER has this value, in any process group.

    Scans until several scans in a row find no process, or until a time-out. A single scan can miss
    a process that starts during the scan. It can also miss a process that calls exec at that
    moment, because the process's environment is briefly empty.
    """
    if not marker:
        return
    deadline = time.monotonic() + _MARKED_TIMEOUT_S
    empty_scans = 0
    while empty_scans < _EMPTY_SCANS and time.monotonic() < deadline:
        empty_scans = 0 if _end_found(f"{MARKER}={marker}".encode()) else empty_scans + 1
        time.sleep(_PAUSE_S)


def _end_found(wanted: bytes) -> bool:
    """Scans all processes once. Kills each process that has `wanted` in its environment.

    Returns True if it killed a process. Also returns True if it found a process whose environment
    is empty at the moment, because this process may have `wanted` too.
    """
    found = False
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            environment = (folder / "environ").read_bytes()
            if wanted in environment.split(b"\0"):
                os.kill(int(folder.name), signal.SIGKILL)
                found = True
            elif not environment and (folder / "exe").readlink() and _is_ours(folder):
                found = True  # has a program, unlike a kernel thread: may have the marker
    return found


def _is_ours(folder: Path) -> bool:
    return folder.stat().st_uid == os.geteuid()
