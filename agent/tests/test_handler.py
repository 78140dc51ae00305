"""Running handlers as processes of their own."""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from forge_agent.handler import (
    Handler,
    HandlerFailed,
    HandlerStopped,
    require_sendable,
    sendable_text,
)

JOB: dict[str, Any] = {
    "job_id": "job_1",
    "job_type": "audit",
    "payload": {},
    "attempt": 1,
    "output_ids": {"dataset_id": "ds_1"},
    "uploads": {"artifacts_uri": "forge://artifacts/datasets/ds_1/"},
}

Prepared = tuple[Handler, Path]


@pytest.fixture
def python_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", ":".join(sys.path))


def _rows(path: Path, count: int) -> Path:
    row = json.dumps({"instruction": "What is 1 + 1?", "response": "It is 2."})
    path.write_text(f"{row}\n" * count)
    return path


@pytest.mark.usefixtures("python_path")
def test_reads_result_and_progress(tmp_path: Path) -> None:
    dataset = _rows(tmp_path / "rows.jsonl", 10)
    handler = Handler(tmp_path / "work", JOB, {"dataset_uri": str(dataset)})
    outcome = handler.run(tmp_path / "log")
    assert outcome.metrics["rows_processed"] == 10
    assert (handler.output_dir / "scored.parquet").is_file()
    assert handler.progress == 1.0
    assert "10 rows" in (tmp_path / "log").read_text()


@pytest.mark.usefixtures("python_path")
def test_a_fatal_error_has_the_handlers_words(tmp_path: Path) -> None:
    dataset = _rows(tmp_path / "rows.jsonl", 0)
    handler = Handler(tmp_path / "work", JOB, {"dataset_uri": str(dataset)})
    with pytest.raises(HandlerFailed, match="no rows") as raised:
        handler.run(tmp_path / "log")
    assert not raised.value.transient


@pytest.mark.usefixtures("python_path")
def test_stop_ends_it(tmp_path: Path) -> None:
    dataset = _rows(tmp_path / "rows.jsonl", 400_000)
    handler = Handler(tmp_path / "work", JOB, {"dataset_uri": str(dataset)})

    def stop_when_under_way() -> None:
        while not handler.progress:
            time.sleep(0.02)
        handler.stop(grace_s=5)

    threading.Thread(target=stop_when_under_way).start()
    with pytest.raises(HandlerStopped):
        handler.run(tmp_path / "log")


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's parent-death signal is Linux's")
@pytest.mark.usefixtures("python_path")
def test_the_leash_ends_the_command_with_its_parent() -> None:
    parent_code = (
        "import os, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-m', 'forge_agent.leash', str(os.getpid()),"
        " 'sleep', '600'])\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", parent_code], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    command = Path(f"/proc/{child}/comm")
    _wait_until(lambda: command.read_text().strip() == "sleep")
    parent.kill()
    parent.wait()
    parent.stdout.close()
    _wait_until(lambda: not _alive(child))


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # An orphan that nobody has reaped yet is dead all the same.
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"


def _wait_until(holds: Any, timeout_s: float = 10) -> None:  # noqa: ANN401 - a function
    deadline = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\ud800", "a\0b", {"\0": 1}])
def test_what_cannot_be_sent_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"."):
        require_sendable({"result": [value]})


def test_any_text_can_be_made_sendable() -> None:
    require_sendable(sendable_text("loss\0 \ud800 ok ü"))
    assert sendable_text("ok ü") == "ok ü"
