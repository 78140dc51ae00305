"""After invalid or interrupted input, the message is clear, and the exit code is not 1.

Exit code 1 would mean that a job has failed.
"""

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cli_support import JOB, Run, answering, bare, home, run
from sdk_support import KEY, FakeForge

from forge.cli import account

__all__ = ["bare", "home", "run"]

IDENTITY = {"user_id": "u1", "key_id": "k1", "scope": "user"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("jobs submit train --param lr=NaN", "lr: NaN is not a valid JSON number"),
        ("jobs submit train --param lr=1e999", "lr: 1e999 is not a valid JSON number"),
        (
            'jobs submit train --set params={"a":-Infinity}',
            "params: -Infinity is not a valid JSON number",
        ),
        (f"jobs submit train --set a={'[' * 100_000}", "a: it is nested too deeply"),
        ("jobs submit train --notes \udcff", "not valid UTF-8"),
        ("billing budget inf", "inf is not a number of USD"),
        ("billing budget 5 --warn-at inf", "inf is not a number of USD"),
        ("pipelines run --template byo-data --budget inf", "inf is not a number of USD"),
        (
            "pipelines run --template byo-data --set train.model=a --set train.model.x=1",
            "train.model.x: 'model' has no fields",
        ),
    ],
)
def test_invalid_values_are_reported(server: FakeForge, run: Run, words: str, said: str) -> None:
    ended = run(*words.split(), "--json")
    assert (ended.code, ended.out) == (2, "")
    assert said in json.loads(ended.err)["error"]["message"]
    assert server.requests == []


def test_a_file_with_too_deep_nesting(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "deep.json"
    file.write_text('{"a": ' + "[" * 100_000)
    ended = run("jobs", "submit", "train", "--file", str(file))
    assert ended.code == 2 and "it is nested too deeply" in ended.err


def test_a_file_may_begin_with_a_byte_order_mark(
    server: FakeForge, run: Run, tmp_path: Path
) -> None:
    server.script = answering({"/api/jobs/train": JOB})
    file = tmp_path / "body.json"
    file.write_text('{"model": "é"}', "utf-8-sig")
    assert run("jobs", "submit", "train", "--file", str(file)).code == 0
    stdin = file.read_text("utf-8")
    assert run("jobs", "submit", "train", "--file", "-", stdin=stdin).code == 0
    assert [json.loads(each.body) for each in server.requests] == [{"model": "é"}] * 2


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({"steps": ["x"]}, {"steps": ["x"], "params": {"a": {"b": 1}}}),
        ({"steps": None, "params": None}, {"params": {"a": {"b": 1}}}),
        ({"steps": [{"name": "a", "payload": None}]}, None),
    ],
)
def test_an_invalid_pipeline_is_left_to_the_api(
    server: FakeForge, run: Run, tmp_path: Path, given: dict[str, Any], sent: dict[str, Any] | None
) -> None:
    server.script = answering({"/api/pipelines": {"pipeline_id": "pl_1", "status": "running"}})
    file = tmp_path / "own.json"
    file.write_text(json.dumps(given))
    assert run("pipelines", "run", str(file), "--set", "a.b=1").code == 0
    expected = sent or {"steps": [{"name": "a", "payload": {"b": 1}}]}
    assert json.loads(server.requests[-1].body) == expected


def test_an_unexpected_error_is_one_line(bare: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(**_: object) -> None:
        raise LookupError("something secret")

    monkeypatch.setattr(account, "logout", wrong)
    ended = bare("logout")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == "forge: unexpected LookupError: FORGE_DEBUG=1 shows the traceback\n"
    monkeypatch.setenv("FORGE_DEBUG", "1")
    assert "Traceback" in bare("logout").err


class Keyboard(io.StringIO):
    """An interactive standard input."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("pressed", "code"), [(KeyboardInterrupt, 130), (EOFError, 2)])
def test_ctrl_c_at_a_prompt(
    bare: Run, monkeypatch: pytest.MonkeyPatch, pressed: type, code: int
) -> None:
    def press(*_: object) -> None:
        raise pressed

    monkeypatch.setattr("getpass.getpass", press)
    monkeypatch.setattr("typer._click.termui.visible_prompt_func", press)
    for words in (["login"], ["login", "http://127.0.0.1:1"]):
        ended = bare(*words, stdin=Keyboard())
        assert ended.code == code
        assert ended.err.endswith("\n") and "Error" not in ended.err, ended.err


def test_a_typed_key_is_not_shown(
    server: FakeForge, bare: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.script = answering({"/api/auth/ping": IDENTITY})
    monkeypatch.setattr("getpass.getpass", lambda _: KEY)
    assert bare("login", server.url, "--api-key-stdin", stdin=Keyboard("echoed\n")).code == 0
    assert json.loads((home / "credentials.json").read_text())["api_key"] == KEY


def test_a_login_replaces_a_corrupt_file(
    server: FakeForge, bare: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.script = answering({"/api/auth/ping": IDENTITY})
    home.mkdir()
    file = home / "credentials.json"
    file.write_text("{")
    monkeypatch.setattr("getpass.getpass", lambda _: KEY)
    monkeypatch.setattr("typer._click.termui.visible_prompt_func", lambda _: server.url)
    assert bare("login", stdin=Keyboard()).code == 0
    assert json.loads(file.read_text())["base_url"] == server.url
    file.write_text(file.read_text(), "utf-8-sig")
    assert bare("whoami").code == 0


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_closed_pipe(server: FakeForge, more: list[str]) -> None:
    server.script = answering({"/api/jobs": {"jobs": [JOB], "has_more": False}})
    unread, written = os.pipe()
    os.close(unread)
    env = {"SERVICE_BASE_URL": server.url, "SERVICE_API_KEY": KEY}
    with os.fdopen(written, "wb") as stdout:
        ended = subprocess.run(
            [sys.executable, "-m", "forge", "jobs", "list", *more],
            env={**os.environ, **env, "PYTHONPATH": str(Path(__file__).parent.parent / "src")},
            stdout=stdout,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert (ended.returncode, ended.stderr) == (141, b"")
