"""Runs the `forge` command in the process of the tests."""

import io
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sdk_support import KEY, Answer, FakeForge, Request, as_json

from forge.cli import main

JOB = {"job_id": "job_1", "job_type": "train", "status": "pending"}
DONE = {**JOB, "status": "completed", "result": {"checkpoint_id": "ckpt_1"}}
FAILED = {**JOB, "status": "failed", "error": "out of memory", "error_code": "job_error"}
BILL = {"job_id": "job_1", "job_type": "train", "total_cost_usd": 1.25}


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str


Run = Callable[..., Ended]


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder of saved logins."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path / "forge"


@pytest.fixture
def bare(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Returns a function that runs the command, in an environment without address and key."""

    def run(*arguments: str, stdin: str | io.StringIO = "") -> Ended:
        monkeypatch.setattr(sys, "argv", ["forge", *arguments])
        given = io.StringIO(stdin) if isinstance(stdin, str) else stdin
        monkeypatch.setattr(sys, "stdin", given)
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        assert KEY not in out + err
        return Ended(int(ended.value.code or 0), out, err)

    return run


@pytest.fixture
def run(bare: Run, server: FakeForge, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("SERVICE_BASE_URL", server.url)
    monkeypatch.setenv("SERVICE_API_KEY", KEY)
    return bare


def answering(answers: dict[str, Any]) -> Callable[[Request], Answer | None]:
    """Returns a script for the fake server: it chooses the response by the prefix of the path.

    If several prefixes match, the longest applies.
    """

    def script(request: Request) -> Answer | None:
        fitting = [path for path in answers if request.path.startswith(path)]
        return as_json(answers[max(fitting, key=len)]) if fitting else None

    return script
