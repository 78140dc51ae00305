"""A command on a leash, as the agent holds it: start, signal, wait."""

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
"""A variable that only the processes of one try of a job have alike."""

_MARKED_WITHIN_S = 5.0
_LOOKS = 3
"""So many times in a row nothing may be seen."""
_PAUSE_S = 0.02

_LEASH = Path(__file__).with_name("leash.py")


@dataclass(frozen=True)
class Ending:
    code: int | None
    """Null when a signal ended it."""
    signal: int | None
    reason: str | None
    """Why the leash ended it, if it did."""


class Leashed:
    """One command with all that it starts; its output is read from `output`. Thread-safe."""

    def __init__(
        self,
        command: Sequence[str],
        cwd: Path,
        env: Mapping[str, str],
        memory_gb: float | None = None,
        user: SlotUser | None = None,
    ) -> None:
        """`user`: runs the command; by default the agent's own."""
        status_read, status_write = os.pipe()
        memory_bytes = int((memory_gb or 0) * 1e9)
        # -I and -S: no site packages, no variables of the job's that change how Python starts.
        run_as = f"{user.uid}:{','.join(map(str, user.groups))}" if user else "-"
        options = [str(status_write), str(memory_bytes), run_as]
        leash = [sys.executable, "-I", "-S", str(_LEASH), *options]
        try:
            self._process = subprocess.Popen(
                [*leash, *command],
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
        # Not only when somebody waits: if the leash is killed, what it held must end at once.
        self._watcher = threading.Thread(target=self._watch, name="leash", daemon=True)
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
        """Until it and all that it started have ended."""
        self._watcher.join()
        return self._ending

    def stop(self, grace_s: float) -> None:
        """SIGTERM to the whole group, SIGKILL after the grace; does not wait."""
        if grace_s <= 0:
            self._say(b"kill\n")
            return
        self._say(b"term\n")
        timer = threading.Timer(grace_s, self._say, [b"kill\n"])
        timer.daemon = True
        timer.start()
        self._timer = timer

    def _say(self, word: bytes) -> None:
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
            told = json.loads(line)
            self._ending = Ending(told["code"], told["signal"], told["reason"])
        else:  # the leash itself was killed
            if self.pid:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self.pid, signal.SIGKILL)
            end_marked(self._marker)
            if self._user:
                # What changed its group and variables, too. A model of this slot starts again.
                end_processes_of(self._user.uid)


def end_marked(marker: str | None) -> None:
    """Ends every process that has the marker in its environment, whatever group it is in.

    One look misses what is born meanwhile, and what is just becoming another program: such a
    process shows no environment for a moment.
    """
    if not marker:
        return
    deadline = time.monotonic() + _MARKED_WITHIN_S
    unseen = 0
    while unseen < _LOOKS and time.monotonic() < deadline:
        unseen = 0 if _end_seen(f"{MARKER}={marker}".encode()) else unseen + 1
        time.sleep(_PAUSE_S)


def _end_seen(wanted: bytes) -> bool:
    """One look; whether there was one of them, or one that may be."""
    seen = False
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            environment = (folder / "environ").read_bytes()
            if wanted in environment.split(b"\0"):
                os.kill(int(folder.name), signal.SIGKILL)
                seen = True
            elif not environment and (folder / "exe").readlink() and _is_ours(folder):
                seen = True  # unlike a thread of the kernel's, it runs a program
    return seen


def _is_ours(folder: Path) -> bool:
    return folder.stat().st_uid == os.geteuid()
