"""The processes of a slot's user: one job's may not meet the next one's."""

import contextlib
import logging
import os
import signal
import subprocess
import time
from pathlib import Path

logger = logging.getLogger(__name__)

WITHIN_S = 10.0
_PAUSE_S = 0.02
_HELPER_S = 1.0


def end_processes_of(uid: int, within_s: float | None = None) -> list[int]:
    """Ends all processes of a user, whatever group or parent they have. Returns those left.

    Needs root's rights. A process that waits for a device may stay until the device answers.
    """
    deadline = time.monotonic() + (WITHIN_S if within_s is None else within_s)
    while left := processes_of(uid):
        if time.monotonic() > deadline:
            logger.error("processes of user %s can't be ended: %s", uid, left)
            return left
        _end(uid, left)
        time.sleep(_PAUSE_S)
    return []


def processes_of(uid: int) -> list[int]:
    """Those that run as a user, by their ids."""
    return [
        int(folder.name)
        for folder in Path("/proc").glob("[0-9]*")
        if _is_of(folder, uid) and not _has_ended(folder)
    ]


def _end(uid: int, pids: list[int]) -> None:
    """Two ways, because a job may work against each."""
    for pid in pids:
        # As root: the user's processes can neither end nor stop us. But they may fork meanwhile.
        with contextlib.suppress(OSError):
            _kill(pid, uid)
    # As the user itself: the kernel signals all of them at once, faster than they can fork. But
    # they may have taken all processes, and may end or stop this one.
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
        # Once more: the id may be another process's by now. What is open stays the same one.
        if _is_of(Path(f"/proc/{pid}"), uid):
            signal.pidfd_send_signal(process, signal.SIGKILL)
    finally:
        os.close(process)


def _is_of(folder: Path, uid: int) -> bool:
    return str(uid) in _status(folder).get("Uid", "").split()


def _has_ended(folder: Path) -> bool:
    """Whether all of its threads have: one whose first thread has ended looks like a zombie."""
    states = (_status(task).get("State", "X") for task in folder.glob("task/*"))
    return all(state.startswith(("Z", "X")) for state in states)


def _status(folder: Path) -> dict[str, str]:
    """Empty for a process or thread that is no more."""
    try:
        lines = (folder / "status").read_text(errors="replace").splitlines()
    except OSError:
        return {}
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
