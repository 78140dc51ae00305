"""A scripted control plane over real HTTP, a dispatched job with its lease, and free ports."""

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from forge_agent.control_plane import ControlPlane
from forge_agent.lease import Lease


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Answer:
    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)


class Cut(Exception):
    """Raised by a script to close the connection without a response."""


Script = Callable[[Request], Answer]


class ScriptedServer:
    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.script: Script = lambda _: Answer()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                length = int(self.headers.get("content-length", 0))
                headers = {name.lower(): value for name, value in self.headers.items()}
                request = Request(self.command, self.path, headers, self.rfile.read(length))
                outer.requests.append(request)
                try:
                    answer = outer.script(request)
                except Cut:
                    self.close_connection = True
                    self.connection.close()
                    return
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answer.body)

            do_GET = do_POST = do_PUT = do_PATCH = answer

            def log_message(self, *_: object) -> None:
                """Logs nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=[0.02], daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    server = ScriptedServer()
    yield server
    server.close()


@pytest.fixture
def control_plane(server: ScriptedServer) -> Iterator[ControlPlane]:
    control_plane = ControlPlane(server.url, "the-worker-key")
    yield control_plane
    control_plane.close()


def dispatched_job(**more: Any) -> dict[str, Any]:  # noqa: ANN401 - fields of a job
    return {
        "job_id": "job_1",
        "job_type": "audit",
        "user_id": "ann",
        "payload": {},
        "params": {},
        "attempt": 1,
        "timeout_s": 60,
        "output_ids": {"dataset_id": "ds_1"},
        "inputs": [],
        "uploads": {
            "artifacts_uri": "forge://artifacts/datasets/ds_1/",
            "logs_uri": "forge://artifacts/logs/job_1/attempt-1.log",
            "artifacts_url": "/worker/jobs/job_1/artifacts/",
            "checkpoints_url": "/worker/jobs/job_1/checkpoints/",
            "log_url": "/worker/jobs/job_1/log",
            "log_max_bytes": 1_000_000,
        },
        "resume_from": None,
        **more,
    }


@pytest.fixture
def lease() -> Lease:
    return Lease.of(dispatched_job(), "w")


def as_json(content: object, status: int = 200) -> Answer:
    return Answer(status, json.dumps(content).encode())


def as_error(status: int, code: str, **headers: str) -> Answer:
    body = json.dumps({"error": {"code": code, "message": "no"}}).encode()
    return Answer(status, body, headers)


def free_ports(count: int) -> tuple[int, int]:
    """The first and the last of `count` consecutive free ports."""
    while True:
        with contextlib.ExitStack() as stack:
            probes = [stack.enter_context(socket.socket()) for _ in range(count)]
            probes[0].bind(("127.0.0.1", 0))
            first = probes[0].getsockname()[1]
            try:
                for offset, probe in enumerate(probes[1:], 1):
                    probe.bind(("127.0.0.1", first + offset))
            except OSError:
                continue
            return first, first + count - 1
