"""What a heartbeat may cross on its way."""

from collections.abc import Iterator
from typing import Any, cast

from forge_agent.control_plane import ControlPlane
from forge_agent.heartbeat import HeartbeatLoop


class Recorder:
    """A control plane that takes every heartbeat, and what was done in which order."""

    def __init__(self, statuses: list[str]) -> None:
        self._statuses: Iterator[str] = iter(statuses)
        self.done: list[str] = []

    def heartbeat(self, beat: dict[str, Any]) -> list[dict[str, Any]]:
        self.done.append(f"beat {beat['status']}")
        return []

    def describe(self) -> dict[str, Any]:
        return {"status": next(self._statuses)}

    def register(self) -> None:
        self.done.append("register")

    def beat(self) -> list[str]:
        loop = HeartbeatLoop(
            cast(ControlPlane, self),
            1.0,
            self.describe,
            lambda command: None,
            self.register,
            lambda error: None,
        )
        loop._beat()
        return self.done


def test_an_error_that_was_over_when_it_arrived_is_taken_back() -> None:
    assert Recorder(["error", "idle"]).beat() == ["beat error", "register"]


def test_one_that_goes_on_stands() -> None:
    assert Recorder(["error", "error"]).beat() == ["beat error"]
    assert Recorder(["idle"]).beat() == ["beat idle"]
