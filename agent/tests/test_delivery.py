"""Results on their way: delivered once they are taken, and never in the worker's way for ever."""

import json

import pytest
from agent_support import Answer, Cut, Request, ScriptedServer, as_error

from forge_agent import delivery
from forge_agent.control_plane import ControlPlane, KeyRefused
from forge_agent.delivery import deliver

RESULT = {"job_id": "job_1", "attempt": 1, "status": "completed", "result": {"ok": True}}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery.time, "sleep", lambda _: None)


def _deliver(server: ScriptedServer, control_plane: ControlPlane, *answers: Answer | None) -> bool:
    """None: the connection breaks."""
    left = list(answers)

    def script(request: Request) -> Answer:
        if request.path.endswith("/register"):
            return Answer(201, b'{"worker_id": "w", "heartbeat_interval_s": 5}')
        answer = left.pop(0)
        if answer is None:
            raise Cut
        return answer

    server.script = script
    taken = deliver(control_plane, RESULT, lambda: control_plane.register({"worker_id": "w"}))
    assert left == []
    return taken


def _sent(server: ScriptedServer) -> list[str]:
    return [json.loads(request.body).get("status", "register") for request in server.requests]


def test_it_is_sent_until_it_is_taken(server: ScriptedServer, control_plane: ControlPlane) -> None:
    away = as_error(503, "unavailable")
    unknown = as_error(404, "worker_not_registered")
    assert _deliver(server, control_plane, None, away, unknown, Answer())
    assert _sent(server) == ["completed", "completed", "completed", "register", "completed"]


def test_one_that_is_not_wanted_is_dropped(
    server: ScriptedServer, control_plane: ControlPlane
) -> None:
    assert not _deliver(server, control_plane, as_error(409, "stale_attempt"))


def test_one_that_the_key_may_not_send_is_kept_for_another(
    server: ScriptedServer, control_plane: ControlPlane
) -> None:
    with pytest.raises(KeyRefused):
        _deliver(server, control_plane, as_error(403, "invalid_api_key"))


def test_one_that_cant_be_taken_fails_its_job(
    server: ScriptedServer, control_plane: ControlPlane
) -> None:
    assert not _deliver(server, control_plane, as_error(413, "body_too_large"), Answer())
    assert _sent(server) == ["completed", "failed"]
    assert not _deliver(
        server, control_plane, as_error(400, "invalid_request"), as_error(400, "invalid_request")
    )
