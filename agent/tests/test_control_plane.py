"""How answers of the control plane are classified, against a real HTTP server."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from forge_agent.config import AgentConfig
from forge_agent.control_plane import (
    ControlPlane,
    ControlPlaneAway,
    KeyRefused,
    NotRegistered,
    Refused,
)

Answer = tuple[int, bytes]


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            status, body = self.server.answer  # type: ignore[attr-defined]
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def _control_plane(port: int) -> ControlPlane:
    return ControlPlane(AgentConfig(f"http://127.0.0.1:{port}", "k", "w"))


def _error(status: int, code: str) -> Answer:
    return status, json.dumps({"error": {"code": code, "message": "no"}}).encode()


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (_error(404, "worker_not_registered"), NotRegistered),
        (_error(409, "stale_attempt"), Refused),
        (_error(403, "insufficient_scope"), Refused),
        (_error(403, "invalid_api_key"), KeyRefused),
        (_error(503, "unavailable"), ControlPlaneAway),
        (_error(429, "rate_limited"), ControlPlaneAway),
        ((502, b"<html>Bad gateway</html>"), ControlPlaneAway),
        ((200, b"<html>Welcome to the hotel network</html>"), ControlPlaneAway),
    ],
)
def test_answers(server: HTTPServer, answer: Answer, kind: type[Exception]) -> None:
    server.answer = answer  # type: ignore[attr-defined]
    with pytest.raises(kind) as raised:
        _control_plane(server.server_port).next_job(0)
    assert type(raised.value) is kind


def test_nobody_there(server: HTTPServer) -> None:
    server.server_close()
    with pytest.raises(ControlPlaneAway):
        _control_plane(server.server_port).next_job(0)


def test_no_job(server: HTTPServer) -> None:
    server.answer = (200, b'{"job_id": null}')  # type: ignore[attr-defined]
    assert _control_plane(server.server_port).next_job(0) == (None, [])


def test_commands_of_an_empty_poll(server: HTTPServer) -> None:
    server.answer = (200, b'{"job_id": null, "commands": [{"type": "drain"}]}')  # type: ignore[attr-defined]
    assert _control_plane(server.server_port).next_job(0) == (None, [{"type": "drain"}])
