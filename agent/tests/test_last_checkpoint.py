"""The newest checkpoint of an attempt that fails, for the worker that continues the job."""

from pathlib import Path

import pytest
from hostile_support import Received, run_hostile

from forge_agent import checkpoint_uploads
from forge_agent.config import AgentConfig
from forge_agent.control_plane import ControlPlane

FAILS = """
(checkpoints / output.parent.name).write_text("state")
sys.exit(int(code))
"""


def _run(control_plane: ControlPlane, folder: Path, code: int, retries: int) -> bool:
    """Runs a job that writes a checkpoint and fails with this exit code.

    Returns whether another worker may get the job.
    """
    config = AgentConfig("http://127.0.0.1:9", "k", local_max_retries=retries)
    report = run_hostile(control_plane, folder, FAILS, {"code": code}, config)
    assert report["status"] == "failed"
    return bool(report["retryable"])


@pytest.fixture(autouse=True)
def _no_uploads_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint_uploads, "_INTERVAL_S", 60)


@pytest.mark.parametrize("retries", [0, 1])
def test_it_is_uploaded_after_the_last_try(
    control_plane: ControlPlane, received: Received, tmp_path: Path, retries: int
) -> None:
    assert _run(control_plane, tmp_path, code=75, retries=retries)
    assert received.files == {f"checkpoints/try-{retries + 1}": b"state"}


def test_it_is_not_uploaded_if_the_job_fails_for_good(
    control_plane: ControlPlane, received: Received, tmp_path: Path
) -> None:
    assert not _run(control_plane, tmp_path, code=1, retries=0)
    assert received.files == {}


def test_it_is_uploaded_once(
    control_plane: ControlPlane,
    received: Received,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(checkpoint_uploads, "_INTERVAL_S", 0.01)
    uploads: list[str] = []
    received.on_file = uploads.append
    go = tmp_path / "go"
    # The handler waits for this log line, which the agent writes after it has recorded the upload.
    monkeypatch.setattr(checkpoint_uploads.logger, "info", lambda *_: go.touch())
    code = """
    (checkpoints / ".part").write_text("state")
    (checkpoints / ".part").rename(checkpoints / "step-1")
    wait_for(go)
    sys.exit(75)
    """
    report = run_hostile(control_plane, tmp_path, code, {"go": go})
    assert (report["status"], report["retryable"]) == ("failed", True)
    assert uploads == ["checkpoints/step-1"]
