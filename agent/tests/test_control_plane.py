"""How the client classifies responses, against a real HTTP server."""

import pytest
from agent_support import Answer, Cut, Request, ScriptedServer, as_error, as_json, dispatched_job

from forge_agent.control_plane import (
    ControlPlane,
    ControlPlaneUnavailable,
    KeyRefused,
    NotRegistered,
    Refused,
    StaleAttempt,
)
from forge_agent.lease import Lease


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (as_error(404, "worker_not_registered"), NotRegistered),
        (as_error(409, "stale_attempt"), StaleAttempt),
        (as_error(403, "insufficient_scope"), Refused),
        (as_error(403, "invalid_api_key"), KeyRefused),
        (as_error(503, "unavailable"), ControlPlaneUnavailable),
        (as_error(429, "rate_limited"), ControlPlaneUnavailable),
        (Answer(502, b"<html>Bad gateway</html>"), ControlPlaneUnavailable),
        (Answer(200, b"<html>Welcome to the hotel network</html>"), ControlPlaneUnavailable),
    ],
)
def test_classifies_responses(
    server: ScriptedServer, control_plane: ControlPlane, answer: Answer, kind: type[Exception]
) -> None:
    server.script = lambda _: answer
    with pytest.raises(kind) as raised:
        control_plane.next_job("w", 0, "t")
    assert type(raised.value) is kind


def test_a_broken_connection(server: ScriptedServer, control_plane: ControlPlane) -> None:
    def cut(_: Request) -> Answer:
        raise Cut

    server.script = cut
    with pytest.raises(ControlPlaneUnavailable):
        control_plane.next_job("w", 0, "t")


def test_a_refused_connection(server: ScriptedServer, control_plane: ControlPlane) -> None:
    server.close()
    with pytest.raises(ControlPlaneUnavailable):
        control_plane.next_job("w", 0, "t")


def test_no_job(server: ScriptedServer, control_plane: ControlPlane) -> None:
    server.script = lambda _: Answer(body=b'{"job_id": null}')
    assert control_plane.next_job("w", 0, "t") == (None, [])


def test_commands_of_an_empty_poll(server: ScriptedServer, control_plane: ControlPlane) -> None:
    server.script = lambda _: Answer(body=b'{"job_id": null, "commands": [{"type": "drain"}]}')
    assert control_plane.next_job("w", 0, "t") == (None, [{"type": "drain"}])


def test_a_presigned_url_is_requested_without_the_key(
    server: ScriptedServer, control_plane: ControlPlane
) -> None:
    other = ScriptedServer()
    other.script = lambda _: Answer(body=b"bytes")
    lease = {"worker_id": "w", "attempt": "1"}
    with control_plane.get(f"{other.url}/file?signature=s", lease, 0) as response:
        assert response.read() == b"bytes"
    other.close()
    assert server.requests == []
    assert "the-worker-key" not in str(other.requests)
    assert "worker_id" not in other.requests[0].path


def test_an_error_does_not_show_the_query_of_a_presigned_url(control_plane: ControlPlane) -> None:
    with (
        pytest.raises(ControlPlaneUnavailable) as raised,
        control_plane.get("http://127.0.0.1:9/file?signature=secret", {}, 0),
    ):
        pass
    assert "secret" not in str(raised.value)


def test_the_lease_token_is_sent_only_with_the_attempts_files(
    server: ScriptedServer, control_plane: ControlPlane
) -> None:
    server.script = lambda _: as_json(dispatched_job())
    job, _ = control_plane.next_job("w", 0, "lease_secret")
    assert b'"lease_token":"lease_secret"' in server.requests[0].body.replace(b" ", b"")
    assert job
    lease = Lease.of(job, "w", "lease_secret")
    assert "secret" not in f"{lease.job} {lease.proof}"
    server.script = lambda _: as_json({"length": 3, "cancelled": False})
    control_plane.append_log("/log", lease.proof, 0, b"abc")
    control_plane.put("/file", lease.child().proof, {}, b"abc")
    with control_plane.get("/input", lease.proof, 0):
        pass
    with control_plane.get(f"{server.url}/presigned", lease.proof, 0):
        pass
    control_plane.job_result({"job_id": "job_1"})
    tokens = [request.headers.get("x-forge-lease-token") for request in server.requests]
    assert tokens == [None, *["lease_secret"] * 3, None, None]
    assert not any("secret" in request.path for request in server.requests)
