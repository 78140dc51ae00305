"""`python -m forge_compute` as the agent runs it, and its transient failures."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from compute_support import write_job, write_rows

from forge_compute.failures import FatalError, TransientError, is_transient

ROWS = [{"instruction": "What is 1 + 1?", "response": "2"}]


def _run(
    folder: Path,
    job_type: str,
    payload: dict[str, Any],
    without: tuple[str, ...] = (),
    **fields: Any,  # noqa: ANN401
) -> tuple[int, dict[str, Any], str]:
    """Returns exit code, result file and log. `without`: modules that can't be imported."""
    env = write_job(folder, job_type, payload, **fields)
    # A fake module hides the real one: it is first on the path and raises ModuleNotFoundError.
    for name in without:
        (folder / f"{name}.py").write_text(
            f"raise ModuleNotFoundError('no {name}', name={name!r})\n"
        )
    done = subprocess.run(
        [sys.executable, "-m", "forge_compute", job_type],
        env={**os.environ, **env, "PYTHONPATH": ":".join([str(folder), *sys.path])},
        capture_output=True,
        text=True,
        check=False,
    )
    result = json.loads((folder / "result.json").read_text())
    return done.returncode, result, done.stdout + done.stderr


def test_audits_without_torch_and_adds_the_commit(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "rows.parquet", ROWS)
    code, result, _ = _run(
        tmp_path,
        "audit",
        {"dataset_uri": "forge://x"},
        without=("torch",),
        inputs={"dataset_uri": str(path)},
        git_commit="abc",
    )
    assert code == 0
    assert result["result"]["git_commit"] == "abc"
    assert (tmp_path / "output" / "scored.parquet").is_file()
    assert json.loads((tmp_path / "progress").read_text())["progress"] == 1


@pytest.mark.parametrize(
    ("job_type", "payload", "error"),
    [
        ("audit", {"dataset_uri": "x"}, "dataset x is not known to the control plane"),
        ("audit", {}, "the job has no dataset_uri"),
        ("train", {"model": "builtin:tiny"}, "train needs PyTorch: pip install forge-compute["),
        ("paint", {}, "unknown job type 'paint'; use one of generate, audit, "),
    ],
)
def test_fatal_failures_have_a_reason(
    tmp_path: Path, job_type: str, payload: dict[str, Any], error: str
) -> None:
    code, result, log = _run(tmp_path, job_type, payload, without=("torch",))
    assert code == 1
    assert error in result["error"]
    assert f"fatal: {error}" in log
    assert "Traceback" not in log


def test_an_unreachable_teacher_is_transient_but_a_missing_file_is_not(tmp_path: Path) -> None:
    payload = {"task": "ask", "size": 1, "teacher": "big"}
    teachers = {"big": {"base_url": "http://127.0.0.1:9/v1"}}
    params = {"retries": 0}
    code, result, _ = _run(tmp_path, "generate", payload, teachers=teachers, params=params)
    assert (code, result) == (75, {"error": "APIConnectionError: Connection error."})
    inputs = {"dataset_uri": str(tmp_path / "gone")}
    code, result, log = _run(tmp_path, "audit", {}, inputs=inputs)
    assert code == 1
    assert "FileNotFoundError" in result["error"]
    assert "Traceback" in log


ADVICE = """\
CUDA kernel errors might be asynchronously reported at some other API call.
For debugging consider passing CUDA_LAUNCH_BLOCKING=1
Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.
"""
"""PyTorch adds this to every error of CUDA."""


@pytest.mark.parametrize(
    ("error", "transient"),
    [
        (FatalError("x"), False),
        (TransientError("x"), True),
        (FileNotFoundError(errno.ENOENT, "x"), False),
        (PermissionError(errno.EACCES, "x"), False),
        (OSError(errno.ENOSPC, "x"), True),
        (ConnectionResetError(), True),
        (TimeoutError(), True),
        (MemoryError(), True),
        (ValueError("x"), False),
        (RuntimeError(f"CUDA error: uncorrectable ECC error encountered\n{ADVICE}"), True),
        (RuntimeError(f"CUDA error: an illegal memory access was encountered\n{ADVICE}"), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate"), True),
        (RuntimeError("Found no NVIDIA driver on your system."), True),
        (RuntimeError(f"CUDA error: device-side assert triggered\n{ADVICE}"), False),
        (RuntimeError("CUDA error: CUBLAS_STATUS_INVALID_VALUE when calling cublasSgemm"), False),
        (RuntimeError("CUDA error: invalid configuration argument"), False),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
        (ValueError("CUDA error: out of range"), False),
    ],
)
def test_classifies_errors(error: Exception, transient: bool) -> None:
    assert is_transient(error) is transient
