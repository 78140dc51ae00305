"""Interrupted uploads and downloads, against a real HTTP server that stores the bytes."""

import hashlib
import json
import re
from pathlib import Path

import pytest
from agent_support import Answer, Cut, Request, ScriptedServer, as_error, as_json, dispatched_job

from forge_agent import file_transfer
from forge_agent.control_plane import ControlPlane, StaleAttempt
from forge_agent.file_transfer import TransferFailed, download, upload
from forge_agent.lease import JobStopped, Lease

URL = "/worker/jobs/job_1/artifacts/x"


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_transfer, "PART_BYTES", 1000)


def _upload(control_plane: ControlPlane, lease: Lease, path: Path) -> None:
    with path.open("rb") as file:
        upload(control_plane, lease, URL, file, path.name)


class FakeStore:
    """Stores the parts of a file, as the control plane does.

    `faults`: the faults to simulate, by the number of the request. The first request is number 0.
    """

    def __init__(self, faults: dict[int, str]) -> None:
        self.bytes = b""
        self.is_complete = False
        self._faults = faults
        self._count = 0

    def __call__(self, request: Request) -> Answer:
        fault = self._faults.get(self._count)
        self._count += 1
        if fault == "before":
            raise Cut
        found = re.fullmatch(r"bytes (?:(\d+)-(\d+)|\*)/(\d+)", request.headers["content-range"])
        assert found
        if found[1] is not None:
            start = int(found[1])
            if start > len(self.bytes):
                return as_error(416, "range_not_satisfiable")
            sent = request.body[:300] if fault == "half" else request.body
            self.bytes = self.bytes[:start] + sent
        if fault in ("after", "half"):
            raise Cut
        if len(self.bytes) == int(found[3]):
            right = hashlib.sha256(self.bytes).hexdigest()
            if right != request.headers["x-checksum-sha256"]:
                self.bytes = b""
                return as_error(400, "checksum_mismatch")
            self.is_complete = True
        return as_json({"received": len(self.bytes), "complete": self.is_complete}, 202)


@pytest.mark.parametrize(
    "faults",
    [
        {},
        {0: "before"},
        {1: "before"},
        {2: "after"},
        {1: "half", 3: "half"},
        {5: "after", 6: "before"},
    ],
)
def test_an_interrupted_upload_resumes(
    server: ScriptedServer,
    control_plane: ControlPlane,
    lease: Lease,
    tmp_path: Path,
    faults: dict[int, str],
) -> None:
    path = tmp_path / "x"
    path.write_bytes(bytes(range(256)) * 17)
    store = server.script = FakeStore(faults)
    _upload(control_plane, lease, path)
    assert store.bytes == path.read_bytes()
    assert store.is_complete
    sent = sum(len(request.body) for request in server.requests)
    assert sent <= 4352 + 1000 * len(faults)  # at most one part is sent again per fault


def test_a_checksum_mismatch_is_retried_and_finally_fails(
    server: ScriptedServer, control_plane: ControlPlane, lease: Lease, tmp_path: Path
) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"small")
    server.script = lambda _: as_error(400, "checksum_mismatch")
    with pytest.raises(TransferFailed, match="3 times"):
        _upload(control_plane, lease, path)
    assert len(server.requests) == 3


def test_an_upload_ends_with_the_lease(
    server: ScriptedServer, control_plane: ControlPlane, lease: Lease, tmp_path: Path
) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"small")

    def unavailable(_: Request) -> Answer:
        lease.stop("lost")
        return as_error(503, "unavailable")

    server.script = unavailable
    with pytest.raises(JobStopped, match="lost"):
        _upload(control_plane, lease, path)
    server.script = lambda _: as_error(409, "stale_attempt")
    with pytest.raises(StaleAttempt):
        _upload(control_plane, Lease.of(dispatched_job(), "w"), path)


def test_an_interrupted_download_resumes_and_is_verified(
    server: ScriptedServer, control_plane: ControlPlane, lease: Lease, tmp_path: Path
) -> None:
    content = bytes(range(256)) * 17
    file = {"url": URL, "size_bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}

    def half(request: Request) -> Answer:
        start = int(request.headers.get("range", "bytes=0-")[6:-1])
        return Answer(206 if start else 200, content[start : start + 2000])

    server.script = half
    download(control_plane, lease, file, tmp_path / "deep" / "x")
    assert (tmp_path / "deep" / "x").read_bytes() == content
    assert [request.headers.get("range") for request in server.requests] == [
        None,
        "bytes=2000-",
        "bytes=4000-",
    ]
    assert list(tmp_path.rglob("*.part")) == []
    server.script = lambda _: Answer(200, b"!" * len(content))
    with pytest.raises(TransferFailed):
        download(control_plane, lease, file, tmp_path / "y")
    assert not (tmp_path / "y").exists()


def test_every_request_names_its_attempt(
    server: ScriptedServer, control_plane: ControlPlane, lease: Lease, tmp_path: Path
) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"")
    server.script = lambda _: Answer(201, json.dumps({"complete": True}).encode())
    _upload(control_plane, lease, path)
    assert server.requests[0].path == f"{URL}?worker_id=w&attempt=1"
    assert server.requests[0].headers["x-service-api-key"] == "the-worker-key"


@pytest.mark.parametrize("refusals", [0, 1, 2])
def test_a_file_is_uploaded_directly_if_the_store_accepts_it(
    server: ScriptedServer,
    control_plane: ControlPlane,
    lease: Lease,
    tmp_path: Path,
    refusals: int,
) -> None:
    path = tmp_path / "x"
    path.write_bytes(bytes(range(256)) * 17)
    store = FakeStore({})
    headers = {"x-amz-checksum": "c", "content-length": str(path.stat().st_size)}
    signed = {"url": f"{server.url}/bucket/x?signature=s", "headers": headers}
    refused = 0

    def script(request: Request) -> Answer:
        nonlocal refused
        if request.path.startswith("/bucket/"):
            assert "x-service-api-key" not in request.headers
            assert request.headers["x-amz-checksum"] == "c"
            if refused < refusals:
                refused += 1
                return Answer(403, b"<Error/>")
            store.bytes = request.body
            return Answer(200, b"")
        answer = store(request)
        if store.bytes or store.is_complete:
            return answer
        return as_json({"received": 0, "complete": False, "upload": signed}, 202)

    server.script = script
    _upload(control_plane, lease, path)
    assert store.bytes == path.read_bytes()
    assert store.is_complete
    parts = [r for r in server.requests if "-" in r.headers.get("content-range", "")]
    assert bool(parts) == (refusals == 2)


@pytest.mark.parametrize("answer", [Answer(403, b"<Error/>"), Answer(500, b""), None])
def test_a_file_that_the_store_does_not_return_is_read_through_the_control_plane(
    server: ScriptedServer,
    control_plane: ControlPlane,
    lease: Lease,
    tmp_path: Path,
    answer: Answer | None,
) -> None:
    def script(request: Request) -> Answer:
        if not request.path.startswith("/bucket/"):
            return Answer(200, b"content")
        if answer is None:
            raise Cut
        return answer

    server.script = script
    file = {
        "url": f"{server.url}/bucket/x?signature=s",
        "fallback_url": URL,
        "size_bytes": 7,
        "sha256": hashlib.sha256(b"content").hexdigest(),
    }
    download(control_plane, lease, file, tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == b"content"
