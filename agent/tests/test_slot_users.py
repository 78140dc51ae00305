"""Jobs that run as separate users: what they can't access, and what still works."""

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from agent_support import dispatched_job, free_ports
from hostile_support import Received, run_hostile
from slot_user_support import FIRST_UID, needs_root, open_path

from forge_agent import supervisor, user_processes
from forge_agent.chown_tree import chown_tree
from forge_agent.config import AgentConfig, HandlerConfig
from forge_agent.control_plane import ControlPlane
from forge_agent.deployment import Deployment
from forge_agent.deployments import Deployments
from forge_agent.handler_failed import HandlerFailed
from forge_agent.isolation import Isolation
from forge_agent.lease import Lease
from forge_agent.masking import Mask
from forge_agent.remove_tree import remove_tree
from forge_agent.slot_user import RunAs, SlotUser
from forge_agent.supervisor_client import Ending, SupervisedProcess
from forge_agent.user_processes import processes_of

__all__ = ["open_path"]

pytestmark = needs_root

PYTHON = "/usr/bin/python3"
needs_python = pytest.mark.skipif(not Path(PYTHON).exists(), reason=f"needs {PYTHON}")
SECRET = "the-key-of-the-agent"
UID = FIRST_UID + 2
USER = SlotUser(UID)
RUN_AS = RunAs(USER, USER)


