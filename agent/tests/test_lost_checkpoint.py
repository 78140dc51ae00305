"""Jobs whose checkpoint of an earlier attempt is no longer in the store."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

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


def _missing() -> Answer:
    return as_error(404, "file_not_found")


def _of_other_bytes() -> Answer:
    return Answer(200, b"other", {"content-length": "5"})


def _forbidden() -> Answer:
    return as_error(403, "forbidden")


Resume = Callable[[Callable[[], Answer]], dict[str, Any]]


@pytest.fixture
def resume(
    server: ScriptedServer, control_plane: ControlPlane, received: Received, tmp_path: Path
) -> Resume:
    """A function that runs a job which should resume from a checkpoint.

    Its argument creates the response to a request for the checkpoint.
    """

    def run(answer: Callable[[], Answer]) -> dict[str, Any]:
        others = server.script

        def script(request: Request) -> Answer:
            is_checkpoint = request.path.partition("?")[0] == CHECKPOINT
            return answer() if is_checkpoint else others(request)

        server.script = script
        return run_hostile(control_plane, tmp_path, CODE, {}, resume_from=RESUME, attempt=2)

    return run


@pytest.mark.parametrize("answer", [_missing, _of_other_bytes])
def test_the_job_starts_from_the_beginning(
    resume: Resume, received: Received, answer: Callable[[], Answer]
) -> None:
    assert resume(answer)["status"] == "completed"
    assert received.files == {"artifacts/resumed": b"None"}
    assert b"starts from the beginning" in received.log


def test_another_refusal_fails_the_attempt(resume: Resume, received: Received) -> None:
    assert resume(_forbidden)["status"] == "failed"
    assert received.files == {}
