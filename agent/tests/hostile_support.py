"""Runs jobs whose handler attacks the agent, and records what the control plane receives."""

import sys
import textwrap
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from agent_support import Answer, Request, ScriptedServer, as_json, dispatched_job

from forge_agent.config import AgentConfig, HandlerConfig
from forge_agent.control_plane import ControlPlane
from forge_agent.deployments import Deployments
from forge_agent.gpu import CPU
from forge_agent.job_runner import JobRunner
from forge_agent.lease import Lease
from forge_agent.masking import Mask
from forge_agent.slot_user import RunAs

TIMEOUT_S = 30.0

# The first lines of each handler's code.
PREAMBLE = """
import json, os, sys, time
from pathlib import Path
job = json.loads(Path(os.environ["FORGE_JOB_FILE"]).read_text())
output, checkpoints = Path(job["output_dir"]), Path(job["checkpoint_dir"])
result = Path(os.environ["FORGE_RESULT_FILE"])
def wait_for(path):
    while not Path(path).exists(): time.sleep(0.01)
"""


class Received:
    """The files and the log that the control plane received.

    `files` is keyed by the path below the job's URL.
    """

    def __init__(self, server: ScriptedServer) -> None:
        self.files: dict[str, bytes] = {}
        self.log = b""
        self.on_file: Callable[[str], None] = lambda _: None
        server.script = self._answer

    def _answer(self, request: Request) -> Answer:
        path = request.path.partition("?")[0]
        if path.endswith("/log"):
            self.log += request.body
            return as_json({"length": len(self.log), "cancelled": False}, 202)
        name = path.removeprefix("/worker/jobs/job_1/")
        self.files[name] = request.body
        self.on_file(name)
        return as_json({"complete": True}, 201)

    @property
    def everything(self) -> bytes:
        return b"\n".join([self.log, *self.files.values()])


@pytest.fixture
def received(server: ScriptedServer) -> Received:
    return Received(server)


def run_hostile(
    control_plane: ControlPlane,
    folder: Path,
    code: str,
    arguments: Mapping[str, object],
    config: AgentConfig | None = None,
    image: str | None = None,
    program: str = sys.executable,
    run_as: RunAs = RunAs(),  # noqa: B008 - immutable
    **job: Any,  # noqa: ANN401 - fields of a job
) -> dict[str, Any]:
    """Runs a job with this Python code as handler and returns its report.

    `arguments`: global variables that the code can read, as strings.
    """
    given = "".join(f"{name} = {str(value)!r}\n" for name, value in arguments.items())
    command = (program, "-c", PREAMBLE + given + textwrap.dedent(code))
    config = replace(
        config or AgentConfig("http://127.0.0.1:9", "k", local_max_retries=0),
        handlers={"audit": HandlerConfig(command, image)},
    )
    mask = Mask({})
    deployments = Deployments(config, folder / "deployments", {}, mask)
    runner = JobRunner(config, control_plane, folder / "work", CPU, {}, deployments, mask, run_as)
    reports: list[dict[str, Any] | None] = []
    lease = Lease.of(dispatched_job(**job), "w")
    # In a daemon thread: if the agent blocks on a FIFO, the test fails instead of blocking too.
    thread = threading.Thread(target=lambda: reports.append(runner.run(lease)), daemon=True)
    thread.start()
    thread.join(TIMEOUT_S)
    assert reports, "the agent hangs"
    assert reports[0] is not None
    return reports[0]
