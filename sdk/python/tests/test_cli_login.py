"""`forge login`, and which source of the address and the key takes precedence."""

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


def test_a_login_is_readable_by_its_user_only(server: FakeForge, saved: Path) -> None:
    assert json.loads(saved.read_text()) == {"base_url": server.url, "api_key": KEY}
    assert saved.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in saved.parent.iterdir()] == ["credentials.json"]


def test_login_and_logout(server: FakeForge, saved: Path, bare: Run) -> None:
    shown = json.loads(bare("whoami", "--json").out)
    assert (shown["user_id"], shown["base_url"], shown["source"]) == ("u1", server.url, "login")
    assert bare("logout").out == "Logged out\n"
    assert not saved.exists()
    assert bare("logout").out == "Not logged in\n"
    assert bare("whoami").code == 2


def test_an_invalid_key_is_not_saved(server: FakeForge, bare: Run, home: Path) -> None:
    server.script = lambda _: as_error(403, "invalid_api_key")
    ended = bare("login", server.url, "--api-key-stdin", stdin="nonsense\n")
    assert ended.code == 2
    assert "invalid_api_key" in ended.err
    assert not home.exists()


def test_the_environment_takes_precedence_over_a_login(
    server: FakeForge, saved: Path, bare: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVICE_API_KEY", "another")
    assert json.loads(bare("whoami", "--json").out)["source"] == "environment and login"
    assert server.requests[-1].headers["x-service-api-key"] == "another"


def test_a_saved_key_is_not_sent_to_another_address(
    saved: Path, bare: Run, server: FakeForge
) -> None:
    before = len(server.requests)
    elsewhere = server.url.replace("127.0.0.1", "localhost")
    ended = bare("--base-url", elsewhere, "whoami")
    assert ended.code == 2
    assert "SERVICE_API_KEY is not set" in ended.err
    assert len(server.requests) == before


def test_a_login_takes_precedence_over_a_local_stack(
    saved: Path, bare: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stack = {"api_url": "http://127.0.0.1:1", "user_api_key": "stack"}
    (tmp_path / "stack.json").write_text(json.dumps(stack))
    monkeypatch.setenv("FORGE_HOME", str(tmp_path))
    assert json.loads(bare("whoami", "--json").out)["source"] == "login"


def test_a_corrupt_file_is_reported(saved: Path, bare: Run) -> None:
    saved.write_text("{")
    ended = bare("jobs", "list")
    assert ended.code == 2
    assert "credentials.json can't be read" in ended.err


def test_does_not_prompt_without_a_terminal(bare: Run, server: FakeForge) -> None:
    assert "use --api-key-stdin" in bare("login", server.url).err
    assert "give the address" in bare("login").err
