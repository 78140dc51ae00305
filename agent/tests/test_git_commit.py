"""The commit that is recorded in an artifact's manifest."""

import subprocess
import sys
from pathlib import Path

import pytest

from forge_agent.config import HandlerConfig
from forge_agent.git_commit import commit_of
from forge_agent.handler import Outcome

COMMIT = "0123456789012345678901234567890123456789"


def _git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=n", "-c", "user.email=e@example.org")
    return subprocess.run(
        ["git", *who, "-C", str(folder), *arguments],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A handler's program in its own checkout."""
    program = tmp_path / "handlers" / "train.py"
    program.parent.mkdir()
    program.write_text("print(1)\n")
    _git(tmp_path, "init", "-q")
    _git(tmp_path, "add", ".")
    _git(tmp_path, "commit", "-q", "-m", "a handler")
    _git(tmp_path, "tag", "v1")
    return program


def _commit(*command: object, image: str | None = None) -> str | None:
    return commit_of(HandlerConfig(tuple(map(str, command)), image=image), COMMIT)


def test_returns_the_commit_of_the_checkout(program: Path) -> None:
    head = _git(program.parent, "rev-parse", "HEAD")
    assert len(head) == len(COMMIT)
    assert _commit(sys.executable, program, "--fast") == head
    assert _commit(program) == head


def test_marks_changed_files_as_dirty(program: Path) -> None:
    head = _git(program.parent, "rev-parse", "HEAD")
    program.write_text("print(2)\n")
    assert _commit(program) == f"{head}-dirty"


def test_an_untracked_file_has_no_commit(program: Path) -> None:
    other = program.with_name("other.py")
    other.write_text("print(1)\n")
    assert _commit(other) is None


def test_there_is_no_commit_outside_of_a_checkout_or_in_an_image(
    program: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "train.py"
    elsewhere.write_text("print(1)\n")
    assert _commit(elsewhere) is None
    assert _commit("no-such-program", "train.py") is None
    assert _commit(program, image="i") is None


def test_there_is_no_commit_without_git(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert _commit(program) is None


def test_installed_reference_handlers_have_the_configured_commit(
    program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = (sys.executable, "-m", "forge_compute", "train")
    monkeypatch.setenv("PATH", "")
    assert _commit(*command) == COMMIT
    assert _commit(program) is None


def test_a_commit_reported_by_the_handler_takes_precedence() -> None:
    assert Outcome({}, {}).with_commit("c").result == {"git_commit": "c"}
    assert Outcome({"git_commit": "own"}, {}).with_commit("c").result == {"git_commit": "own"}
    assert Outcome({}, {}).with_commit(None).result == {}
