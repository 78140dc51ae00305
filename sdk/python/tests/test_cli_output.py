"""Untrusted text: escaped in a terminal, unchanged in a file."""

import io
import sys
from typing import Any

import pytest
from cli_support import JOB, Run, answering, bare, home, run
from rich.console import Console
from sdk_support import Answer, FakeForge

from forge.cli import billing, output
from forge.cli.pipeline_tree import PipelineTree
from forge.drawing import job_line
from forge.models import Pipeline
from forge.text import legible

__all__ = ["bare", "home", "run"]

ESCAPE = "\x1b]0;x\x07"
LOG = "\ta\u00a0\u3000\U0001f469\u200d\U0001f4bb\n10%\r100%\r\n\x1b[2J\u202e\x85\ud800\n"


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Console:
    console = Console(width=40, force_terminal=True, color_system=None)
    monkeypatch.setattr(output, "console", lambda **_: console)
    return console


def test_escapes_field_names(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_fields({ESCAPE: 1, "日本": 2, "plain": "\x9b"})
    assert capsys.readouterr().out.splitlines() == [
        "\\x1b]0;x\\x07  1",
        "日本          2",
        "plain         \\x9b",
    ]


def test_escapes_text_in_drawings(terminal: Console, capsys: pytest.CaptureFixture[str]) -> None:
    step = {"name": "a", "job_type": "train", "status": ESCAPE}
    pipeline = {"pipeline_id": f"pl{ESCAPE}", "status": ESCAPE, "steps": [step]}
    terminal.print(PipelineTree(Pipeline.model_validate(pipeline)))
    terminal.print(job_line("job", ESCAPE, None, 0, None))
    assert "\x1b]" not in capsys.readouterr().out


def test_a_log_in_a_terminal_is_readable(server: FakeForge, run: Run, terminal: Console) -> None:
    server.script = lambda _: Answer(body=LOG.replace("\ud800", "").encode())
    first, second, third = run("jobs", "logs", "job_1").out.splitlines()
    assert first == "        a\u00a0\u3000\U0001f469\u200d\U0001f4bb"
    assert (second, third) == ("100%", "\\x1b[2J\\u202e\\x85")
    assert legible("\ud800\x7f\u2066") == "\\ud800\\x7f\\u2066"


def test_a_log_in_a_file_is_unchanged(server: FakeForge, run: Run) -> None:
    text = LOG.replace("\ud800", "")
    server.script = lambda _: Answer(body=text.encode())
    assert run("jobs", "logs", "job_1").out == text
    answer: dict[str, Any] = {"choices": [{"message": {"content": text}}]}
    server.script = answering({"/api/deployments/dep_1/": answer})
    assert run("deployments", "ask", "dep_1", "?").out == f"{text}\n"


def test_an_export_is_escaped_in_a_terminal(
    server: FakeForge, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.script = lambda _: Answer(body=f"a\r\n{ESCAPE}\r\n".encode())
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert run("billing", "export").out == "a\n\\x1b]0;x\\x07\n"


def test_an_export_keeps_its_line_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    content = io.BytesIO()
    windows = io.TextIOWrapper(content, "utf-8", newline="\r\n")
    monkeypatch.setattr(sys, "stdout", windows)
    billing._print_csv("a\r\nb\r\n")
    windows.flush()
    assert content.getvalue() == b"a\r\nb\r\n"


@pytest.mark.parametrize(
    ("status", "cells"), [("running", "running"), ("provisioning_worker", "provisio…")]
)
def test_forty_columns_show_the_status(
    server: FakeForge, run: Run, terminal: Console, status: str, cells: str
) -> None:
    job = {**JOB, "job_id": "job_" + "0" * 26, "status": status}
    server.script = answering({"/api/jobs": {"jobs": [job], "has_more": False}})
    head, row = run("jobs", "list").out.splitlines()
    assert head.split() == ["JOB", "STATUS"]
    assert row.split() == [job["job_id"], cells] and len(row) <= 40
