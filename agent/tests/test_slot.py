"""What a slot does with the control plane's commands."""

from pathlib import Path

import pytest
from agent_support import handed_job

from forge_agent.config import AgentConfig
from forge_agent.control_plane import ControlPlane
from forge_agent.gpu import CPU, Nvml
from forge_agent.lease import Lease
from forge_agent.slot import Slot


@pytest.fixture
def slot(control_plane: ControlPlane, tmp_path: Path) -> Slot:
    config = AgentConfig("http://127.0.0.1:9", "k")
    return Slot(config, control_plane, "w", Nvml(), CPU, {}, tmp_path, lambda: None)


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ({"type": "job_lost", "job_id": "job_1", "attempt": 1}, None),
        ({"type": "job_lost", "job_id": "job_2"}, None),
        ({"type": "job_lost", "job_id": "job_1", "attempt": 2}, "lost"),
        ({"type": "job_lost", "job_id": "job_1"}, "lost"),
        ({"type": "cancel_job", "job_id": "job_1"}, "cancelled"),
        ({"type": "cancel_job", "job_id": "job_2"}, None),
        ({"type": "of a newer control plane"}, None),
    ],
)
def test_a_job_is_stopped_by_commands_about_this_attempt_of_it(
    slot: Slot, command: dict[str, object], why: str | None
) -> None:
    """A heartbeat may be answered after the job's next attempt has come here."""
    slot._lease = lease = Lease(handed_job(attempt=2), "w")
    slot._obey(command)
    assert lease.why_stopped == why
