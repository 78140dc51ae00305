"""Runs a command so that nothing of it outlives the agent, or the command itself.

    python leash.py <status fd> <memory bytes, 0 for no bound> <user> <command> …

It starts the command in a session of its own, and stays beside it. Its standard input is a pipe
from the agent: `term` and `kill` are passed on to the whole group, and its end means that the agent
is gone, so the group goes too. What the command leaves running when it ends is ended. Nothing of
the agent is imported: this must be small, and work while everything else does not.

The user is `-` for that of the agent, else `uid:group,group…` for the command alone: this process
stays root, so that it can end all of it and is closed to it.

To the status descriptor it writes lines of JSON: {"pid"} first, then {"code", "signal", "reason"}.
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
_LOOK_S = 0.5
_END_S = 2.0

IS_LINUX = sys.platform == "linux"


def main() -> int:
    status_fd, memory_bytes = int(sys.argv[1]), int(sys.argv[2])
    user, command = sys.argv[3], sys.argv[4:]
    if IS_LINUX:
        # What the command's children leave behind comes to us, and not to init.
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the agent says what to do by the pipe
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    child = _start(command, status_fd, user)
    _tell(status_fd, {"pid": child})
    status, reason = _watch(child, memory_bytes)
    _end_rest(child)
    _tell(
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
            _become(user)
        if IS_LINUX:
            # After the change of user, which clears it.
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != ours:  # gone before we asked
                os._exit(1)
        os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"{command[0]} can't be started: {error.strerror}\n".encode())
    os._exit(127)


def _become(user: str) -> None:
    """For good: nothing that the command runs, not even sudo, gives it other rights."""
    uid, _, groups = user.partition(":")
    os.fchown(1, int(uid), int(uid))  # to let it open /dev/stdout and /dev/stderr
    os.setgroups([int(group) for group in groups.split(",") if group])
    os.setresgid(int(uid), int(uid), int(uid))
    os.setresuid(int(uid), int(uid), int(uid))
    os.umask(0o077)
    if IS_LINUX:
        ctypes.CDLL(None).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def _watch(child: int, memory_bytes: int) -> tuple[int, str | None]:
    """Until the command ends: its wait status, and why we ended it, if we did."""
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
        ready, _, _ = select.select(sources, [], [], _LOOK_S if memory_bytes else None)
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
                reason = f"used {used_gb:.2f} GB of memory, over its bound of {limit_gb:.2f} GB"
                _signal_group(child, signal.SIGKILL)


def _reap(child: int) -> tuple[int, int]:
    """Takes leave of every child that ended; (child, status) once it is the command itself."""
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


def _end_rest(child: int) -> None:
    """Ends what the command left: its group, and what came to us as orphans."""
    _signal_group(child, signal.SIGTERM)
    deadline = time.monotonic() + _END_S
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
    """Every process below one, by /proc; none where there is no such thing.

    Without recursion: a job decides how long a chain of processes is.
    """
    found: list[int] = []
    parents = [of]
    while parents:
        # Each thread has children of its own.
        for task in Path(f"/proc/{parents.pop()}/task").glob("*"):
            with contextlib.suppress(OSError):
                children = [int(text) for text in (task / "children").read_text().split()]
                found += children
                parents += children
    return found


def _memory_of(pids: list[int], bound: int) -> int:
    """Bytes of memory of all of them; what they share is counted once, where that matters."""
    resident = sum(_resident(pid) for pid in pids)
    # The exact figure takes the kernel long, and is not wanted while the rough one is in bounds.
    return resident if resident <= bound else sum(_proportional(pid) for pid in pids)


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_BYTES
    except (OSError, ValueError, IndexError):
        return 0


def _proportional(pid: int) -> int:
    """Its share of each page: a page of two processes is half of each one's."""
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


def _tell(fd: int, what: dict[str, object]) -> None:
    with contextlib.suppress(BrokenPipeError):  # the agent is gone
        os.write(fd, json.dumps(what).encode() + b"\n")


if __name__ == "__main__":
    sys.exit(main())
