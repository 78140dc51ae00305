"""Supervised commands. The tests start real processes and check that none remains."""

import contextlib
import inspect
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from forge_agent import supervisor
from forge_agent.supervisor_client import Ending, SupervisedProcess

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc and subreapers are Linux's")

TREE = """
import os, subprocess, sys, time
# Starts a process in the group, and one that leaves the group like a daemon.
subprocess.Popen(["sleep", "600"])
subprocess.Popen(["sleep", "601"], start_new_session=True)
print(os.getpid(), flush=True)
"""


def _supervised(code: str, tmp_path: Path, memory_gb: float | None = None) -> SupervisedProcess:
    command = [sys.executable, "-c", textwrap.dedent(code)]
    return SupervisedProcess(command, tmp_path, dict(os.environ), memory_gb)


def _finish(supervised: SupervisedProcess) -> tuple[bytes, Ending]:
    output = supervised.output.read()
    return output, supervised.wait()


def test_reports_how_the_command_ended(tmp_path: Path) -> None:
    assert _finish(_supervised("print('hello')", tmp_path)) == (b"hello\n", Ending(0, None, None))
    assert _finish(_supervised("raise SystemExit(75)", tmp_path))[1] == Ending(75, None, None)
    killed = _supervised("import os; os.kill(os.getpid(), 9)", tmp_path)
    assert _finish(killed)[1] == Ending(None, 9, None)
    missing = SupervisedProcess(["no-such-program"], tmp_path, dict(os.environ))
    output, ending = _finish(missing)
    assert ending.code == 127
    assert b"no-such-program can't be started" in output


def test_runs_in_its_folder_with_its_environment_and_no_input(tmp_path: Path) -> None:
    code = "import os, sys; print(os.getcwd(), os.environ['A'], len(sys.stdin.read()))"
    supervised = SupervisedProcess([sys.executable, "-c", code], tmp_path, {"A": "b"})
    assert _finish(supervised)[0] == f"{tmp_path} b 0\n".encode()


def test_ends_processes_that_the_command_leaves_running(tmp_path: Path) -> None:
    supervised = _supervised(TREE, tmp_path)
    started = time.monotonic()
    _, ending = _finish(supervised)
    assert ending.code == 0
    assert time.monotonic() - started < 5
    assert not _group_exists(supervised.pid)


def test_stop_sends_sigterm_and_sigkill_after_the_grace(tmp_path: Path) -> None:
    polite = _supervised("import time; print('up', flush=True); time.sleep(600)", tmp_path)
    polite.output.readline()
    polite.stop(grace_s=60)
    assert _finish(polite)[1] == Ending(None, 15, None)
    code = "import signal, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True)\n"
    stubborn = _supervised(code + "while True: time.sleep(1)", tmp_path)
    stubborn.output.readline()
    stubborn.stop(grace_s=0.3)
    assert _finish(stubborn)[1] == Ending(None, 9, None)


def test_ends_a_group_that_uses_too_much_memory(tmp_path: Path) -> None:
    code = """
    import subprocess, sys
    child = "x = bytearray(300_000_000); import time; time.sleep(600)"
    subprocess.run([sys.executable, "-c", child])
    """
    _, ending = _finish(_supervised(code, tmp_path, memory_gb=0.2))
    assert ending.signal == 9
    assert ending.reason is not None
    assert "over its limit of 0.20 GB" in ending.reason


def test_shared_memory_counts_once_and_children_of_threads_count(
    tmp_path: Path,
) -> None:
    shared = """
    import os, time
    x = bytearray(os.urandom(1_000_000) * 150)
    for _ in range(4):
        if os.fork() == 0: time.sleep(3); os._exit(0)
    time.sleep(1.5)
    """
    assert _finish(_supervised(shared, tmp_path, memory_gb=0.4))[1] == Ending(0, None, None)
    by_thread = """
    import subprocess, sys, threading
    child = "x = bytearray(b'1') * 300_000_000; import time; time.sleep(600)"
    command = [sys.executable, "-c", child]
    thread = threading.Thread(target=subprocess.run, args=[command]); thread.start(); thread.join()
    """
    assert _finish(_supervised(by_thread, tmp_path, memory_gb=0.2))[1].signal == 9


def test_a_long_chain_of_processes_does_not_break_the_supervisor() -> None:
    """Each process of the chain is the parent of the next one.

    The test lowers the recursion limit, so that a recursive search would fail on a chain of 60.
    """
    code = """
    import os, time
    for _ in range(60):
        if os.fork(): time.sleep(600)
    print("long", flush=True)
    time.sleep(600)
    """
    command = [sys.executable, "-S", "-c", textwrap.dedent(code)]
    chain = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
    limit = sys.getrecursionlimit()
    try:
        assert chain.stdout is not None
        assert chain.stdout.readline() == b"long\n"
        sys.setrecursionlimit(len(inspect.stack()) + 40)
        assert len(supervisor._descendants(chain.pid)) == 60
    finally:
        sys.setrecursionlimit(limit)
        os.killpg(chain.pid, 9)
        chain.communicate()


@pytest.mark.parametrize("victim", ["agent", "supervisor"])
def test_no_process_survives_a_kill_of(victim: str, tmp_path: Path) -> None:
    code = f"""
    import os, sys, time
    from pathlib import Path
    from forge_agent.supervisor_client import SupervisedProcess
    tree = {TREE!r} + "time.sleep(600)"
    env = {{**os.environ, "FORGE_JOB_FILE": {str(tmp_path)!r}}}
    supervised = SupervisedProcess([sys.executable, "-c", tree], Path("."), env)
    supervised.output.readline()
    print(supervised.pid, supervised._process.pid, flush=True)
    supervised.output.read()  # until all writers have closed it
    supervised.wait()
    """
    agent = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
    )
    assert agent.stdout is not None
    command, supervisor = map(int, agent.stdout.readline().split())
    assert _is_alive(command)
    os.kill(agent.pid if victim == "agent" else supervisor, 9)
    _wait_until(lambda: not _is_alive(command))
    agent.wait(timeout=10)
    _wait_until(lambda: _marked(str(tmp_path)) == [])
    agent.stdout.close()
    if victim == "agent":
        _wait_until(lambda: not _is_alive(supervisor))


def test_processes_started_during_the_cleanup_do_not_survive(tmp_path: Path) -> None:
    spawn = """
    import subprocess
    while True:
        subprocess.Popen(["sleep", "602"], start_new_session=True)
    """
    code = f"""
    import subprocess, sys
    command = [sys.executable, "-c", {textwrap.dedent(spawn)!r}]
    subprocess.Popen(command, start_new_session=True).wait()
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    supervised = SupervisedProcess(
        command, tmp_path, {**os.environ, "FORGE_JOB_FILE": str(tmp_path)}
    )
    _wait_until(lambda: len(_marked(str(tmp_path))) > 10)
    os.kill(supervised._process.pid, 9)
    supervised.wait()
    assert _marked(str(tmp_path)) == []


def _is_alive(pid: int) -> bool:
    try:
        # A zombie (Z) has ended: for example, an orphan that is not reaped yet.
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def _group_exists(group: int) -> bool:
    """Whether a process of the group remains."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def _marked(marker: str) -> list[str]:
    """Returns the ids of all processes whose FORGE_JOB_FILE begins with `marker`."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"FORGE_JOB_FILE={marker}".encode() in (folder / "environ").read_bytes():
                found.append(folder.name)
    return found


def _wait_until(holds: Callable[[], bool], timeout_s: float = 10) -> None:
    deadline = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)
