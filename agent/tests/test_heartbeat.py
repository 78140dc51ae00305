"""A heartbeat that crosses a change of the worker's state."""

from collections.abc import Iterator
from typing import Any, cast

from forge_agent.control_plane import ControlPlane
from forge_agent.heartbeat import HeartbeatLoop


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
