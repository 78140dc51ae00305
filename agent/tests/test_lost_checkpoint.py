"""Jobs whose checkpoint of an earlier attempt is no longer in the store."""

from collections.abc import Callable
from pathlib import Path

import pytest
from agent_support import Answer, Request, ScriptedServer, as_error
from hostile_support import Received, run_hostile

from forge_agent.control_plane import ControlPlane

CHECKPOINT = "/worker/jobs/job_1/inputs/resume_from/step-7"
RESUME = {
    "attempt": 1,
    "name": "step-7",
    "size_bytes": 5,
    "sha256": "0" * 64,
    "path": "step-7",
    "url": CHECKPOINT,
}
CODE = """
(output / "resumed").write_text(str(job["resume_from"]))
"""


@pytest.fixture
def received(server: ScriptedServer) -> Received:
    return Received(server)


def _missing() -> Answer:
    return as_error(404, "file_not_found")


def _of_other_bytes() -> Answer:
    return Answer(200, b"other", {"content-length": "5"})


@pytest.mark.parametrize("answer", [_missing, _of_other_bytes])
def test_the_job_starts_from_the_beginning(
    server: ScriptedServer,
    control_plane: ControlPlane,
    received: Received,
    tmp_path: Path,
    answer: Callable[[], Answer],
) -> None:
    others = server.script

    def script(request: Request) -> Answer:
        is_checkpoint = request.path.partition("?")[0] == CHECKPOINT
        return answer() if is_checkpoint else others(request)

    server.script = script
    report = run_hostile(control_plane, tmp_path, CODE, {}, resume_from=RESUME, attempt=2)
    assert report["status"] == "completed"
    assert received.files == {"artifacts/resumed": b"None"}
    assert b"starts from the beginning" in received.log


def test_another_refusal_fails_the_attempt(
    server: ScriptedServer, control_plane: ControlPlane, received: Received, tmp_path: Path
) -> None:
    others = server.script

    def script(request: Request) -> Answer:
        is_checkpoint = request.path.partition("?")[0] == CHECKPOINT
        return as_error(403, "forbidden") if is_checkpoint else others(request)

    server.script = script
    report = run_hostile(control_plane, tmp_path, CODE, {}, resume_from=RESUME, attempt=2)
    assert report["status"] == "failed"
    assert received.files == {}
