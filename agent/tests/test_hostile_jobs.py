"""Jobs that leave links, FIFOs and hard links in place of files that the agent reads."""

import json
import os
from pathlib import Path

import pytest
from hostile_support import Received, run_hostile

from forge_agent import checkpoint_uploads, handler_folder
from forge_agent.config import AgentConfig
from forge_agent.control_plane import ControlPlane
from forge_agent.job_files import UnsafeFile, open_file
from forge_agent.job_listing import list_files

SECRET = b"the-key-of-the-agent"
OTHER_UID = 61_999
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder whose content the job must not get."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a").write_bytes(SECRET)
    (outside / "result.json").write_text(json.dumps({"result": {"x": SECRET.decode()}}))
    (outside / "metrics").write_text('{"progress": 1, "metrics": {"leaked": 7}}')
    return outside


def test_links_among_the_outputs_are_skipped_and_named(
    control_plane: ControlPlane, received: Received, tmp_path: Path, outside: Path
) -> None:
    code = """
    (output / "good").write_text("mine")
    (output / "link").symlink_to(f"{outside}/a")
    (output / "folder").symlink_to(outside)
    (output / "environ").symlink_to(f"/proc/{os.getppid()}/environ")
    os.mkfifo(output / "fifo")
    """
    report = run_hostile(control_plane, tmp_path, code, {"outside": outside})
    assert report["status"] == "completed"
    assert received.files == {"artifacts/good": b"mine"}
    assert b"4 links or special files are left out: output/'environ'" in received.log


def test_an_output_folder_that_is_a_link_fails_the_job(
    control_plane: ControlPlane, received: Received, tmp_path: Path, outside: Path
) -> None:
    code = """
    output.rmdir()
    output.symlink_to(outside)
    """
    report = run_hostile(control_plane, tmp_path, code, {"outside": outside})
    assert (report["status"], report["retryable"]) == ("failed", False)
    assert "output is a link" in report["error"]
    assert b"output is a link" in received.log
    assert received.files == {}


@pytest.mark.parametrize("put", ["link", "link to its folder", "fifo"])
def test_a_file_that_is_replaced_after_the_listing_is_refused(
    control_plane: ControlPlane, received: Received, tmp_path: Path, outside: Path, put: str
) -> None:
    """A process of the job may replace a file after the agent has listed it.

    While the agent uploads the first file, `0`, the test replaces the second file, `deep/a`.
    """

    def swap(name: str) -> None:
        if name != "artifacts/0":
            return
        (folder,) = (tmp_path / "work").glob("*/try-1/output/deep")
        (folder / "a").unlink()
        if put == "link":
            (folder / "a").symlink_to(outside / "a")
        elif put == "fifo":
            os.mkfifo(folder / "a")
        else:
            folder.rmdir()
            folder.symlink_to(outside)

    received.on_file = swap
    code = """
    (output / "0").write_text("first")
    (output / "deep").mkdir()
    (output / "deep" / "a").write_text("harmless")
    """
    report = run_hostile(control_plane, tmp_path, code, {})
    assert SECRET not in received.everything
    assert (report["status"], report["retryable"]) == ("failed", False)
    assert "output/deep" in report["error"]


def test_a_result_that_is_a_link_fails_the_job(
    control_plane: ControlPlane, received: Received, tmp_path: Path, outside: Path
) -> None:
    code = 'result.symlink_to(f"{outside}/result.json")'
    report = run_hostile(control_plane, tmp_path, code, {"outside": outside})
    assert (report["status"], report["retryable"]) == ("failed", False)
    assert "result.json is a link" in report["error"]
    assert SECRET not in json.dumps(report).encode() + received.everything


def test_a_progress_file_that_is_a_link_reports_nothing(
    control_plane: ControlPlane, received: Received, tmp_path: Path, outside: Path
) -> None:
    code = 'Path(os.environ["FORGE_PROGRESS"]).symlink_to(f"{outside}/metrics")'
    report = run_hostile(control_plane, tmp_path, code, {"outside": outside})
    assert report["status"] == "completed"
    assert "leaked" not in report["metrics"]


