"""`forge doctor` detects each kind of problem."""

import json
import socket
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler

import pytest
from cli_support import Run, bare, home, run
from sdk_support import Answer, FakeForge, Request, as_error, as_json

__all__ = ["bare", "home", "run"]


@pytest.fixture
def headers(server: FakeForge) -> dict[str, str]:
    """Makes the fake server healthy. Returns its response headers, which tests may change."""
    headers: dict[str, str] = {}
    answers = {
        "/healthz": {"ok": True},
        "/readyz": {"ready": True},
        "/api/limits": {
            "limits": [
                {"name": "keys", "limit": 100, "used": 3, "variable": "FORGE_MAX_KEYS"},
                {"name": "stored_bytes", "limit": None, "used": 9, "variable": "X"},
            ]
        },
        "/api/auth/ping": {"user_id": "u1", "key_id": "k", "scope": "user"},
        "/api/workers": {"workers": [{"worker_id": "w", "status": "idle"}], "has_more": False},
    }

    def script(request: Request) -> Answer:
        answer = as_json(answers[request.path])
        return Answer(answer.status, answer.body, headers)

    server.script = script
    return headers


def states(run: Run) -> tuple[int, dict[str, str]]:
    ended = run("doctor", "--json")
    return ended.code, {each["name"]: each["state"] for each in json.loads(ended.out)["checks"]}


WELL = ["settings", "name", "connection", "service", "readiness", "versions", "clock"]


def test_a_healthy_server(headers: dict[str, str], run: Run) -> None:
    assert states(run) == (0, dict.fromkeys([*WELL, "key", "limits", "workers"], "ok"))
    assert "ok       workers: 1 idle of 1\n" in run("doctor").out


def test_without_settings(bare: Run) -> None:
    assert states(bare) == (1, {"settings": "failed"})


def test_an_unknown_host_name(bare: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_API_KEY", "k")
    code, found = states(lambda *words: bare("--base-url", "http://nowhere.invalid", *words))
    assert (code, found) == (1, {"settings": "ok", "name": "failed"})


def test_a_closed_port(bare: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setenv("SERVICE_BASE_URL", f"http://127.0.0.1:{taken.getsockname()[1]}")
        monkeypatch.setenv("SERVICE_API_KEY", "k")
        code, found = states(bare)
    assert (code, found["name"], found["connection"]) == (1, "ok", "failed")


def test_https_on_an_http_port(
    server: FakeForge, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVICE_BASE_URL", server.url.replace("http:", "https:"))
    code, found = states(run)
    assert (code, found["connection"], found["TLS"]) == (1, "ok", "failed")


def test_another_service_responds(server: FakeForge, run: Run) -> None:
    server.script = lambda _: Answer(200, b"<html>", {"Content-Type": "text/html"})
    assert states(run)[1]["service"] == "failed"


@pytest.mark.filterwarnings("ignore::forge.OutdatedClientWarning")
@pytest.mark.parametrize(
    ("name", "value", "code", "state"),
    [
        ("X-Forge-Version", "0.2.0", 0, "ok"),
        ("X-Forge-Version", "1.0.0", 0, "warning"),
        ("X-Forge-Min-Client", "0.1.0", 0, "ok"),
        ("X-Forge-Min-Client", "0.10.0", 1, "failed"),
    ],
)
def test_versions(
    headers: dict[str, str], run: Run, name: str, value: str, code: int, state: str
) -> None:
    headers[name] = value
    ended, found = states(run)
    assert (ended, found["versions"], found["key"]) == (code, state, "ok")


def test_a_clock_difference(
    headers: dict[str, str], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = format_datetime(datetime.now(timezone.utc) + timedelta(minutes=5), usegmt=True)
    monkeypatch.setattr(BaseHTTPRequestHandler, "date_time_string", lambda _: theirs)
    ended = run("doctor")
    assert ended.code == 1
    assert "s behind the server's" in ended.out


def test_an_invalid_key_and_no_workers(
    headers: dict[str, str], server: FakeForge, run: Run
) -> None:
    healthy = server.script

    def script(request: Request) -> Answer | None:
        if request.path == "/api/workers":
            return as_json({"workers": [], "has_more": False})
        return healthy(request)

    server.script = script
    assert states(run) == (
        0,
        dict.fromkeys([*WELL, "key", "limits"], "ok") | {"workers": "warning"},
    )
    server.script = lambda request: (
        as_error(403, "invalid_api_key") if "/api/" in request.path else healthy(request)
    )
    code, found = states(run)
    assert (code, found["key"]) == (1, "failed")


@pytest.mark.parametrize("status", [403, 502])
def test_a_refused_list_of_workers_does_not_end_the_report(
    headers: dict[str, str], server: FakeForge, run: Run, status: int
) -> None:
    healthy = server.script
    server.script = lambda request: (
        as_error(status, "no") if request.path == "/api/workers" else healthy(request)
    )
    expected = {403: (0, "warning"), 502: (1, "failed")}[status]
    code, found = states(run)
    assert (code, found["workers"]) == expected
    assert found == dict.fromkeys([*WELL, "key", "limits"], "ok") | {"workers": expected[1]}


def test_a_server_that_is_not_ready(server: FakeForge, run: Run) -> None:
    server.script = lambda request: as_json({}, 503 if request.path == "/readyz" else 200)
    assert states(run)[1]["readiness"] == "failed"


def test_names_limits_that_are_nearly_reached(
    server: FakeForge, headers: dict[str, str], run: Run
) -> None:
    healthy = server.script
    limits = [
        {"name": "keys", "limit": 100, "used": 95, "variable": "FORGE_MAX_KEYS"},
        {"name": "workers", "limit": 10, "used": 1, "variable": "FORGE_MAX_WORKERS"},
    ]

    def script(request: Request) -> Answer:
        return as_json({"limits": limits}) if request.path == "/api/limits" else healthy(request)

    server.script = script
    assert states(run)[1]["limits"] == "warning"
    assert "limits: keys 95 of 100" in run("doctor").out
