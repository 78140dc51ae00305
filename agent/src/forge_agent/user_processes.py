"""Ends the processes of a slot's user, so that none can affect the next job."""

import contextlib
import logging
import os
import signal
import subprocess
import time
from pathlib import Path

logger = logging.getLogger(__name__)

TIMEOUT_S = 10.0
_PAUSE_S = 0.02
# The time-out applies only after this many rounds. Otherwise it could end the loop after one round,
# if the agent was paused, or if the machine is so busy that a round takes seconds.
_MIN_ROUNDS = 20
_HELPER_S = 1.0


def end_processes_of(uid: int, timeout_s: float | None = None) -> list[int]:
    """Ends all processes of a user, in any group and with any parent.

    Returns the ids of the processes that remain: a process that waits for a device can't end until
    the device responds. Requires root.
    """
    deadline = time.monotonic() + (TIMEOUT_S if timeout_s is None else timeout_s)
    rounds = 0
    while left := processes_of(uid):
        if rounds >= _MIN_ROUNDS and time.monotonic() > deadline:
            states = {pid: _status(Path(f"/proc/{pid}")).get("State", "ended") for pid in left}
            logger.error("processes of user %s can't be ended: %s", uid, states)
            return left
        _end(uid, left)
        time.sleep(_PAUSE_S)
        rounds += 1
    return []


def processes_of(uid: int) -> list[int]:
    """The ids of a user's running processes."""
    return [
        int(folder.name)
        for folder in Path("/proc").glob("[0-9]*")
        if _is_of(folder, uid) and not _has_ended(folder)
    ]


def _end(uid: int, pids: list[int]) -> None:
    """Kills the processes in two ways. A job can evade the first or the second, but not both."""
    for pid in pids:
        # First way: the agent, which runs as root, kills one process after another. The processes
        # can't kill the agent, but can fork between two kills.
        with contextlib.suppress(OSError):
            _kill(pid, uid)
    # Second way: a shell that runs as the user kills all processes of this user. The kernel signals
    # all of them at once, before they can fork. But the shell can't start if the user has reached
    # its process limit, and the processes may kill the shell first.
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        subprocess.run(
            ["/bin/sh", "-c", "kill -KILL -1"],
            user=uid,
            group=uid,
            extra_groups=[],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_HELPER_S,
            check=False,
        )


def _kill(pid: int, uid: int) -> None:
    process = os.pidfd_open(pid)
    try:
        # Check again: the id may have been reused. The open descriptor always refers to the
        # same process.
        if _is_of(Path(f"/proc/{pid}"), uid):
            signal.pidfd_send_signal(process, signal.SIGKILL)
    finally:
        os.close(process)


def _is_of(folder: Path, uid: int) -> bool:
    return str(uid) in _status(folder).get("Uid", "").split()


def _has_ended(folder: Path) -> bool:
    """Whether all threads have ended.

    The process's own state is not enough: it is the state of the first thread, which may end before
    the others.
    """
    states = (_status(task).get("State", "X") for task in folder.glob("task/*"))
    return all(state.startswith(("Z", "X")) for state in states)


def _status(folder: Path) -> dict[str, str]:
    """The fields of a `status` file in /proc. Empty if the process or thread no longer exists."""
    try:
        lines = (folder / "status").read_text(errors="replace").splitlines()
    except OSError:
        return {}
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
