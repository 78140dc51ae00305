"""Settings, responses and retries of the client."""

import json
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from pathlib import Path

import pytest
from sdk_support import KEY, Answer, Cut, FakeForge, Request, as_error, as_json

from forge import Forge, ForgeAPIError, ForgeError, ForgeHTTPError


def test_reads_an_artifact_and_its_files(server: FakeForge, client: Forge) -> None:
    artifact = client.artifacts.get("ds_1")
    assert (artifact.kind, artifact.manifest) == ("raw_dataset", server.manifest)
    assert client.artifacts.manifest("ds_1") == server.manifest
    assert [file.path for file in client.artifacts.files("ds_1")] == list(server.files)


def test_falls_back_to_environment_and_stack_file(
    server: FakeForge, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(ForgeError, match="SERVICE_BASE_URL is not set, and no local stack runs"):
        Forge()
    stack = {"api_url": server.url, "user_api_key": KEY, "pids": {"server": 1}}
    (tmp_path / "stack.json").write_text(json.dumps(stack))
    monkeypatch.setenv("FORGE_HOME", str(tmp_path))
    with Forge() as client:
        client.artifacts.get("ds_1")
    monkeypatch.setenv("SERVICE_API_KEY", "another")
    with Forge() as client, pytest.raises(ForgeAPIError, match="invalid_api_key"):
        client.artifacts.get("ds_1")
    with Forge(api_key=KEY) as client:
        client.artifacts.get("ds_1")


def test_a_bearer_key_is_sent_in_authorization_only(server: FakeForge) -> None:
    server.script = lambda _: as_json({"job_id": "job_1", "job_type": "audit", "status": "pending"})
    with Forge("mine", server.url, bearer=True) as client:
        client.status("job_1")
        client.with_options(max_retries=0).status("job_1")
    assert len(server.requests) == 2
    for request in server.requests:
        assert request.headers["authorization"] == "Bearer mine"
        assert "x-service-api-key" not in request.headers


def test_the_local_stacks_key_is_sent_to_the_stack_only(
    server: FakeForge, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stack = {"api_url": server.url, "user_api_key": KEY}
    (tmp_path / "stack.json").write_text(json.dumps(stack))
    monkeypatch.setenv("FORGE_HOME", str(tmp_path))
    with Forge(base_url=f"{server.url}/") as client:
        client.artifacts.get("ds_1")
    for name in ("argument", "environment"):
        monkeypatch.setenv("SERVICE_BASE_URL", "https://elsewhere.example")
        with pytest.raises(ForgeError, match="SERVICE_API_KEY is not set") as raised:
            Forge(base_url="https://elsewhere.example" if name == "argument" else None)
        assert KEY not in str(raised.value)


def test_another_key_is_not_sent_to_the_address_of_a_stack_file(
    server: FakeForge, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FORGE_HOME", str(tmp_path))
    monkeypatch.setenv("SERVICE_API_KEY", KEY)
    for address in ("https://evil.example", "https://127.0.0.1.evil.example", "https://10.0.0.1"):
        (tmp_path / "stack.json").write_text(json.dumps({"api_url": address}))
        with pytest.raises(ForgeError, match="SERVICE_BASE_URL is not set"):
            Forge()
    (tmp_path / "stack.json").write_text(json.dumps({"api_url": server.url}))
    with Forge() as client:
        client.artifacts.get("ds_1")


@pytest.mark.parametrize(
    "url",
    [
        "ftp://x",
        "localhost:8080",
        "http://",
        "http://u:pw@x",
        "http://x?k=1",
        "http://x y",
        "http://a..b",
        f"http://{'a' * 70}.example",
    ],
)
def test_refuses_an_invalid_address(url: str) -> None:
    with pytest.raises(ForgeError, match="SERVICE_BASE_URL") as raised:
        Forge(KEY, url)
    assert "pw" not in str(raised.value)


@pytest.mark.parametrize("key", ["secret\nX-More: 1", "se cret", "secrét", "secret\r"])
def test_refuses_an_invalid_key_without_showing_it(key: str) -> None:
    with pytest.raises(ForgeError, match="SERVICE_API_KEY") as raised:
        Forge(key, "http://127.0.0.1:1")
    assert key not in str(raised.value)


@pytest.mark.parametrize("artifact_id", ["", "../jobs", "a/b", "a?b", ".", "x" * 129])
def test_refuses_invalid_artifact_ids(server: FakeForge, client: Forge, artifact_id: str) -> None:
    with pytest.raises(ForgeError, match="not the id of an artifact"):
        client.artifacts.get(artifact_id)
    assert not server.requests


def test_an_api_error_has_all_details(server: FakeForge, client: Forge) -> None:
    server.script = lambda _: as_error(404, "artifact_not_found")
    with pytest.raises(ForgeAPIError) as raised:
        client.artifacts.get("ds_1")
    error = raised.value
    assert (error.status, error.code, error.param) == (404, "artifact_not_found", "x")
    assert (error.message, error.request_id) == ("no", "req_1")
    assert str(error) == "artifact_not_found: no (HTTP 404, request req_1)"
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "answer",
    [
        Answer(body=b"<html>"),
        Answer(body=b"[]"),
        Answer(body=b"[" * 100_000),
        Answer(404, b"<html>"),
        Answer(404, b'{"error": "no"}'),
        as_json({"artifact_id": "ds_1"}),
    ],
)
def test_reports_responses_that_are_not_from_forge(
    server: FakeForge, client: Forge, answer: Answer
) -> None:
    server.script = lambda _: answer
    with pytest.raises(ForgeHTTPError):
        client.artifacts.get("ds_1")
    assert len(server.requests) == 1


def test_a_redirect_is_not_followed(server: FakeForge, client: Forge) -> None:
    elsewhere = FakeForge()
    server.script = lambda _: Answer(302, b"", {"Location": f"{elsewhere.url}/x"})
    with pytest.raises(ForgeHTTPError, match="redirects are not followed"):
        client.artifacts.get("ds_1")
    elsewhere.close()
    assert not elsewhere.requests


def script(server: FakeForge, *answers: Answer | None) -> None:
    """Sets the server's first responses, in this order. None breaks the connection instead."""
    left = list(answers)

    def answer(_: Request) -> Answer | None:
        if not left:
            return None
        found = left.pop(0)
        if found is None:
            raise Cut
        return found

    server.script = answer


@pytest.mark.parametrize(
    "fault",
    [
        None,
        as_error(408, "request_timeout"),
        as_error(409, "request_in_flight"),
        as_error(429, "rate_limited"),
        as_error(500, "internal_error"),
        as_error(503, "unavailable"),
        Answer(502, b""),
        Answer(529, b"<html>"),
    ],
)
def test_retries_transient_failures(
    server: FakeForge, client: Forge, no_pauses: list[float], fault: Answer | None
) -> None:
    script(server, fault, fault)
    assert client.artifacts.get("ds_1").artifact_id == "ds_1"
    assert len(no_pauses) == 2
    assert no_pauses[0] < no_pauses[1] <= 0.5


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (None, ForgeHTTPError),
        (as_error(503, "unavailable"), ForgeHTTPError),
        (as_error(429, "rate_limited"), ForgeAPIError),
    ],
)
def test_stops_after_max_retries(
    server: FakeForge,
    client: Forge,
    no_pauses: list[float],
    fault: Answer | None,
    kind: type[ForgeError],
) -> None:
    script(server, *[fault] * 9)
    with pytest.raises(kind):
        client.artifacts.get("ds_1")
    assert len(server.requests) == 5
    assert len(no_pauses) == 4


def test_names_an_unreachable_server(no_pauses: list[float]) -> None:
    with Forge(KEY, "http://127.0.0.1:1") as client, pytest.raises(ForgeHTTPError) as raised:
        client.artifacts.get("ds_1")
    assert "http://127.0.0.1:1/api/artifacts/ds_1: ConnectError" in str(raised.value)
    assert KEY not in str(raised.value)


def test_retry_after_is_honoured(server: FakeForge, client: Forge, no_pauses: list[float]) -> None:
    date = format_datetime(datetime.now(timezone.utc) + timedelta(seconds=30), usegmt=True)
    headers = [{"Retry-After": value} for value in ("7", date, "soon")]
    script(server, *(as_error(503, "unavailable", **each) for each in headers))
    client.artifacts.get("ds_1")
    assert no_pauses[0] == 7
    assert 25 < no_pauses[1] <= 30
    assert no_pauses[2] < 2


def test_does_not_wait_for_a_long_retry_after(
    server: FakeForge, client: Forge, no_pauses: list[float]
) -> None:
    script(server, as_error(429, "rate_limited", **{"Retry-After": "3600"}))
    with pytest.raises(ForgeAPIError, match="rate_limited"):
        client.artifacts.get("ds_1")
    assert not no_pauses
