"""Reading a handler's result, outputs and failures."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from agent_support import dispatched_job

from forge_agent.config import HandlerConfig
from forge_agent.handler import Outcome, ending_of_container, read_outcome, start_handler
from forge_agent.handler_failed import HandlerFailed
from forge_agent.handler_folder import HandlerFolder
from forge_agent.job_report import Reports
from forge_agent.lease import Lease
from forge_agent.sendable import require_sendable, sendable_text
from forge_agent.supervisor_client import Ending

DONE = Ending(0, None, None)


def _read(folder: HandlerFolder, ending: Ending = DONE, last: str = "the last line") -> Outcome:
    return read_outcome(folder, ending, last, Reports(folder.progress_file))


@pytest.fixture
def folder(tmp_path: Path) -> HandlerFolder:
    folder = HandlerFolder(tmp_path / "try-1")
    folder.create()
    return folder


def test_a_result_is_merged_with_reported_metrics(folder: HandlerFolder) -> None:
    folder.progress_file.write_text('{"progress": 1, "metrics": {"rows_processed": 3, "n": 1}}')
    folder.result_file.write_text('{"result": {"ok": true}, "metrics": {"n": 2}}')
    assert _read(folder) == Outcome({"ok": True}, {"rows_processed": 3, "n": 2})


def test_a_result_file_is_optional(folder: HandlerFolder) -> None:
    assert _read(folder) == Outcome({}, {})


@pytest.mark.parametrize(
    "content",
    [
        "[" * 60_000,
        "",
        "{",
        "[]",
        '{"result": 1}',
        '{"result": {"x": NaN}}',
        '{"result": {"x": "\\u0000"}}',
    ],
)
def test_an_unusable_result_is_a_fatal_failure(folder: HandlerFolder, content: str) -> None:
    folder.result_file.write_text(content)
    with pytest.raises(HandlerFailed, match=r"no usable result\.json") as raised:
        _read(folder)
    assert not raised.value.transient


def test_a_fifo_as_result_does_not_block(folder: HandlerFolder) -> None:
    os.mkfifo(folder.result_file)
    with pytest.raises(HandlerFailed, match="not a regular file"):
        _read(folder)


def test_outputs_are_files_with_names_that_can_be_sent(folder: HandlerFolder) -> None:
    (folder.output / "deep").mkdir()
    (folder.output / "deep" / "a").touch()
    (folder.output / "link").symlink_to("/etc/passwd")
    (folder.output / "Manifest.JSON").write_text("{}")
    (folder.output / "deep" / "manifest.json").write_text("{}")
    below = folder.output / "deep"
    os.mkfifo(below / "fifo")
    outputs = folder.outputs()
    assert outputs.files == ["deep/a", "deep/manifest.json"]
    assert outputs.left_out == ["deep/fifo", "link"]
    assert outputs.has_manifest
    (below / "manifest.json").rename(below / "back\\slash")
    with pytest.raises(HandlerFailed, match="backslash"):
        folder.outputs()
    (below / "back\\slash").unlink()
    (folder.output / os.fsdecode(b"caf\xe9")).touch()
    with pytest.raises(HandlerFailed, match="must be UTF-8"):
        folder.outputs()


@pytest.mark.parametrize(
    ("ending", "content", "message", "transient"),
    [
        (Ending(1, None, None), None, "exit code 1: the last line", False),
        (Ending(75, None, None), None, "exit code 75: the last line", True),
        (Ending(None, 9, None), None, r"signal 9 \(SIGKILL\)", True),
        (Ending(None, 40, None), None, r"signal 40 \(real-time\)", True),
        (Ending(None, 9, "used 3 GB"), None, "the handler used 3 GB", True),
        (
            Ending(1, None, None),
            '{"error": "no such\\u0000 column"}',
            "no such\ufffd column",
            False,
        ),
        (Ending(75, None, None), '{"error": "GPU out of memory"}', "GPU out of memory", True),
        (Ending(1, None, None), '{"error": "' + "x" * 9999 + '"}', "x{4096}$", False),
    ],
)
def test_failures(
    folder: HandlerFolder, ending: Ending, content: str | None, message: str, transient: bool
) -> None:
    if content:
        folder.result_file.write_text(content)
    with pytest.raises(HandlerFailed, match=message) as raised:
        _read(folder, ending)
    assert raised.value.transient is transient


@pytest.mark.parametrize(
    ("code", "ending"),
    [
        (0, Ending(0, None, None)),
        (1, Ending(1, None, None)),
        (128, Ending(128, None, None)),
        (137, Ending(None, 9, None)),
        (255, Ending(255, None, None)),
    ],
)
def test_the_exit_code_of_a_container(code: int, ending: Ending) -> None:
    assert ending_of_container(Ending(code, None, None)) == ending


def test_the_job_file_has_what_a_handler_needs(folder: HandlerFolder, tmp_path: Path) -> None:
    job = dispatched_job(payload={"epochs": 3}, params={"lr": 0.1})
    folder.describe(
        Lease.of(job, "w"), {"dataset_id": tmp_path / "in"}, None, {"*": {"base_url": "u"}}
    )
    content: dict[str, Any] = json.loads(folder.job_file.read_text())
    assert content["payload"] == {"epochs": 3}
    assert content["inputs"] == {"dataset_id": str(tmp_path / "in")}
    assert content["resume_from"] is None
    assert Path(content["output_dir"]).is_dir()
    assert Path(content["checkpoint_dir"]).is_dir()


def test_a_handler_does_not_get_the_agents_own_keys(
    folder: HandlerFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = ("SERVICE_API_KEY", "S3_SECRET_ACCESS_KEY", "SPACES_SECRET", "FORGE_DATABASE_URL")
    for name in (*secret, "TEACHER_API_KEY", "FORGE_MODELS_DIR"):
        monkeypatch.setenv(name, f"{name}-value")
    inputs = {"dataset_id": Path("/in")}
    folder.describe(Lease.of(dispatched_job(), "w"), inputs, None, {})
    supervised = start_handler(
        HandlerConfig(("env",), env={"MODE": "full"}), folder, {"X": "1"}, "n"
    )
    output = supervised.output.read().decode()
    assert supervised.wait() == DONE
    assert "TEACHER_API_KEY-value" in output
    assert "MODE=full" in output
    assert "FORGE_INPUT_DATASET_ID=/in" in output
    assert f"FORGE_JOB_FILE={folder.job_file}" in output
    assert "FORGE_MODELS_DIR-value" in output
    for name in secret:
        assert name not in output


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\ud800", "a\0b", {"\0": 1}])
def test_refuses_values_that_cannot_be_sent(value: object) -> None:
    with pytest.raises(ValueError, match=r"."):
        require_sendable({"result": [value]})


@pytest.mark.parametrize("text", [r"\u0000", r"\\u0000", r"a\\\u0000"])
def test_a_backslash_before_u0000_is_sendable(text: str) -> None:
    require_sendable({text: [text]})


def test_makes_any_text_sendable() -> None:
    require_sendable(sendable_text("loss\0 \ud800 ok ü"))
    assert sendable_text("ok ü") == "ok ü"
