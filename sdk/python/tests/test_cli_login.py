"""Which Forge, and by which key: `forge login` and what goes before it."""

import json
from pathlib import Path

import pytest
from cli_support import Run, answering, bare, home
from sdk_support import KEY, FakeForge, as_error

__all__ = ["bare", "home"]

IDENTITY = {"/api/auth/ping": {"ok": True, "user_id": "u1", "key_id": "k1", "scope": "user"}}


@pytest.fixture
def saved(server: FakeForge, bare: Run, home: Path) -> Path:
    server.script = answering(IDENTITY)
    ended = bare("login", server.url, "--api-key-stdin", stdin=f"{KEY}\n")
    assert (ended.code, ended.err) == (0, "")
    return home / "credentials.json"


def test_a_login_is_for_its_user_alone(server: FakeForge, saved: Path) -> None:
    assert json.loads(saved.read_text()) == {"base_url": server.url, "api_key": KEY}
    assert saved.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in saved.parent.iterdir()] == ["credentials.json"]


def test_a_login_is_used_and_forgotten(server: FakeForge, saved: Path, bare: Run) -> None:
    told = json.loads(bare("whoami", "--json").out)
    assert (told["user_id"], told["base_url"], told["source"]) == ("u1", server.url, "login")
    assert bare("logout").out == "Logged out\n"
    assert not saved.exists()
    assert bare("logout").out == "Nobody was logged in\n"
    assert bare("whoami").code == 2


def test_a_wrong_key_is_not_saved(server: FakeForge, bare: Run, home: Path) -> None:
    server.script = lambda _: as_error(403, "invalid_api_key")
    ended = bare("login", server.url, "--api-key-stdin", stdin="nonsense\n")
    assert ended.code == 2
    assert "invalid_api_key" in ended.err
    assert not home.exists()


def test_the_environment_goes_before_a_login(
    server: FakeForge, saved: Path, bare: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVICE_API_KEY", "another")
    assert json.loads(bare("whoami", "--json").out)["source"] == "environment and login"
    assert server.requests[-1].headers["x-service-api-key"] == "another"


def test_a_saved_key_goes_nowhere_else(saved: Path, bare: Run, server: FakeForge) -> None:
    before = len(server.requests)
    elsewhere = server.url.replace("127.0.0.1", "localhost")
    ended = bare("--base-url", elsewhere, "whoami")
    assert ended.code == 2
    assert "SERVICE_API_KEY is not set" in ended.err
    assert len(server.requests) == before


def test_a_login_goes_before_a_stack_that_happens_to_run_here(
    saved: Path, bare: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stack = {"api_url": "http://127.0.0.1:1", "user_api_key": "stack"}
    (tmp_path / "stack.json").write_text(json.dumps(stack))
    monkeypatch.setenv("FORGE_HOME", str(tmp_path))
    assert json.loads(bare("whoami", "--json").out)["source"] == "login"


def test_a_spoilt_file_is_said(saved: Path, bare: Run) -> None:
    saved.write_text("{")
    ended = bare("jobs", "list")
    assert ended.code == 2
    assert "credentials.json can't be read" in ended.err


def test_nobody_is_asked_where_nobody_is(bare: Run, server: FakeForge) -> None:
    assert "use --api-key-stdin" in bare("login", server.url).err
    assert "say which Forge" in bare("login").err
