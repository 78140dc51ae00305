"""`forge jobs`: requests, output and exit codes."""

import json
from pathlib import Path
from typing import Any

import pytest
from cli_support import BILL, DONE, FAILED, JOB, Run, answering, bare, home, run
from sdk_support import Answer, FakeForge, Request, as_error, as_json

__all__ = ["bare", "home", "run"]

CANCELLED = {**FAILED, "status": "cancelled", "completed_at": "2026-11-01T00:00:00.000Z"}


def sent(server: FakeForge) -> Any:  # noqa: ANN401 - JSON
    return json.loads(server.requests[-1].body)


def test_a_submission_contains_all_options(server: FakeForge, run: Run) -> None:
    server.script = answering({"/api/jobs/train": JOB})
    words = (
        "jobs submit train --model m --dataset ds_1 --epochs 2 --gpu 1 --gpu-type A100 "
        "--worker-tag eu --tag a --tag b --param lr=1e-4 --param note=x --priority 5 --timeout 60"
    )
    ended = run(*words.split())
    assert (ended.code, ended.out, ended.err) == (0, "job_1\n", "")
    assert sent(server) == {
        "model": "m",
        "dataset_id": "ds_1",
        "epochs": 2,
        "resources": {"gpu": 1, "gpu_type": "A100", "tags": ["eu"]},
        "tags": ["a", "b"],
        "params": {"lr": 1e-4, "note": "x"},
        "priority": 5,
        "timeout_s": 60,
    }


@pytest.mark.parametrize(
    ("words", "body"),
    [
        ("generate --domain law --num-samples 9", {"domain": "law", "num_samples": 9}),
        ("audit --dataset s3://b/k", {"dataset_uri": "s3://b/k"}),
        ("distill --dataset s3://b/k --teacher t", {"dataset_uri": "s3://b/k", "teacher": "t"}),
        ("evaluate --checkpoint c --benchmark b", {"checkpoint_id": "c", "benchmark": "b"}),
        ("deploy --checkpoint c --max-replicas 2", {"checkpoint_id": "c", "max_replicas": 2}),
        ("train --set model=m --set epochs=4", {"model": "m", "epochs": 4}),
    ],
)
def test_each_type_has_its_options(
    server: FakeForge, run: Run, words: str, body: dict[str, Any]
) -> None:
    server.script = answering({"/api/jobs/": JOB})
    assert run("jobs", "submit", *words.split()).code == 0
    assert sent(server) == body


def test_options_override_the_file(server: FakeForge, run: Run, tmp_path: Path) -> None:
    server.script = answering({"/api/jobs/train": JOB})
    file = tmp_path / "body.json"
    file.write_text('{"model": "m", "epochs": 9, "notes": "from the file"}')
    expected = {"model": "m", "epochs": 2, "notes": "from the file"}
    run("jobs", "submit", "train", "--file", str(file), "--epochs", "2")
    assert sent(server) == expected
    run("jobs", "submit", "train", "--file", "-", "--epochs", "2", stdin=file.read_text())
    assert sent(server) == expected


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("submit train --param lr", "'lr' is not name=value"),
        ("submit train --file /nowhere/at/all", "/nowhere/at/all"),
        ("submit trian", "Did you mean 'train'?"),
        ("lst", "Did you mean 'list'?"),
        ("submit train --epoch 3", "--epochs"),
    ],
)
def test_usage_errors_suggest_a_correction(run: Run, words: str, said: str) -> None:
    ended = run("jobs", *words.split())
    assert ended.code == 2
    assert said in ended.err
    ended = run("jobs", *words.split(), "--json")
    assert said in json.loads(ended.err)["error"]["message"]
    assert (ended.code, ended.out) == (2, "")


def test_an_api_error_as_json(server: FakeForge, run: Run) -> None:
    server.script = lambda _: as_error(400, "invalid_request")
    ended = run("jobs", "submit", "train", "--json")
    assert (ended.code, ended.out) == (2, "")
    assert json.loads(ended.err)["error"] == {
        "code": "invalid_request",
        "message": "no",
        "param": "x",
        "request_id": "req_1",
        "status": 400,
    }


