"""Heartbeats: what they report, and what happens if the worker's state changes meanwhile."""

from collections.abc import Iterator
from typing import Any, cast

import pytest

from forge_agent.control_plane import ControlPlane
from forge_agent.gpu import GpuLoad
from forge_agent.heartbeat import HeartbeatLoop, describe_heartbeat


class Recorder:
    """A control plane that accepts every heartbeat and records the order of calls."""

    def __init__(self, statuses: list[str]) -> None:
        self._statuses: Iterator[str] = iter(statuses)
        self.done: list[str] = []

    def heartbeat(self, payload: dict[str, Any]) -> list[dict[str, Any]]:
        self.done.append(f"heartbeat {payload['status']}")
        return []

    def describe(self) -> dict[str, Any]:
        return {"status": next(self._statuses)}

    def register(self) -> None:
        self.done.append("register")

    def send(self) -> list[str]:
        loop = HeartbeatLoop(
            cast(ControlPlane, self),
            1.0,
            self.describe,
            lambda command: None,
            self.register,
            lambda error: None,
        )
        loop._send_heartbeat()
        return self.done


def test_registers_again_if_an_error_ended_during_the_heartbeat() -> None:
    assert Recorder(["error", "idle"]).send() == ["heartbeat error", "register"]


def test_does_not_register_while_the_error_continues() -> None:
    assert Recorder(["error", "error"]).send() == ["heartbeat error"]
    assert Recorder(["idle"]).send() == ["heartbeat idle"]


@pytest.mark.parametrize(
    ("fault", "job", "status"),
    [
        (None, {"job_id": None}, "idle"),
        (None, {"job_id": "job_1", "attempt": 1}, "busy"),
        ("no GPU", {"job_id": "job_1", "attempt": 1}, "error"),
    ],
)
def test_says_whether_the_worker_has_a_job(
    fault: str | None, job: dict[str, Any], status: str
) -> None:
    heartbeat = describe_heartbeat("w", GpuLoad(0, 0, 0), fault, job, [])
    assert (heartbeat["status"], heartbeat["job_id"]) == (status, job["job_id"])
