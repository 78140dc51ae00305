"""The output and the exit codes of the `forge` command."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sdk_support import KEY, Answer, FakeForge, Request, as_error, as_json, flipped

from forge.cli import main

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(
    server: FakeForge, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    """Returns a function that runs `forge` and returns the exit code, stdout and stderr.

    The function fails if the output contains the key.
    """
    monkeypatch.setenv("SERVICE_BASE_URL", server.url)
    monkeypatch.setenv("SERVICE_API_KEY", KEY)

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["forge", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        assert KEY not in out + err
        return int(ended.value.code or 0), out, err

    return run


def test_verify_prints_each_file_and_a_conclusion(run: Run) -> None:
    assert run("artifacts", "verify", "ds_1") == (
        0,
        "ok            raw.jsonl\nok            deep/er/b\nok            manifest.json\n"
        "ds_1 matches its manifest: 3 files\n",
        "",
    )


def test_verify_fails_on_one_flipped_bit(server: FakeForge, run: Run) -> None:
    server.files["raw.jsonl"] = flipped(server.files["raw.jsonl"], 99)
    del server.files["deep/er/b"]
    code, out, _ = run("artifacts", "verify", "ds_1")
    first, second, _, last = out.splitlines()
    assert code == 1
    assert first.startswith("changed       raw.jsonl  (SHA-256 ")
    assert second == "missing       deep/er/b  (no)"
    assert last == "ds_1 does not match its manifest: 2 of 3 files"


def test_verify_of_a_directory(run: Run, tmp_path: Path) -> None:
    assert run("artifacts", "pull", "ds_1", str(tmp_path))[0] == 0
    assert run("artifacts", "verify", "ds_1", "--dir", str(tmp_path))[0] == 0
    (tmp_path / "deep/er/b").write_bytes(b"twofold")
    (tmp_path / "x\x1b[2J").write_bytes(b"")
    code, out, _ = run("artifacts", "verify", "ds_1", "--dir", str(tmp_path))
    assert code == 1
    assert "size differs  deep/er/b  (7 bytes, not 3)\n" in out
    assert "extra         x\\x1b[2J\n" in out


def test_verify_as_json(server: FakeForge, run: Run) -> None:
    server.files["deep/er/b"] = b"too"
    code, out, err = run("artifacts", "verify", "ds_1", "--json")
    found = json.loads(out)
    assert (code, err) == (1, "")
    assert (found["artifact_id"], found["ok"], found["verified"]) == ("ds_1", False, True)
    assert [file["outcome"] for file in found["files"]] == ["ok", "changed", "ok"]


@pytest.mark.parametrize("command", ["verify", "pull"])
def test_reports_files_that_forge_never_saw(
    server: FakeForge, run: Run, tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    server.set_manifest({"files": [], "verified": False})
    code, out, err = run("artifacts", command, "ds_1")
    assert code == 1
    assert "verified: false" in out + err


def test_pull_uses_a_directory_with_the_artifacts_name(
    server: FakeForge, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("artifacts", "pull", "ds_1") == (0, "ds_1: 2 downloaded, in ds_1\n", "")
    assert run("artifacts", "pull", "ds_1")[1] == "ds_1: 0 downloaded, 2 already present, in ds_1\n"
    assert json.loads((tmp_path / "ds_1/manifest.json").read_text()) == server.manifest


def test_pull_refuses_changed_bytes(server: FakeForge, run: Run, tmp_path: Path) -> None:
    server.files["deep/er/b"] = b"too"
    code, _, err = run("artifacts", "pull", "ds_1", str(tmp_path))
    assert code == 1
    assert err.startswith("forge: deep/er/b does not match its manifest: SHA-256 ")


@pytest.mark.parametrize("command", ["verify", "pull", "lineage"])
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (as_error(404, "artifact_not_found"), "artifact_not_found: no (HTTP 404, request req_1)"),
        (as_error(403, "invalid_api_key"), "invalid_api_key: no (HTTP 403, request req_1)"),
        (as_error(410, "artifact_deleted"), "artifact_deleted: no (HTTP 410, request req_1)"),
        (Answer(200, b"<html>"), "the response is not a JSON object"),
    ],
)
def test_errors_are_one_line(
    server: FakeForge, run: Run, command: str, answer: Answer, said: str
) -> None:
    server.script = lambda _: answer
    code, out, err = run("artifacts", command, "ds_1")
    assert (code, out) == (2, "")
    assert err.startswith("forge: ")
    assert err.endswith(f"{said}\n")
    assert err.count("\n") == 1


def test_text_of_a_server_is_escaped_in_the_terminal(server: FakeForge, run: Run) -> None:
    error = {"code": "no", "message": "\x1b]0;x\x07\nsecond\u202eline"}
    server.script = lambda _: as_json({"error": error}, 404)
    _, _, err = run("artifacts", "verify", "ds_1")
    assert err == "forge: no: \\x1b]0;x\\x07\\nsecond\\u202eline (HTTP 404)\n"


def test_hostile_names_and_links_are_reported(server: FakeForge, run: Run, tmp_path: Path) -> None:
    server.set_files({"../x": b"x"})
    code, _, err = run("artifacts", "pull", "ds_1", str(tmp_path))
    assert code == 2
    assert err == "forge: '../x' is not a valid file path: it has a name of dots\n"


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["artifacts"],
        ["artifacts", "nothing"],
        ["artifacts", "verify"],
        ["artifacts", "verify", "../x"],
        ["artifacts", "verify", "ds_1", "--dir", "/nowhere/at/all"],
        ["--base-url", "nowhere", "artifacts", "verify", "ds_1"],
    ],
)
def test_usage_errors_exit_with_2(run: Run, arguments: list[str]) -> None:
    assert run(*arguments)[0] == 2


def test_options_take_precedence_over_the_environment(
    server: FakeForge, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVICE_BASE_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("SERVICE_API_KEY", "another")
    options = ["--base-url", server.url, "--api-key", KEY]
    assert run(*options, "artifacts", "verify", "ds_1")[0] == 0


def test_help_does_not_show_the_key(run: Run) -> None:
    for arguments in (["--help"], ["artifacts", "--help"], ["artifacts", "pull", "--help"]):
        code, out, _ = run(*arguments)
        assert code == 0
        assert "Usage: forge" in out


@pytest.mark.parametrize("more", [{}, {"FORCE_COLOR": "1", "NO_COLOR": "1"}])
def test_output_of_a_process_is_plain_text(server: FakeForge, more: dict[str, str]) -> None:
    env: dict[str, Any] = {
        **os.environ,
        **more,
        "SERVICE_BASE_URL": server.url,
        "SERVICE_API_KEY": KEY,
        "PYTHONPATH": str(Path(__file__).parent.parent / "src"),
        "PYTHONIOENCODING": "ascii",
    }
    server.set_files({"é" * 80: b"long, and not in that encoding"})
    ended = subprocess.run(
        [sys.executable, "-m", "forge", "artifacts", "verify", "ds_1"],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines()[0] == "ok            " + "\\xe9" * 80


def test_lineage_is_printed(server: FakeForge, run: Run) -> None:
    answer = {
        "artifact_id": "ds_1",
        "nodes": [{"id": "ds_1", "type": "artifact", "kind": "raw_dataset", "name": "a[b]c"}],
        "edges": [],
        "truncated": False,
    }

    def script(request: Request) -> Answer | None:
        return as_json(answer) if request.path.endswith("/lineage") else None

    server.script = script
    assert run("artifacts", "lineage", "ds_1") == (0, 'ds_1  raw_dataset  "a[b]c"\n', "")
    assert json.loads(run("artifacts", "lineage", "ds_1", "--json")[1]) == answer