def test_waiting_for_the_end(server: FakeForge, run: Run) -> None:
    server.script = answering({"/api/jobs/job_1": DONE, "/api/billing/records/job_1": BILL})
    ended = run("jobs", "wait", "job_1")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == "job_1 completed\ncheckpoint_id  ckpt_1\ncost           $1.25\n"
    assert json.loads(run("jobs", "wait", "job_1", "--json").out)["status"] == "completed"


def test_an_unreadable_bill_does_not_fail_the_command(server: FakeForge, run: Run) -> None:
    server.script = answering({"/api/jobs/job_1": DONE})
    ended = run("jobs", "wait", "job_1")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == "job_1 completed\ncheckpoint_id  ckpt_1\n"


def test_mentions_the_log_if_there_is_one(server: FakeForge, run: Run) -> None:
    server.script = answering({"/api/jobs/job_1": {**FAILED, "attempts": 1}})
    assert "Its log: forge jobs logs job_1\n" in run("jobs", "wait", "job_1").err
    server.script = answering({"/api/jobs/job_1": CANCELLED})
    ended = run("jobs", "wait", "job_1")
    assert ended.code == 1 and "log" not in ended.err


def test_an_audit_of_a_dataset_by_its_id(server: FakeForge, run: Run) -> None:
    server.script = answering({"/api/jobs/audit": JOB})
    assert run("jobs", "submit", "audit", "--dataset", "ds_1").code == 0
    uri = "forge://artifacts/datasets/ds_1/raw.jsonl"
    assert json.loads(server.requests[-1].body) == {"dataset_uri": uri}
    server.set_files({"a.csv": b"", "b.parquet": b""})
    ended = run("jobs", "submit", "audit", "--dataset", "ds_1")
    assert ended.code == 2
    assert "ds_1 has 2 tables: give the URI of one" in ended.err
    assert "artifact_not_found" in run("jobs", "submit", "audit", "--dataset", "ds_2").err


def test_a_failed_job_exits_with_1(server: FakeForge, run: Run) -> None:
    server.script = answering({"/api/jobs/train": JOB, "/api/jobs/job_1": FAILED})
    ended = run("jobs", "submit", "train", "--wait")
    assert ended.code == 1
    assert ended.out == "job_1 failed: out of memory\n"
    ended = run("jobs", "submit", "train", "--wait", "--json")
    assert (ended.code, ended.err) == (1, "")
    assert json.loads(ended.out)["error"] == "out of memory"


def test_ctrl_c_does_not_stop_the_job(
    server: FakeForge, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pressed(*_: object) -> None:
        raise KeyboardInterrupt

    server.script = answering({"/api/jobs/job_1": JOB})
    monkeypatch.setattr("forge.transport.sleep", pressed)
    ended = run("jobs", "wait", "job_1")
    assert ended.code == 130
    assert "job_1 continues. To wait for it again:\n  forge jobs wait job_1\n" in ended.err
    assert [request.method for request in server.requests] == ["GET"] * len(server.requests)


def test_lists_and_logs(server: FakeForge, run: Run) -> None:
    def script(request: Request) -> Answer:
        if "/logs" in request.path:
            return Answer(body=b"one\n\x1b[2Jtwo\n")
        return as_json({"jobs": [{**DONE, "tags": ["a", "b"]}], "has_more": False})

    server.script = script
    head, row = run("jobs", "list", "--status", "completed", "--type", "train").out.splitlines()
    assert head.split() == ["JOB", "STATUS", "TYPE", "DONE", "CREATED", "TAGS"]
    assert row.split() == ["job_1", "completed", "train", "a,", "b"]
    assert "status=completed&job_type=train" in server.requests[-1].path
    assert json.loads(run("jobs", "list", "--json").out)["jobs"][0]["job_id"] == "job_1"
    assert run("jobs", "logs", "job_1").out == "one\n\x1b[2Jtwo\n"
    assert json.loads(run("jobs", "logs", "job_1", "--json").out)["log"] == "one\n\x1b[2Jtwo\n"