def test_a_link_in_place_of_the_log_is_not_followed(
    control_plane: ControlPlane, received: Received, tmp_path: Path, outside: Path
) -> None:
    code = """
    log = output.parent.parent / "log"
    log.unlink()
    log.symlink_to(f"{outside}/a")
    print("written through the link", flush=True)
    """
    report = run_hostile(control_plane, tmp_path, code, {"outside": outside})
    assert report["status"] == "completed"
    assert (outside / "a").read_bytes() == SECRET
    assert SECRET not in received.log
    assert b"written through the link" in received.log


def test_a_checkpoint_that_is_a_link_is_not_sent(
    control_plane: ControlPlane,
    received: Received,
    tmp_path: Path,
    outside: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(checkpoint_uploads, "_INTERVAL_S", 0.01)
    os.utime(outside / "a", (4e9, 4e9))  # newer than any other
    received.on_file = lambda _: (tmp_path / "go").touch()
    code = """
    (checkpoints / "link").symlink_to(f"{outside}/a")
    (checkpoints / ".part").write_text("mine")
    (checkpoints / ".part").rename(checkpoints / "step-1")
    wait_for(go)
    """
    given = {"outside": outside, "go": tmp_path / "go"}
    report = run_hostile(control_plane, tmp_path, code, given)
    assert report["status"] == "completed"
    assert received.files == {"checkpoints/step-1": b"mine"}


@pytest.mark.parametrize("what", ["folder", "file"])
def test_the_next_try_does_not_resume_from_a_link(
    control_plane: ControlPlane, received: Received, tmp_path: Path, outside: Path, what: str
) -> None:
    code = """
    if output.parent.name == "try-1":
        if what == "folder":
            checkpoints.rmdir()
            checkpoints.symlink_to(outside)
        else:
            (checkpoints / "link").symlink_to(f"{outside}/a")
        sys.exit(75)
    (output / "resumed").write_text(str(job["resume_from"]))
    """
    config = AgentConfig("http://127.0.0.1:9", "k", local_max_retries=1)
    given = {"outside": outside, "what": what}
    report = run_hostile(control_plane, tmp_path, code, given, config)
    assert report["status"] == "completed"
    assert received.files == {"artifacts/resumed": b"None"}


def test_the_next_try_resumes_from_a_checkpoint_that_the_job_cannot_replace(
    control_plane: ControlPlane, received: Received, tmp_path: Path
) -> None:
    code = """
    if output.parent.name == "try-1":
        (checkpoints / "step-1").write_text("one")
        sys.exit(75)
    resumed = Path(job["resume_from"])
    (output / "resumed").write_text(resumed.parent.parent.name + " " + resumed.read_text())
    """
    config = AgentConfig("http://127.0.0.1:9", "k", local_max_retries=1)
    report = run_hostile(control_plane, tmp_path, code, {}, config)
    assert report["status"] == "completed"
    assert received.files == {"artifacts/resumed": b"resume one"}


def test_a_link_among_local_artifacts_is_refused_as_input(
    control_plane: ControlPlane, received: Received, tmp_path: Path, outside: Path
) -> None:
    root = tmp_path / "artifacts"
    (root / "datasets" / "x").mkdir(parents=True)
    (root / "datasets" / "x" / "raw.jsonl").symlink_to(outside / "a")
    config = AgentConfig("http://127.0.0.1:9", "k", local_max_retries=0, artifacts_dir=root)
    inputs = [{"param": "dataset_id", "value": "x", "uri": "forge://artifacts/datasets/x/"}]
    code = 'print(*(path.read_text() for path in Path(job["inputs"]["dataset_id"]).iterdir()))'
    report = run_hostile(control_plane, tmp_path, code, {}, config, inputs=inputs)
    assert SECRET not in received.everything
    assert (report["status"], report["retryable"]) == ("failed", False)
    assert "raw.jsonl is a link" in report["error"]


def test_deleting_a_jobs_folder_keeps_the_targets_of_its_links(
    control_plane: ControlPlane, received: Received, tmp_path: Path, outside: Path
) -> None:
    code = """
    (output / "link").symlink_to(outside)
    (output.parent / "tmp").rmdir()
    (output.parent / "tmp").symlink_to(outside)
    """
    run_hostile(control_plane, tmp_path, code, {"outside": outside})
    assert list((tmp_path / "work").iterdir()) == []
    assert (outside / "a").read_bytes() == SECRET


@needs_root
def test_a_hard_link_to_another_users_file_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "try-1"
    root.mkdir()
    (root / "own").write_text("mine")
    os.link(root / "own", root / "own again")
    (root / "theirs").write_bytes(SECRET)
    os.chown(root / "theirs", OTHER_UID, OTHER_UID)
    os.link(root / "theirs", root / "link")
    with open_file(root, "own again") as file:
        assert file.read() == b"mine"
    with pytest.raises(UnsafeFile, match="link is a hard link to a file of another user"):
        open_file(root, "link")


def test_refuses_paths_outside_of_the_root_and_deep_nesting(tmp_path: Path) -> None:
    for name in ("../x", "a/../../x", "/etc/passwd"):
        with pytest.raises(UnsafeFile):
            open_file(tmp_path, name)
    folder = os.open(tmp_path, os.O_RDONLY)
    for _ in range(200):
        os.mkdir("d", dir_fd=folder)
        below = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.close(folder)
    with pytest.raises(UnsafeFile, match="deeper than 64 folders"):
        list_files(tmp_path)


DEEP = """
for folder in (Path(os.environ["TMPDIR"]), output):
    os.chdir(folder)
    for _ in range(depth):
        os.mkdir("d")
        os.chdir("d")
"""


@pytest.mark.parametrize("depth", [1_500, 5_000])
def test_very_deep_folders_fail_the_job_but_not_the_slot(
    control_plane: ControlPlane, received: Received, deep_path: Path, depth: int
) -> None:
    report = run_hostile(control_plane, deep_path, f"depth = {depth}\n{DEEP}", {})
    assert (report["status"], report["retryable"]) == ("failed", False)
    assert "deeper than 64 folders" in report["error"]
    assert list((deep_path / "work").iterdir()) == []
    report = run_hostile(control_plane, deep_path, "(output / 'next').write_text('x')", {})
    assert report["status"] == "completed"


def test_removes_folders_without_permissions_but_not_the_targets_of_links(
    control_plane: ControlPlane, received: Received, tmp_path: Path, outside: Path
) -> None:
    code = """
    temporary = Path(os.environ["TMPDIR"])
    (temporary / "link").symlink_to(outside)
    (temporary / "a" / "b").mkdir(parents=True)
    (temporary / "a" / "b" / "file").write_text("x")
    (temporary / "a" / "b").chmod(0)
    (temporary / "a").chmod(0)
    """
    run_hostile(control_plane, tmp_path, code, {"outside": outside})
    assert list((tmp_path / "work").iterdir()) == []
    assert (outside / "a").read_bytes() == SECRET


@pytest.mark.parametrize("what", ["file", "folder"])
def test_too_many_files_fail_the_job(
    control_plane: ControlPlane,
    received: Received,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    what: str,
) -> None:
    monkeypatch.setattr(handler_folder, "MAX_OUTPUTS", 50, raising=False)
    make = "(output / str(n)).mkdir()" if what == "folder" else "(output / str(n)).touch()"
    report = run_hostile(control_plane, tmp_path, f"for n in range(51): {make}", {})
    assert (report["status"], report["retryable"]) == ("failed", False)
    assert "output has more than 50 files and folders" in report["error"]
    assert received.files == {}


def test_deep_folders_in_the_checkpoint_folder_do_not_prevent_uploads(
    control_plane: ControlPlane,
    received: Received,
    deep_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(checkpoint_uploads, "_INTERVAL_S", 0.01)
    received.on_file = lambda _: (deep_path / "go").touch()
    code = """
    os.chdir(checkpoints)
    for _ in range(1500):
        os.mkdir("d")
        os.chdir("d")
    (checkpoints / "step-1").write_text("mine")
    wait_for(go)
    """
    report = run_hostile(control_plane, deep_path, code, {"go": deep_path / "go"})
    assert report["status"] == "completed"
    assert received.files == {"checkpoints/step-1": b"mine"}


def test_too_many_checkpoints_are_logged_once_and_the_job_continues(
    control_plane: ControlPlane,
    received: Received,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(checkpoint_uploads, "_INTERVAL_S", 0.01)
    monkeypatch.setattr(checkpoint_uploads, "_MAX_ENTRIES", 50, raising=False)
    code = """
    for n in range(51): (checkpoints / f".{n}").touch()
    time.sleep(0.5)
    """
    report = run_hostile(control_plane, tmp_path, code, {})
    assert report["status"] == "completed"
    assert caplog.text.count("checkpoints has more than 50 files and folders") == 1
