"""Downloads: resuming, and verification before a file gets its final name."""

from collections.abc import Callable
from pathlib import Path

import pytest
from sdk_support import Answer, Cut, FakeForge, Request, flipped

from forge import Forge, ForgeAPIError, ForgeError, ForgeHTTPError, IntegrityError
from forge.pull import Progress

BIG = bytes(range(256)) * 2000


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def breaking(server: FakeForge, *lengths: int) -> Callable[[Request], Answer | None]:
    """Cuts off downloads: the n-th response that contains a file ends after `lengths[n]` bytes.

    A length of 0: no response at all. After the last length, responses are complete.
    """
    left = list(lengths)

    def script(request: Request) -> Answer | None:
        if "/files/" not in request.path or not left:
            return None
        length = left.pop(0)
        if length == 0:
            raise Cut
        answer = server.answer(request)
        return Answer(answer.status, answer.body, answer.headers, cut_after=length)

    return script


@pytest.mark.parametrize("knows_range", [True, False])
def test_an_interrupted_download_resumes(
    server: FakeForge, client: Forge, tmp_path: Path, knows_range: bool
) -> None:
    server.set_files({"big": BIG})
    server.knows_range = knows_range
    server.script = breaking(server, 100_000, 0, 200_000, 0, 0, 0, 250_000, 300_000)
    client.artifacts.download("ds_1", "big", tmp_path / "big")
    assert (tmp_path / "big").read_bytes() == BIG
    assert names_in(tmp_path) == ["big"]
    ranges = [
        request.headers.get("range") for request in server.requests if "/files/" in request.path
    ]
    assert ranges[:3] == [None, "bytes=100000-", "bytes=100000-"]


def test_a_connection_lost_after_the_last_byte_is_not_a_failure(
    server: FakeForge, client: Forge, tmp_path: Path
) -> None:
    server.set_files({"big": BIG})

    def script(request: Request) -> Answer | None:
        if not request.path.endswith("big") or "range" in request.headers:
            return None
        return Answer(body=BIG + b"?", cut_after=len(BIG))

    server.script = script
    client.artifacts.download("ds_1", "big", tmp_path / "big")
    assert (tmp_path / "big").read_bytes() == BIG


def test_a_download_without_progress_fails_and_removes_its_file(
    server: FakeForge, client: Forge, tmp_path: Path
) -> None:
    server.set_files({"big": BIG})
    server.script = breaking(server, 1000, *[0] * 20)
    with pytest.raises(ForgeHTTPError):
        client.artifacts.download("ds_1", "big", tmp_path / "big")
    assert not names_in(tmp_path)


@pytest.mark.parametrize("wrong", [flipped(BIG, 300_000), BIG[:-1], BIG + b"x", b""])
def test_wrong_bytes_do_not_replace_a_file(
    server: FakeForge, client: Forge, tmp_path: Path, wrong: bytes
) -> None:
    server.set_files({"big": BIG})
    server.files["big"] = wrong
    (tmp_path / "big").write_bytes(b"before")
    with pytest.raises(IntegrityError, match="big does not match its manifest"):
        client.artifacts.download("ds_1", "big", tmp_path / "big")
    assert (tmp_path / "big").read_bytes() == b"before"
    assert names_in(tmp_path) == ["big"]


@pytest.mark.parametrize("content_range", ["", "bytes 5-9/10", "bytes x-9/10", "rows 0-9/10"])
def test_refuses_a_range_that_was_not_requested(
    server: FakeForge, client: Forge, tmp_path: Path, content_range: str
) -> None:
    def script(request: Request) -> Answer | None:
        is_file = "/files/" in request.path
        return Answer(206, b"12345", {"Content-Range": content_range}) if is_file else None

    server.script = script
    with pytest.raises(ForgeHTTPError):
        client.artifacts.download("ds_1", "raw.jsonl", tmp_path / "x")
    assert not names_in(tmp_path)


def test_does_not_request_files_outside_of_the_manifest(
    server: FakeForge, client: Forge, tmp_path: Path
) -> None:
    with pytest.raises(ForgeError, match="has no file 'other'"):
        client.artifacts.download("ds_1", "other", tmp_path / "x")
    assert len(server.requests) == 1


def test_a_pull_downloads_all_files_and_the_manifest(
    server: FakeForge, client: Forge, tmp_path: Path
) -> None:
    server.set_files({**server.files, "näme with space?#%2e": b"odd", "empty": b""})
    seen: list[Progress] = []
    pulled = client.artifacts.pull("ds_1", tmp_path / "new" / "x", seen.append)
    for path, content in server.files.items():
        assert (tmp_path / "new" / "x" / path).read_bytes() == content
    assert pulled.fetched == tuple(server.files)
    assert seen[-1].done_bytes == seen[-1].total_bytes == sum(map(len, server.files.values()))
    assert client.artifacts.verify_local("ds_1", pulled.directory).ok


def test_a_second_pull_downloads_only_wrong_files(
    server: FakeForge, client: Forge, tmp_path: Path
) -> None:
    client.artifacts.pull("ds_1", tmp_path)
    (tmp_path / "deep/er/b").write_bytes(b"too")
    server.requests.clear()
    pulled = client.artifacts.pull("ds_1", tmp_path)
    assert (pulled.fetched, pulled.kept) == (("deep/er/b",), ("raw.jsonl",))
    assert [request.path for request in server.requests][1:] == [
        "/api/artifacts/ds_1/files/deep/er/b"
    ]
    assert (tmp_path / "deep/er/b").read_bytes() == b"two"


def test_a_missing_file_fails_a_pull(server: FakeForge, client: Forge, tmp_path: Path) -> None:
    del server.files["deep/er/b"]
    with pytest.raises(ForgeAPIError, match="file_not_found"):
        client.artifacts.pull("ds_1", tmp_path)
    assert not (tmp_path / "manifest.json").exists()