@needs_python
def test_a_job_cannot_access_the_agent_or_another_slot(
    control_plane: ControlPlane,
    received: Received,
    open_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SERVICE_API_KEY", SECRET)
    other = open_path / "slot-0" / "work"
    RunAs(SlotUser(FIRST_UID)).prepare(other)
    (other / "job_2-1").mkdir()
    (other / "job_2-1" / "model.pt").write_text(SECRET)
    code = """
    job_folder = output.parent.parent
    paths = [f"/proc/{agent}/environ", f"/proc/{os.getppid()}/environ", f"/proc/{agent}/mem"]
    for path in [*paths, f"{other}/job_2-1/model.pt", job_folder / "log"]:
        for mode in ("rb", "r+b"):
            try:
                open(path, mode).read(1)
                print("OPEN", mode, path)
            except OSError: pass
    for folder in (other, job_folder, job_folder.parent):
        try: print("LISTED", folder, os.listdir(folder))
        except OSError: pass
        try: os.symlink("/", f"{folder}/planted"); print("PLANTED", folder)
        except OSError: pass
    for pid in (int(agent), os.getppid()):
        try: os.kill(pid, 0); print("KILLABLE", pid)
        except OSError: pass
    print("tried everything")
    """
    given = {"agent": os.getpid(), "other": other}
    report = run_hostile(control_plane, open_path, code, given, program=PYTHON, run_as=RUN_AS)
    assert report["status"] == "completed", report
    assert received.log == b"tried everything\n[forge] uploaded 0 files, 0 bytes\n"


@needs_python
def test_a_hard_link_to_an_unreadable_file_is_not_sent(
    control_plane: ControlPlane, received: Received, open_path: Path
) -> None:
    (open_path / "key").write_text(SECRET)
    (open_path / "key").chmod(0o600)
    code = """
    try: os.link(key, output / "link")
    except OSError: sys.exit("this kernel protects hard links")
    """
    given = {"key": open_path / "key"}
    report = run_hostile(control_plane, open_path, code, given, program=PYTHON, run_as=RUN_AS)
    assert SECRET.encode() not in received.everything
    assert (report["status"], report["retryable"]) == ("failed", False)


@needs_python
def test_a_normal_job_works_as_a_separate_user(
    control_plane: ControlPlane, received: Received, open_path: Path
) -> None:
    root = open_path / "artifacts"
    (root / "datasets" / "x").mkdir(parents=True)
    (root / "datasets" / "x" / "raw.jsonl").write_text("a row")
    config = AgentConfig("http://127.0.0.1:9", "k", local_max_retries=1, artifacts_dir=root)
    inputs = [{"param": "dataset_id", "value": "x", "uri": "forge://artifacts/datasets/x/"}]
    code = """
    if output.parent.name == "try-1":
        (checkpoints / "step-1").write_text("one")
        sys.exit(75)
    print(os.getuid(), os.getgid(), os.getgroups(), os.environ["LOGNAME"])
    Path("/dev/stdout").write_text("by the device\\n")
    Path.home().joinpath("cache").write_text("x")
    rows = Path(job["inputs"]["dataset_id"], "raw.jsonl").read_text()
    (output / "deep").mkdir()
    (output / "deep" / "rows").write_text(rows + Path(job["resume_from"]).read_text())
    result.write_text('{"result": {"ok": true}}')
    """
    old_mask = os.umask(0o077)  # the service's umask
    try:
        report = run_hostile(
            control_plane, open_path, code, {}, config, program=PYTHON, run_as=RUN_AS, inputs=inputs
        )
    finally:
        os.umask(old_mask)
    assert report["status"] == "completed", (report, received.log)
    assert report["result"] == {"ok": True}
    assert f"{UID} {UID} [] forge-{UID}\nby the device\n".encode() in received.log
    assert (root / "datasets" / "ds_1" / "deep" / "rows").read_text() == "a rowone"
    assert list((open_path / "work").iterdir()) == []


@needs_python
def test_a_deployed_model_runs_as_another_user_than_jobs(open_path: Path) -> None:
    isolation = Isolation(FIRST_UID)
    users = [isolation.of_jobs(n).bare for n in (0, 1)]
    users += [isolation.of_deployments(n).bare for n in (0, 1)]
    assert len(set(users)) == 4
    handlers = {"deploy": HandlerConfig((PYTHON, "-c", "import os; print(os.getuid())"))}
    config = AgentConfig("http://127.0.0.1:9", "k", handlers=handlers, stop_grace_s=0.1)
    folder = open_path / "deployments" / "dep_1"
    deployment = Deployment(config, folder, {}, Mask({}), isolation.of_deployments(1))
    deployment.prepare("127.0.0.1", free_ports(1), None)
    deployment.run_folder.describe(Lease.of(dispatched_job(job_type="deploy"), "w"), {}, None, {})
    deployment.start()
    with pytest.raises(HandlerFailed, match="ended before it was healthy"):
        deployment.wait_until_healthy()
    deployment.stop()
    assert deployment._pump
    deployment._pump.join()
    assert (folder / "server.log").read_text() == f"{FIRST_UID + 3}\n"
    assert (folder / "server.log").stat().st_mode & 0o777 == 0o600


def test_ends_the_deployments_of_a_killed_agent(open_path: Path) -> None:
    left = subprocess.Popen(["/bin/sleep", "600"], user=UID, group=UID, extra_groups=[])
    try:
        config = AgentConfig("http://127.0.0.1:9", "k")
        Deployments(config, open_path / "deployments", {}, Mask({}), RUN_AS)
        assert left.wait(5) == -9
    finally:
        left.kill()
        left.wait()


@needs_python
def test_a_job_that_uses_up_all_processes_is_reported_and_its_folder_removed(
    control_plane: ControlPlane,
    received: Received,
    open_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The agent must end the job's processes even if it can't start its helper process.

    The helper can't start if the job has used up the process limit. The test simulates this after
    the handler has ended.
    """

    def use_up_all(name: str) -> None:
        def fails(*_: object, **__: object) -> None:
            raise BlockingIOError(11, "Resource temporarily unavailable")

        monkeypatch.setattr(user_processes.subprocess, "run", fails)
        # The supervisor has ended, so the agent must kill this process.
        hidden.append(subprocess.Popen(["/bin/sleep", "600"], user=UID, group=UID))

    hidden: list[subprocess.Popen[bytes]] = []
    received.on_file = use_up_all
    code = "(output / 'a').touch()"
    report = run_hostile(control_plane, open_path, code, {}, program=PYTHON, run_as=RUN_AS)
    assert report["status"] == "completed"
    assert hidden[0].wait(5) == -9
    assert list((open_path / "work").iterdir()) == []


def test_no_process_of_the_user_remains(open_path: Path) -> None:
    script = """
    trap "" TERM
    sleep 600 &
    setsid sh -c 'trap "" TERM; echo $$; sleep 600' &
    wait
    """
    supervised = SupervisedProcess(
        ("/bin/sh", "-c", script), open_path, dict(os.environ), user=USER
    )
    daemon = int(supervised.output.readline())
    assert Path(f"/proc/{daemon}").stat().st_uid == USER.uid
    supervised.stop(grace_s=0)
    assert supervised.wait() == Ending(None, 9, None)
    assert not Path(f"/proc/{daemon}").exists()


@needs_python
def test_the_memory_limit_applies_to_the_user(open_path: Path) -> None:
    code = "x = bytearray(b'1') * 300_000_000; import time; time.sleep(600)"
    supervised = SupervisedProcess((PYTHON, "-c", code), open_path, dict(os.environ), 0.2, USER)
    ending = supervised.wait()
    assert ending.signal == 9
    assert "over its limit of 0.20 GB" in str(ending.reason)


def test_a_command_ends_with_its_supervisor_even_without_the_agent(open_path: Path) -> None:
    """The parent-death signal must be set after the change of user, which clears it."""
    command = ("/bin/sh", "-c", "echo $$; exec sleep 600")
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", str(supervisor.__file__), "2", "0", f"{USER.uid}:", *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=open_path,
    )
    assert process.stdout
    pid = int(process.stdout.readline())
    process.kill()
    process.wait()
    try:
        _wait_until(lambda: not Path(f"/proc/{pid}").exists() or _is_zombie(pid))
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, 9)
        process.communicate()


def test_the_owner_of_files_with_several_hard_links_is_not_changed(tmp_path: Path) -> None:
    """A job may have linked one of the agent's files into its folder.

    The file must still belong to the agent's user.
    """
    (tmp_path / "agents").write_text(SECRET)
    (tmp_path / "jobs").mkdir()
    os.link(tmp_path / "agents", tmp_path / "jobs" / "link")
    (tmp_path / "jobs" / "to").symlink_to(tmp_path / "agents")
    (tmp_path / "jobs" / "own").touch()
    chown_tree(tmp_path / "jobs", USER.uid)
    assert (tmp_path / "agents").stat().st_uid == 0
    assert (tmp_path / "jobs" / "own").stat().st_uid == USER.uid


def test_the_owner_of_folders_of_any_depth_is_changed(deep_path: Path) -> None:
    """The folder is deeper than the limits on recursion, open descriptors and path length."""
    (deep_path / "root").mkdir()
    folder = os.open(deep_path / "root", os.O_RDONLY)
    for name in ("d", "last") * 2_500:
        os.mkdir("sibling", dir_fd=folder)
        os.mkdir(name, dir_fd=folder)
        below = os.open(name, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.close(os.open("file", os.O_CREAT, dir_fd=folder))
    os.chown("file", 0, 0, dir_fd=folder)
    chown_tree(deep_path / "root", USER.uid)
    assert os.fstat(folder).st_uid == USER.uid
    assert os.stat("file", dir_fd=folder).st_uid == USER.uid
    assert os.stat("../sibling", dir_fd=folder).st_uid == USER.uid
    os.close(folder)
    assert remove_tree(deep_path / "root")


def _is_zombie(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def _wait_until(holds: Callable[[], bool], timeout_s: float = 10) -> None:
    deadline = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@needs_python
def test_processes_that_outlive_their_supervisor_are_ended(
    control_plane: ControlPlane, received: Received, open_path: Path
) -> None:
    code = """
    import ctypes, signal, subprocess, time
    # This process has no group, parent or variable that shows to which job it belongs.
    subprocess.Popen(["/bin/sleep", "600"], env={}, start_new_session=True)
    print("hidden", flush=True)
    time.sleep(600)
    """

    def kill_supervisor() -> None:
        deadline = time.monotonic() + 60
        while b"hidden\n" not in received.log and time.monotonic() < deadline:
            time.sleep(0.02)
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                words = (folder / "cmdline").read_bytes().split(b"\0")
                if f"{UID}:".encode() in words and any(
                    word.endswith(b"supervisor.py") for word in words
                ):
                    os.kill(int(folder.name), 9)

    killer = threading.Thread(target=kill_supervisor)
    killer.start()
    report = run_hostile(control_plane, open_path, code, {}, program=PYTHON, run_as=RUN_AS)
    killer.join()
    assert report["status"] == "failed"
    assert b"hidden\n" in received.log
    assert processes_of(USER.uid) == []
