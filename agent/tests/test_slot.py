"""A slot's commands, heartbeats, polls and results."""

import json
import subprocess
import threading
import time
from pathlib import Path

import pytest
from agent_support import Answer, ScriptedServer, as_json, dispatched_job
from slot_user_support import FIRST_UID, needs_root

from forge_agent import user_processes
from forge_agent.config import AgentConfig
from forge_agent.control_plane import ControlPlane
from forge_agent.gpu import CPU, Gpus, Nvml
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
def test_only_commands_about_the_current_attempt_stop_a_job(
    slot: Slot, command: dict[str, object], why: str | None
) -> None:
    """A late response to a heartbeat may be about an earlier attempt at the same job."""
    slot._lease = lease = Lease.of(dispatched_job(attempt=2), "w")
    slot._run_command(command)
    assert lease.why_stopped == why


class _Served:
    """A fake of Deployments, for heartbeats and commands."""

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


def test_a_heartbeat_names_all_and_unhealthy_deployments(
    slot: Slot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slot, "_deployments", _Served())
    payload = slot._describe_heartbeat()
    assert payload["deployments"] == ["dep_1", "dep_2"]
    assert payload["unhealthy_deployments"] == ["dep_2"]


def test_a_heartbeat_has_the_jobs_progress_and_metrics(slot: Slot, tmp_path: Path) -> None:
    slot._lease = Lease.of(dispatched_job(attempt=2), "w")
    assert slot._describe_heartbeat()["attempt"] == 2
    assert not {"progress", "metrics"} & slot._describe_heartbeat().keys()
    reports = slot._runner._reports = Reports(tmp_path / "progress")
    metrics = {"loss": 0.5, **{f"m{n}": n for n in range(40)}}
    reports.read_line(PREFIX + json.dumps({"progress": 0.5, "metrics": metrics}).encode())
    payload = slot._describe_heartbeat()
    assert payload["progress"] == 0.5
    assert len(payload["metrics"]) == 32
    assert payload["metrics"]["loss"] == 0.5


def test_a_stop_command_does_not_stop_the_deployment_that_is_being_deployed(
    slot: Slot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The running job deploys dep_1, and first stops an earlier deployment with the same id.

    A stop command for dep_1 is about the earlier deployment, so the slot ignores the command.
    """
    served = _Served()
    monkeypatch.setattr(slot, "_deployments", served)
    slot._lease = Lease.of(
        dispatched_job(job_type="deploy", output_ids={"deployment_id": "dep_1"}), "w"
    )
    slot._run_command({"type": "stop_deployment", "deployment_id": "dep_1"})
    slot._run_command({"type": "stop_deployment", "deployment_id": "dep_2"})
    assert served.has_stopped.wait(5)
    assert served.stopped == ["dep_2"]


def test_a_draining_slot_sends_leaving_with_its_result(slot: Slot, server: ScriptedServer) -> None:
    """Without `leaving`, the control plane could assign a job that the slot would not fetch."""
    server.script = lambda _: Answer()
    result = {"job_id": "job_1", "attempt": 1, "status": "completed", "result": {}}
    slot._deliver(result)
    slot.drain()
    slot._deliver(result)
    sent = [json.loads(request.body).get("leaving") for request in server.requests]
    assert sent == [None, True]


def test_pauses_after_a_poll_that_returns_nothing_immediately(
    server: ScriptedServer, control_plane: ControlPlane, tmp_path: Path
) -> None:
    """A control plane that ignores `wait_seconds` must not get polls without a pause."""
    config = AgentConfig("http://127.0.0.1:9", "k", poll_interval_s=0.4, wait_s=30)
    slot = Slot(config, control_plane, "w", Nvml(), CPU, {}, tmp_path, lambda: None)
    server.script = lambda _: as_json({"job_id": None})
    started = time.monotonic()
    for _ in range(3):
        slot._poll_once()
    assert time.monotonic() - started >= 3 * 0.4


def test_polls_again_immediately_after_a_command(
    server: ScriptedServer, control_plane: ControlPlane, tmp_path: Path
) -> None:
    config = AgentConfig("http://127.0.0.1:9", "k", poll_interval_s=60, wait_s=60)
    slot = Slot(config, control_plane, "w", Nvml(), CPU, {}, tmp_path, lambda: None)
    server.script = lambda _: as_json({"job_id": None, "commands": [{"type": "of a newer one"}]})
    started = time.monotonic()
    slot._poll_once()
    assert time.monotonic() - started < 60


@pytest.mark.parametrize(("gpus", "count"), [(CPU, "0"), (Gpus("H100", 79.6, (2, 3)), "2")])
def test_handlers_and_deployments_know_the_number_of_gpus(
    control_plane: ControlPlane, tmp_path: Path, gpus: Gpus, count: str
) -> None:
    config = AgentConfig("http://127.0.0.1:9", "k")
    slot = Slot(config, control_plane, "w", Nvml(), gpus, {"A": "b"}, tmp_path, lambda: None)
    for env in (slot._runner._env, slot._deployments._env):
        assert env == {"A": "b", "FORGE_GPU_COUNT": count}


@needs_root
def test_accepts_no_job_while_processes_of_an_earlier_one_remain(
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
        # Simulates a process that waits for a device, so that no signal ends it.
        monkeypatch.setattr(user_processes, "_end", lambda *_: None)
        monkeypatch.setattr(user_processes, "TIMEOUT_S", 0.1)
        assert not slot._passes_preflight()
        why = f"processes of an earlier job, of user {uid}, can't be ended: {left.pid}"
        assert slot._describe_heartbeat()["reason"] == why
        assert f"not accepting jobs: {why}" in caplog.text
        left.kill()
        left.wait()
        assert not slot._passes_preflight()  # registers first, which ends the state `error`
        assert slot._passes_preflight()
    finally:
        left.kill()
        left.wait()
