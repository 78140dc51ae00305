"""All outcomes of a verification, through the API and in a directory."""

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sdk_support import Answer, FakeForge, Request, as_error, flipped

from forge import Forge, ForgeAPIError, ForgeError, ForgeHTTPError
from forge.models import ArtifactFile
from forge.verification import Outcome, Verification, check_content

Verify = Callable[[], Verification]


def outcomes(found: Verification) -> dict[str, str]:
    return {check.path: str(check.outcome) for check in found.checks}


@pytest.fixture(params=["api", "directory"])
def verify(
    request: pytest.FixtureRequest, server: FakeForge, client: Forge, tmp_path: Path
) -> Verify:
    """Returns a function that verifies `ds_1`: through the API, or in a directory.

    For a directory, the function first writes the server's files there.
    """
    if request.param == "api":
        return lambda: client.artifacts.verify("ds_1")

    def verify() -> Verification:
        for path, content in server.files.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_bytes(content)
        if server.stored_manifest is not None:
            (tmp_path / "manifest.json").write_bytes(server.stored_manifest)
        return client.artifacts.verify_local("ds_1", tmp_path)

    return verify


def test_correct_files(verify: Verify) -> None:
    found = verify()
    assert found.ok
    assert outcomes(found) == {"raw.jsonl": "ok", "deep/er/b": "ok", "manifest.json": "ok"}


@pytest.mark.parametrize("at", [0, 4_321, -1])
def test_finds_one_flipped_bit(server: FakeForge, verify: Verify, at: int) -> None:
    content = server.files["raw.jsonl"]
    server.files["raw.jsonl"] = flipped(content, at % len(content))
    found = verify()
    assert not found.ok
    assert outcomes(found) == {"raw.jsonl": "changed", "deep/er/b": "ok", "manifest.json": "ok"}


@pytest.mark.parametrize("content", [b"", b"tw", b"two!", b"x" * 5_000_000])
def test_finds_another_size(server: FakeForge, verify: Verify, content: bytes) -> None:
    server.files["deep/er/b"] = content
    found = verify()
    assert not found.ok
    assert outcomes(found)["deep/er/b"] == "size_differs"


def test_stops_after_the_manifests_size() -> None:
    endless = itertools.repeat(b"x" * 1000)
    check = check_content(ArtifactFile("x", 10_500, "0" * 64), endless)
    assert (check.outcome, check.detail) == (Outcome.SIZE_DIFFERS, "more than 10500 bytes")


def test_finds_a_missing_file(server: FakeForge, verify: Verify) -> None:
    del server.files["raw.jsonl"]
    found = verify()
    assert not found.ok
    assert outcomes(found) == {"raw.jsonl": "missing", "deep/er/b": "ok", "manifest.json": "ok"}


def test_finds_a_missing_manifest(server: FakeForge, verify: Verify) -> None:
    server.stored_manifest = None
    found = verify()
    assert not found.ok
    assert outcomes(found)["manifest.json"] == "missing"


@pytest.mark.parametrize(
    "change",
    [
        {"num_rows": 2},
        {"num_rows": True},  # in Python, True equals 1, the original value
        {"num_rows": "1"},
        {"more": None},
        {"files": []},
    ],
)
def test_finds_another_manifest(server: FakeForge, verify: Verify, change: dict[str, Any]) -> None:
    server.stored_manifest = json.dumps({**server.manifest, **change}).encode()
    found = verify()
    assert not found.ok
    assert outcomes(found)["manifest.json"] == "changed"


@pytest.mark.parametrize("stored", [b"", b"{", b"\xff", b"[" * 100_000, b"null"])
def test_finds_an_invalid_manifest(server: FakeForge, verify: Verify, stored: bytes) -> None:
    server.stored_manifest = stored
    assert outcomes(verify())["manifest.json"] == "changed"


def test_accepts_a_manifest_with_another_format(server: FakeForge, verify: Verify) -> None:
    turned = dict(reversed([*{**server.manifest, "num_rows": 1.0}.items()]))
    server.stored_manifest = json.dumps(turned, indent=8).encode()
    assert verify().ok


@pytest.mark.parametrize("more", [{"verified": False}, {"verified": None}, {"verified": "true"}])
def test_files_that_forge_never_saw_are_not_verified(
    server: FakeForge, verify: Verify, more: dict[str, Any]
) -> None:
    server.set_manifest({**server.manifest, **more})
    found = verify()
    assert set(outcomes(found).values()) == {"ok"}
    assert not found.verified
    assert not found.ok


def test_finds_extra_files_in_a_directory(server: FakeForge, client: Forge, tmp_path: Path) -> None:
    client.artifacts.pull("ds_1", tmp_path)
    (tmp_path / "deep" / "more").write_bytes(b"")
    (tmp_path / ".hidden").write_bytes(b"")
    (tmp_path / "empty-folder").mkdir()
    found = client.artifacts.verify_local("ds_1", tmp_path)
    assert not found.ok
    extra = [path for path, outcome in outcomes(found).items() if outcome == "extra"]
    assert extra == [".hidden", "deep/more"]


def test_refuses_a_missing_directory(client: Forge, tmp_path: Path) -> None:
    with pytest.raises(ForgeError, match="is not a directory"):
        client.artifacts.verify_local("ds_1", tmp_path / "x")


def only_files(answer: Answer) -> Callable[[Request], Answer | None]:
    return lambda request: answer if "/files/" in request.path else None


@pytest.mark.parametrize(
    "answer", [as_error(404, "file_not_found"), as_error(410, "artifact_deleted")]
)
def test_deleted_files_count_as_missing(server: FakeForge, client: Forge, answer: Answer) -> None:
    server.script = only_files(answer)
    found = client.artifacts.verify("ds_1")
    assert set(outcomes(found).values()) == {"missing"}
    assert not found.ok


@pytest.mark.parametrize(
    "answer", [as_error(403, "invalid_api_key"), as_error(404, "artifact_not_found")]
)
def test_raises_other_api_errors(server: FakeForge, client: Forge, answer: Answer) -> None:
    server.script = only_files(answer)
    with pytest.raises(ForgeAPIError):
        client.artifacts.verify("ds_1")


def test_verification_resumes_an_interrupted_download(server: FakeForge, client: Forge) -> None:
    def script(request: Request) -> Answer | None:
        if not request.path.endswith("raw.jsonl") or "range" in request.headers:
            return None
        return Answer(body=server.files["raw.jsonl"], cut_after=1000)

    server.script = script
    assert client.artifacts.verify("ds_1").ok
    assert [request.headers["range"] for request in server.requests if "range" in request.headers]


@pytest.mark.parametrize(
    "change",
    [
        {"size_bytes": -1},
        {"size_bytes": True},
        {"size_bytes": "3"},
        {"sha256": "A" * 64},
        {"sha256": None},
        {"path": 1},
    ],
)
def test_refuses_an_invalid_manifest(
    server: FakeForge, client: Forge, change: dict[str, Any]
) -> None:
    server.set_manifest({"files": [{**server.manifest["files"][0], **change}], "verified": True})
    with pytest.raises(ForgeHTTPError):
        client.artifacts.verify("ds_1")
