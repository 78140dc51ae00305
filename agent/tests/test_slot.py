"""What a slot does with the control plane's commands."""

import json
import subprocess
import threading
import time
from pathlib import Path

import pytest
from agent_support import ScriptedServer, as_json, handed_job
from slot_user_support import FIRST_UID, needs_root

from forge_agent import user_processes
from forge_agent.config import AgentConfig
from forge_agent.control_plane import ControlPlane
from forge_agent.gpu import CPU, Nvml
from forge_agent.job_report import PREFIX, Reports
from forge_agent.lease import Lease
from forge_agent.slot import Slot
from forge_agent.slot_user import RunAs, SlotUser


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
    slot._lease = lease = Lease.of(handed_job(attempt=2), "w")
    slot._obey(command)
    assert lease.why_stopped == why


class _Served:
    """Deployments of a slot, as far as its heartbeat and its commands look at them."""

    def __init__(self) -> None:
        self.stopped: list[str] = []
        self.has_stopped = threading.Event()

    def describe(self) -> list[dict[str, object]]:
        return [
            {"deployment_id": "dep_1", "healthy": True},
            {"deployment_id": "dep_2", "healthy": False},
        ]

    def stop(self, deployment_id: str) -> None:
        self.stopped.append(deployment_id)
        self.has_stopped.set()


def test_a_heartbeat_names_what_is_served_and_what_of_it_does_not_answer(
    slot: Slot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slot, "_deployments", _Served())
    beat = slot._describe_beat()
    assert beat["deployments"] == ["dep_1", "dep_2"]
    assert beat["unhealthy_deployments"] == ["dep_2"]


def test_a_heartbeat_tells_what_the_job_has_reported_so_far(slot: Slot, tmp_path: Path) -> None:
    slot._lease = Lease.of(handed_job(attempt=2), "w")
    assert slot._describe_beat()["attempt"] == 2
    assert not {"progress", "metrics"} & slot._describe_beat().keys()
    reports = slot._runner._reports = Reports(tmp_path / "progress")
    metrics = {"loss": 0.5, **{f"m{n}": n for n in range(40)}}
    reports.hear(PREFIX + json.dumps({"progress": 0.5, "metrics": metrics}).encode())
    beat = slot._describe_beat()
    assert beat["progress"] == 0.5
    assert len(beat["metrics"]) == 32
    assert beat["metrics"]["loss"] == 0.5


def test_a_deployment_is_stopped_by_command_but_not_the_one_that_is_being_made(
    slot: Slot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command is about what was served before; the job replaces that anyway."""
    served = _Served()
    monkeypatch.setattr(slot, "_deployments", served)
    slot._lease = Lease.of(
        handed_job(job_type="deploy", output_ids={"deployment_id": "dep_1"}), "w"
    )
    slot._obey({"type": "stop_deployment", "deployment_id": "dep_1"})
    slot._obey({"type": "stop_deployment", "deployment_id": "dep_2"})
    assert served.has_stopped.wait(5)
    assert served.stopped == ["dep_2"]


def test_a_poll_that_finds_nothing_at_once_is_not_sent_again_at_once(
    server: ScriptedServer, control_plane: ControlPlane, tmp_path: Path
) -> None:
    """A control plane may not know `wait_seconds`, and would be asked without a pause."""
    config = AgentConfig("http://127.0.0.1:9", "k", poll_interval_s=0.4, wait_s=30)
    slot = Slot(config, control_plane, "w", Nvml(), CPU, {}, tmp_path, lambda: None)
    server.script = lambda _: as_json({"job_id": None})
    started = time.monotonic()
    for _ in range(3):
        slot._poll_once()
    assert time.monotonic() - started >= 3 * 0.4


def test_a_poll_that_brought_a_command_is_sent_again_at_once(
    server: ScriptedServer, control_plane: ControlPlane, tmp_path: Path
) -> None:
    config = AgentConfig("http://127.0.0.1:9", "k", poll_interval_s=60, wait_s=60)
    slot = Slot(config, control_plane, "w", Nvml(), CPU, {}, tmp_path, lambda: None)
    server.script = lambda _: as_json({"job_id": None, "commands": [{"type": "of a newer one"}]})
    started = time.monotonic()
    slot._poll_once()
    assert time.monotonic() - started < 60


@needs_root
def test_no_job_is_taken_while_processes_of_an_earlier_one_go_on(
    control_plane: ControlPlane,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    config = AgentConfig("http://127.0.0.1:9", "k", min_free_disk_gb=0)
    uid = FIRST_UID + 12
    user = RunAs(SlotUser(uid), SlotUser(uid))
    slot = Slot(config, control_plane, "w", Nvml(), CPU, {}, tmp_path, lambda: None, user)
    monkeypatch.setattr(slot, "_register_until_accepted", lambda: 1.0)
    left = subprocess.Popen(["/bin/sleep", "600"], user=uid, group=uid, extra_groups=[])
    try:
        # As if it waited for a device.
        monkeypatch.setattr(user_processes, "_end", lambda *_: None)
        monkeypatch.setattr(user_processes, "WITHIN_S", 0.1)
        assert not slot._is_fit()
        why = f"processes of an earlier job, of user {uid}, can't be ended: {left.pid}"
        assert slot._describe_beat()["reason"] == why
        assert f"no job is taken: {why}" in caplog.text
        left.kill()
        left.wait()
        assert not slot._is_fit()  # it registers, to leave `error`
        assert slot._is_fit()
    finally:
        left.kill()
        left.wait()
