"""Delivery of results: retried until they are accepted or refused."""

import json

import pytest
from agent_support import Answer, Cut, Request, ScriptedServer, as_error

from forge_agent import result_delivery
from forge_agent.control_plane import ControlPlane, KeyRefused
from forge_agent.result_delivery import deliver

RESULT = {"job_id": "job_1", "attempt": 1, "status": "completed", "result": {"ok": True}}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_delivery.time, "sleep", lambda _: None)


def _deliver(server: ScriptedServer, control_plane: ControlPlane, *answers: Answer | None) -> bool:
    """Delivers the result to a server that gives these answers. None: it breaks the connection."""
    remaining = list(answers)

    def script(request: Request) -> Answer:
        if request.path.endswith("/register"):
            return Answer(201, b'{"worker_id": "w", "heartbeat_interval_s": 5}')
        answer = remaining.pop(0)
        if answer is None:
            raise Cut
        return answer

    server.script = script
    accepted = deliver(control_plane, RESULT, lambda: control_plane.register({"worker_id": "w"}))
    assert remaining == []
    return accepted


def _sent(server: ScriptedServer) -> list[str]:
    return [json.loads(request.body).get("status", "register") for request in server.requests]


def test_a_result_is_sent_until_it_is_accepted(
    server: ScriptedServer, control_plane: ControlPlane
) -> None:
    unavailable = as_error(503, "unavailable")
    unknown = as_error(404, "worker_not_registered")
    assert _deliver(server, control_plane, None, unavailable, unknown, Answer())
    assert _sent(server) == ["completed", "completed", "completed", "register", "completed"]


def test_a_stale_result_is_dropped(server: ScriptedServer, control_plane: ControlPlane) -> None:
    assert not _deliver(server, control_plane, as_error(409, "stale_attempt"))


def test_a_result_is_kept_if_the_key_is_refused(
    server: ScriptedServer, control_plane: ControlPlane
) -> None:
    with pytest.raises(KeyRefused):
        _deliver(server, control_plane, as_error(403, "invalid_api_key"))


def test_a_result_that_cant_be_accepted_fails_its_job(
    server: ScriptedServer, control_plane: ControlPlane
) -> None:
    assert not _deliver(server, control_plane, as_error(413, "body_too_large"), Answer())
    assert _sent(server) == ["completed", "failed"]
    assert not _deliver(
        server, control_plane, as_error(400, "invalid_request"), as_error(400, "invalid_request")
    )
