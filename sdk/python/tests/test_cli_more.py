"""Help, completion, tables, pipelines, bills, workers and keys in the `forge` command."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cli_support import JOB, Run, answering, bare, home, run
from rich.console import Console
from sdk_support import KEY, FakeForge, as_json

from forge import Forge, __version__
from forge.cli import output
from forge.drawing import job_line

__all__ = ["bare", "home", "run"]

PIPELINE = {
    "pipeline_id": "pl_1",
    "status": "waiting_approval",
    "template": "byo-data",
    "cost_usd": 1.5,
    "steps": [
        {"name": "audit", "job_type": "audit", "status": "completed", "cost_usd": 0.25},
        {"name": "evaluate", "job_type": "evaluate", "status": "waiting_approval"},
    ],
}


def child(arguments: list[str], **env: str) -> subprocess.CompletedProcess[str]:
    source = str(Path(__file__).parent.parent / "src")
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": source, **env},
        capture_output=True,
        text=True,
        check=True,
    )


def test_help_does_not_import_http_or_models() -> None:
    script = (
        "import sys\nfrom forge.cli import main\nsys.argv = ['forge', '--help']\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print({'httpx2', 'pydantic', 'ssl', 'forge.client'} & set(sys.modules))"
    )
    out = child(["-c", script]).stdout
    assert "Usage: forge" in out
    assert out.endswith("\nset()\n")


def test_every_command_has_help(bare: Run) -> None:
    groups = [
        line.split()[0] for line in bare("--help").out.partition("Commands:\n")[2].splitlines()
    ]
    for group in [*groups[4:], "jobs submit"]:
        text = bare(*group.split(), "--help").out
        names = [line.split()[0] for line in text.partition("Commands:\n")[2].splitlines()]
        assert len(names) > 2
        for name in set(names) - {"submit"}:
            page = bare(*group.split(), name, "--help")
            assert page.code == 0 and "--json" in page.out, page


def test_completion_offers_ids(server: FakeForge) -> None:
    server.script = answering({"/api/jobs": {"jobs": [JOB], "has_more": False}})

    def completed(words: str) -> list[str]:
        env = {
            "_FORGE_COMPLETE": "complete_bash",
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split()) - (not words.endswith(" "))),
            "SERVICE_BASE_URL": server.url,
            "SERVICE_API_KEY": KEY,
        }
        return child(["-m", "forge"], **env).stdout.split()

    assert completed("forge jobs wait job") == ["job_1"]
    assert completed("forge jobs sub") == ["submit"]
    assert completed("forge pipelines run --template ") == ["byo-data", "synthetic"]
    server.close()
    assert completed("forge jobs wait job") == []


def test_a_narrow_terminal_drops_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [("job_" + "x" * 20, "train", "running", "a long tag, and another")]
    heads = ("JOB", "TYPE", "STATUS", "TAGS")
    for width, shown in ((100, 4), (40, 3), (31, 2), (10, 1)):
        console = Console(width=width, force_terminal=True, color_system=None)
        monkeypatch.setattr(output, "console", lambda console=console, **_: console)
        output.print_table(heads, rows, nothing="")
        head, row = capsys.readouterr().out.splitlines()
        assert head.split() == list(heads[:shown])
        assert row.startswith(rows[0][0])


@pytest.mark.parametrize("width", [40, 80])
def test_the_line_of_a_job_fits(width: int, capsys: pytest.CaptureFixture[str]) -> None:
    console = Console(width=width, force_terminal=True, color_system=None)
    console.print(job_line("train job_" + "x" * 80, "running", 0.456, 3725, None))
    console.print(job_line("train job_1", "pending", None, 7, "needs 4 GPUs; \x1b[2J" + "x" * 50))
    out = capsys.readouterr().out
    assert all(len(line) <= width for line in out.splitlines())
    assert "46% 1:02:05" in out and "pending 0:07" in out and "\x1b" not in out


def test_a_pipeline_contains_all_options(server: FakeForge, run: Run, tmp_path: Path) -> None:
    server.script = answering({"/api/pipelines": PIPELINE})
    words = "pipelines run --template byo-data --set audit.dataset_uri=s3://b/k --budget 5"
    more = ["--set", "train.params.lr=0.1", "--gate", "evaluate: scores.overall >= 0.7"]
    ended = run(*words.split(), *more, "--approval", "deploy", "--skip", "distill")
    assert (ended.code, ended.out) == (0, "pl_1\n")
    assert json.loads(server.requests[-1].body) == {
        "template": "byo-data",
        "params": {"audit": {"dataset_uri": "s3://b/k"}, "train": {"params": {"lr": 0.1}}},
        "gates": [{"step": "evaluate", "condition": "scores.overall >= 0.7"}],
        "approvals": ["deploy"],
        "skip": ["distill"],
        "budget_usd": 5.0,
    }
    file = tmp_path / "own.json"
    own = {"name": "a", "job_type": "train", "payload": {"model": "m"}}
    file.write_text(json.dumps({"steps": [own]}))
    assert run("pipelines", "run", str(file), "--set", "a.epochs=2").code == 0
    assert json.loads(server.requests[-1].body)["steps"][0]["payload"] == {
        "model": "m",
        "epochs": 2,
    }
    assert run("pipelines", "run").code == 2
    assert run("pipelines", "run", str(file), "--gate", "evaluate").code == 2


def test_a_pipeline_is_shown_and_approved(server: FakeForge, run: Run) -> None:
    server.script = answering({"/api/pipelines/pl_1": PIPELINE})
    ended = run("pipelines", "status", "pl_1")
    assert "├─ ✓ audit    completed $0.25\n└─ ? evaluate waiting approval\n" in ended.out
    assert "forge pipelines approve pl_1 evaluate" in ended.err
    assert run("pipelines", "approve", "pl_1", "--note", "fine").code == 0
    sent = server.requests[-1]
    assert sent.path == "/api/pipelines/pl_1/approve"
    assert json.loads(sent.body) == {"step": "evaluate", "approved": True, "note": "fine"}
    run("pipelines", "reject", "pl_1")
    assert json.loads(server.requests[-1].body) == {"step": "evaluate", "approved": False}


@pytest.mark.parametrize(
    ("words", "path", "body"),
    [
        ("billing budget 500 --warn-at 400", "PUT", {"cap_usd": 500.0, "warning_usd": 400.0}),
        ("billing budget 500 --no-warning", "PUT", {"cap_usd": 500.0, "warning_usd": None}),
        ("billing budget --none", "PUT", {"cap_usd": None}),
        ("keys create box --scope worker", "POST", {"name": "box", "scope": "worker"}),
        (
            "workers add --ssh me@host:2222 --gpus 8 --gpu-type A100 --tag eu",
            "POST",
            {
                "ssh_host": "host",
                "ssh_user": "me",
                "ssh_port": 2222,
                "gpu_count": 8,
                "gpu_type": "A100",
                "tags": ["eu"],
            },
        ),
    ],
)
def test_sends_the_request(
    server: FakeForge, run: Run, words: str, path: str, body: dict[str, Any]
) -> None:
    answer = {
        "user_id": "u",
        "key_id": "k",
        "name": "n",
        "scope": "worker",
        "worker_id": "w",
        "status": "bootstrapping",
    }
    server.script = answering({"/api/": answer})
    assert run(*words.split(), "--json").code == 0
    assert (server.requests[-1].method, json.loads(server.requests[-1].body)) == (path, body)


def test_a_machine_is_user_at_host(run: Run) -> None:
    for target in ("host", "@host", "me@", "me@host:x", "me@::1", "me@[host]", "me@[::1]x"):
        assert run("workers", "add", "--ssh", target, "--gpu-type", "A100").code == 2


@pytest.mark.parametrize(("target", "port"), [("me@[::1]", None), ("me@[::1]:22", 22)])
def test_a_machine_may_have_an_address_of_ipv6(
    server: FakeForge, run: Run, target: str, port: int | None
) -> None:
    server.script = answering({"/api/": {"worker_id": "w", "status": "bootstrapping"}})
    run("workers", "add", "--ssh", target, "--gpu-type", "A100")
    sent = json.loads(server.requests[-1].body)
    assert (sent["ssh_host"], sent["ssh_user"], sent.get("ssh_port")) == ("::1", "me", port)


def test_an_approval_is_requested_on_stderr_with_json(server: FakeForge, run: Run) -> None:
    completed = {**PIPELINE, "status": "completed", "steps": []}
    server.script = lambda _: as_json(PIPELINE if len(server.requests) < 4 else completed)
    ended = run("pipelines", "wait", "pl_1", "--json")
    assert json.loads(ended.out)["status"] == "completed"
    assert ended.err.count("forge pipelines approve pl_1 evaluate\n") == 1
    assert "audit: completed" not in ended.err


def test_billing_shows_the_month(server: FakeForge, run: Run) -> None:
    month = {"user_id": "u", "period": "2026-11", "total_cost_usd": 3, "by_job_type": {"train": 3}}
    server.script = answering({"/api/billing/summary": month})
    assert "$3.00" in run("billing").out
    assert json.loads(run("billing", "--json").out)["period"] == "2026-11"
    run("billing", "--period", "2026-10")
    assert server.requests[-1].path.endswith("period=2026-10")


def test_a_list_in_a_notebook_is_a_table(server: FakeForge, client: Forge) -> None:
    jobs = [{**JOB, "error": "<b>no</b>"}]
    server.script = answering({"/api/jobs": {"jobs": jobs, "has_more": False}})
    html = client.jobs.list()._repr_html_()
    assert '<td style="text-align:left">job_1</td>' in html and "&lt;b&gt;no" in html
    server.script = lambda _: None
    assert "artifact_not_found" in client.jobs.list()._repr_html_()


def test_asks_a_model(server: FakeForge, run: Run) -> None:
    answer: dict[str, Any] = {"choices": [{"message": {"role": "assistant", "content": "42"}}]}
    server.script = answering({"/api/deployments/dep_1/v1/chat/completions": answer})
    assert run("deployments", "ask", "dep_1", "17 + 25?", "--system", "Be short.").out == "42\n"
    assert json.loads(server.requests[-1].body)["messages"] == [
        {"role": "system", "content": "Be short."},
        {"role": "user", "content": "17 + 25?"},
    ]
    answer.clear()
    assert run("deployments", "ask", "dep_1", "17 + 25?").code == 2


def test_statistics_of_a_deployment(server: FakeForge, run: Run) -> None:
    total = {"requests": 12, "errors": 1, "latency_p50_s": 0.25, "output_tokens": 300}
    answer = {
        "deployment_id": "dep_1",
        "since": "2026-11-24T00:00:00Z",
        "until": "2026-11-25T00:00:00Z",
        "bucket_s": 300,
        "total": total,
        "buckets": [],
    }
    server.script = answering({"/api/deployments/dep_1/stats": answer})
    shown = run("deployments", "stats", "dep_1").out
    assert [line.split() for line in shown.splitlines() if "12" in line] == [["requests", "12"]]
    assert "0.25 s" in shown
    assert "300" in shown
    in_json = json.loads(run("deployments", "stats", "dep_1", "--json").out)
    assert in_json["total"]["requests"] == 12


def test_the_version(bare: Run) -> None:
    assert bare("--version").out == f"forge {__version__}\n"
