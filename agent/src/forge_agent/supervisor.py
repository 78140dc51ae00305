"""Runs a command, and ends all its processes when the command or the agent ends.

    python supervisor.py <status fd> <memory bytes, 0 for no limit> <user> <command> …

Starts the command in a new session. The supervisor's standard input is a pipe from the agent. If
the agent writes `term` or `kill`, the supervisor signals the command's whole process group. If the
pipe closes, the agent has ended, and the supervisor kills the group. When the command ends, the
supervisor ends the command's remaining processes. This file imports no module of the agent: the
supervisor must be small, and work even if the agent does not.

`<user>` is the user to run the command as: `-` for the agent's user, else `uid:group,group…`, which
requires root. The supervisor itself continues to run as root: it can signal the command, but the
command can't signal the supervisor.

Writes lines of JSON to the status descriptor: first {"pid"}, then {"code", "signal", "reason"}.
"""

import contextlib
import ctypes
import json
import os
import select
import signal
import sys
import time
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_MEMORY_INTERVAL_S = 0.5
_TERM_GRACE_S = 2.0

IS_LINUX = sys.platform == "linux"


def main() -> int:
    status_fd, memory_bytes = int(sys.argv[1]), int(sys.argv[2])
    user, command = sys.argv[3], sys.argv[4:]
    if IS_LINUX:
        # Makes orphaned descendants children of this process, so that `_end_remaining` finds them.
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the agent sends its requests by the pipe
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    child = _start(command, status_fd, user)
    _report(status_fd, {"pid": child})
    status, reason = _watch(child, memory_bytes)
    _end_remaining(child)
    _report(
        status_fd,
        {
            "code": os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
            "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
            "reason": reason,
        },
    )
    return 0


def _start(command: list[str], status_fd: int, user: str) -> int:
    ours = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        os.close(status_fd)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if user != "-":
            _switch_user(user)
        if IS_LINUX:
            # Makes the kernel kill the command when the supervisor ends. The user must be changed
            # before this call, because a change of user clears the setting.
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != ours:  # the supervisor ended before the call
                os._exit(1)
        os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"{command[0]} can't be started: {error.strerror}\n".encode())
    os._exit(127)


def _switch_user(user: str) -> None:
    """Switches the user permanently: the command can't regain privileges, not even with sudo."""
    uid, _, groups = user.partition(":")
    os.fchown(1, int(uid), int(uid))  # lets the command open /dev/stdout and /dev/stderr
    os.setgroups([int(group) for group in groups.split(",") if group])
    os.setresgid(int(uid), int(uid), int(uid))
    os.setresuid(int(uid), int(uid), int(uid))
    os.umask(0o077)
    if IS_LINUX:
        ctypes.CDLL(None).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def _watch(child: int, memory_bytes: int) -> tuple[int, str | None]:
    """Waits for the command's end. Returns its wait status, and why the supervisor ended it."""
    readable, written = os.pipe()
    os.set_blocking(written, False)
    signal.set_wakeup_fd(written, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    reason: str | None = None
    sources = [0, readable]
    while True:
        pid, status = _reap(child)
        if pid:
            return status, reason
        ready, _, _ = select.select(sources, [], [], _MEMORY_INTERVAL_S if memory_bytes else None)
        if readable in ready:
            os.read(readable, 4096)
        if 0 in ready:
            words = os.read(0, 4096)
            if not words:
                sources.remove(0)
                _signal_group(child, signal.SIGKILL)
            elif b"kill" in words:
                _signal_group(child, signal.SIGKILL)
            elif b"term" in words:
                _signal_group(child, signal.SIGTERM)
        if memory_bytes and reason is None:
            used = _memory_of(_descendants(os.getpid()), memory_bytes)
            if used > memory_bytes:
                limit_gb, used_gb = memory_bytes / 1e9, used / 1e9
                reason = f"used {used_gb:.2f} GB of memory, over its limit of {limit_gb:.2f} GB"
                _signal_group(child, signal.SIGKILL)


def _reap(child: int) -> tuple[int, int]:
    """Reaps all ended children. Returns (child, status) if the command ended, else (0, 0)."""
    found = (0, 0)
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        if pid == child:
            found = (pid, status)


def _end_remaining(child: int) -> None:
    """Ends the command's remaining processes: its group, and orphans that this process adopted."""
    _signal_group(child, signal.SIGTERM)
    deadline = time.monotonic() + _TERM_GRACE_S
    while True:
        _reap(child)
        left = _descendants(os.getpid())
        if not left:
            _signal_group(child, signal.SIGKILL)
            return
        number = signal.SIGTERM if time.monotonic() < deadline else signal.SIGKILL
        for pid in left:
            _signal(pid, number)
        time.sleep(0.02)


def _descendants(of: int) -> list[int]:
    """All descendants of a process, as listed in /proc. Empty if the system has no /proc.

    Uses a loop instead of recursion: a job may create a chain of processes of any length.
    """
    found: list[int] = []
    parents = [of]
    while parents:
        # The kernel lists children per thread.
        for task in Path(f"/proc/{parents.pop()}/task").glob("*"):
            with contextlib.suppress(OSError):
                children = [int(text) for text in (task / "children").read_text().split()]
                found += children
                parents += children
    return found


def _memory_of(pids: list[int], limit: int) -> int:
    """Returns the memory of all processes in bytes. May return an upper bound.

    The upper bound counts shared memory once for each process. The exact number takes long to
    compute, so it is computed only if the upper bound exceeds the limit.
    """
    resident = sum(_resident(pid) for pid in pids)
    return resident if resident <= limit else sum(_proportional(pid) for pid in pids)


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_BYTES
    except (OSError, ValueError, IndexError):
        return 0


def _proportional(pid: int) -> int:
    """Proportional set size in bytes: a page shared by two processes counts half for each."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    except (OSError, ValueError, StopIteration):
        return _resident(pid)


def _signal_group(leader: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _report(fd: int, what: dict[str, object]) -> None:
    with contextlib.suppress(BrokenPipeError):  # the agent is gone
        os.write(fd, json.dumps(what).encode() + b"\n")


if __name__ == "__main__":
    sys.exit(main())
