"""Processes of a slot's user that try to survive."""

import itertools
import subprocess
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from slot_user_support import FIRST_UID, needs_root

from forge_agent import user_processes
from forge_agent.user_processes import end_processes_of, processes_of

pytestmark = needs_root

UID = FIRST_UID + 10
OTHER_UID = FIRST_UID + 11
PYTHON = "/usr/bin/python3"
needs_python = pytest.mark.skipif(not Path(PYTHON).exists(), reason=f"needs {PYTHON}")

Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a process of the user and waits until it is ready: until its first line of output."""
    started: list[subprocess.Popen[bytes]] = []

    def run(code: str, uid: int = UID) -> "subprocess.Popen[bytes]":
        command = [PYTHON, "-c", textwrap.dedent(code)]
        process = subprocess.Popen(
            command, user=uid, group=uid, extra_groups=[], stdout=subprocess.PIPE
        )
        started.append(process)
        assert process.stdout
        assert process.stdout.readline() == b"up\n"
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()


SLEEPS = "import time; print('up', flush=True); time.sleep(600)"


@needs_python
def test_processes_of_other_users_continue(start: Start) -> None:
    own, other = start(SLEEPS), start(SLEEPS, OTHER_UID)
    assert end_processes_of(UID) == []
    assert own.wait(5) == -9
    assert other.poll() is None


@needs_python
def test_ends_a_process_whose_first_thread_has_ended(start: Start) -> None:
    """The kernel shows the process as a zombie while its other threads are still running."""
    process = start("""
        import ctypes, threading, time
        def go_on():
            time.sleep(0.1)
            print("up", flush=True)
            time.sleep(600)
        threading.Thread(target=go_on).start()
        ctypes.CDLL(None).syscall(60 if "x86" in __import__("os").uname().machine else 93, 0)
    """)
    assert processes_of(UID) == [process.pid]
    assert end_processes_of(UID) == []
    assert process.wait(5) == -9


@needs_python
@pytest.mark.parametrize("number", [9, 19])
def test_ends_a_process_that_kills_or_stops_all_others_of_its_user(
    start: Start, number: int
) -> None:
    start(f"""
        import contextlib, os
        print("up", flush=True)
        while True:
            with contextlib.suppress(OSError): os.kill(-1, {number})
    """)
    started = time.monotonic()
    assert end_processes_of(UID) == []
    assert time.monotonic() - started < 5


@needs_python
def test_ends_processes_that_fork_continuously(start: Start) -> None:
    start("""
        import os, resource
        resource.setrlimit(resource.RLIMIT_NPROC, (40, 40))
        print("up", flush=True)
        while True:
            try: os.fork()
            except OSError: pass
    """)
    assert end_processes_of(UID) == []


@needs_python
def test_ends_processes_after_the_machine_was_suspended(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = start(SLEEPS)
    times = itertools.count(step=user_processes.TIMEOUT_S + 1)
    clock = SimpleNamespace(monotonic=lambda: next(times), sleep=time.sleep)
    monkeypatch.setattr(user_processes, "time", clock)
    assert end_processes_of(UID) == []
    assert process.wait(5) == -9


@needs_python
def test_works_if_no_process_can_be_started(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job may have used up the service's process limit."""

    def fails(*_: object, **__: object) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    process = start(SLEEPS)
    monkeypatch.setattr(user_processes.subprocess, "run", fails)
    assert end_processes_of(UID) == []
    assert process.wait(5) == -9


@needs_python
def test_returns_processes_that_cannot_be_ended(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process in uninterruptible sleep, for example for a disk, can't be killed.

    The test simulates it by not sending the signal.
    """
    process = start(SLEEPS)
    monkeypatch.setattr(user_processes, "_end", lambda *_: None)
    assert end_processes_of(UID, timeout_s=0.1) == [process.pid]
