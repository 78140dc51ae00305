"""A fake Forge with one artifact, over real HTTP, with scripted faults."""

import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from forge import Forge, async_transport, transport

KEY = "forge_user_the-secret-key"


@dataclass(frozen=True)
class Request:
    path: str
    headers: dict[str, str]
    method: str = "GET"
    body: bytes = b""


@dataclass(frozen=True)
class Answer:
    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    cut_after: int | None = None
    """Number of bytes of the body after which the connection breaks."""


class Cut(Exception):
    """Raised by a script to close the connection without a response."""


Script = Callable[[Request], Answer | None]
"""Returns the response to a request, or None for the default response for the artifact."""


class Server(ThreadingHTTPServer):
    request_queue_size = 256  # for many concurrent connections


class FakeForge:
    """Serves one artifact, `ds_1`. A test can replace any response by a `script`."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.script: Script = lambda _: None
        self.knows_range = True
        self.go_on: threading.Event | None = None
        """If set, the second half of every response waits for this event."""
        self.files: dict[str, bytes] = {"raw.jsonl": b'{"a": 1}\n' * 1000, "deep/er/b": b"two"}
        self.manifest: dict[str, Any] = manifest_of(self.files)
        self.stored_manifest: bytes | None = json.dumps(self.manifest).encode()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # sends head and body in one packet, which avoids a delay of 40 ms

            def answer(self) -> None:
                headers = {name.lower(): value for name, value in self.headers.items()}
                body = self.read_body(headers)
                request = Request(self.path, headers, self.command, body)
                outer.requests.append(request)
                try:
                    answer = outer.script(request) or outer.answer(request)
                except Cut:
                    self.cut()
                    return
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                if answer.status != 204:
                    self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                sent = 0
                if outer.go_on:
                    sent = len(answer.body) // 2
                    self.wfile.write(answer.body[:sent])
                    self.wfile.flush()
                    outer.go_on.wait(30)
                self.wfile.write(answer.body[sent : answer.cut_after])
                if answer.cut_after is not None:
                    self.cut()

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer

            def read_body(self, headers: dict[str, str]) -> bytes:
                return self.rfile.read(int(headers.get("content-length", 0)))

            def cut(self) -> None:
                self.wfile.flush()
                self.close_connection = True
                self.connection.close()

            def log_message(self, *_: object) -> None:
                """Logs nothing."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=[0.02], daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def set_files(self, files: dict[str, bytes]) -> None:
        self.files = files
        self.set_manifest(manifest_of(files))

    def set_manifest(self, manifest: dict[str, Any]) -> None:
        """Sets the manifest in the registry and in the artifact's folder."""
        self.manifest = manifest
        self.stored_manifest = json.dumps(manifest).encode()

    def answer(self, request: Request) -> Answer:
        if request.headers.get("x-service-api-key") != KEY:
            return as_error(403, "invalid_api_key")
        base = "/api/artifacts/ds_1"
        if not request.path.startswith(base):
            return as_error(404, "artifact_not_found")
        rest = request.path.removeprefix(base)
        if rest == "":
            return as_json({**_ARTIFACT, "manifest": self.manifest})
        if rest == "/manifest":
            return as_json(self.manifest)
        if rest == "/files":
            return as_json({"files": self.manifest["files"]})
        path = unquote(rest.removeprefix("/files/"))
        stored = self.stored_manifest if path == "manifest.json" else self.files.get(path)
        if stored is None:
            return as_error(404, "file_not_found")
        return self._part(request, stored)

    def _part(self, request: Request, content: bytes) -> Answer:
        wanted = request.headers.get("range", "")
        if not wanted or not self.knows_range:
            return Answer(body=content)
        start = int(wanted.removeprefix("bytes=").removesuffix("-"))
        if start >= len(content):
            return Answer(416, b"")
        span = f"bytes {start}-{len(content) - 1}/{len(content)}"
        return Answer(206, content[start:], {"Content-Range": span})


_ARTIFACT = {
    "artifact_id": "ds_1",
    "artifact_type": "dataset",
    "kind": "raw_dataset",
    "uri": "forge://artifacts/datasets/ds_1/",
    "created_at": "2026-11-01T00:00:00.000Z",
    "later": "fields may be added",
}


def manifest_of(files: dict[str, bytes]) -> dict[str, Any]:
    return {
        "artifact_id": "ds_1",
        "num_rows": 1,
        "files": [
            {
                "path": path,
                "size_bytes": len(content),
                "sha256": hashlib.sha256(content).hexdigest(),
            }
            for path, content in files.items()
        ],
        "verified": True,
    }


def flipped(content: bytes, at: int) -> bytes:
    """Flips one bit."""
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


@pytest.fixture
def server() -> Iterator[FakeForge]:
    server = FakeForge()
    yield server
    server.close()


@pytest.fixture
def client(server: FakeForge) -> Iterator[Forge]:
    with Forge(KEY, server.url) as client:
        yield client


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Records pauses and skips them."""
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(transport, "sleep", pauses.append)
    monkeypatch.setattr(async_transport, "sleep", pause)
    return pauses


@pytest.fixture(autouse=True)
def no_surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hides this machine's environment variables and local stack from the test."""
    for name in ("SERVICE_API_KEY", "SERVICE_BASE_URL", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("FORGE_HOME", str(tmp_path / "no-stack"))


def as_json(content: object, status: int = 200) -> Answer:
    return Answer(status, json.dumps(content).encode())


def as_error(status: int, code: str, **headers: str) -> Answer:
    error = {"code": code, "message": "no", "param": "x", "request_id": "req_1"}
    return Answer(status, json.dumps({"error": error}).encode(), headers)
