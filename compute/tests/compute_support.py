"""Jobs and rows for the handlers' tests."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from forge_compute.job import Job
from forge_compute.params import Params

OUTPUT_IDS = {
    "dataset_id": "ds_out",
    "distilled_dataset_id": "ds_distilled",
    "checkpoint_id": "ckpt_out",
    "eval_id": "eval_out",
    "deployment_id": "dep_out",
}


def make_job(folder: Path, job_type: str, payload: dict[str, Any], **fields: Any) -> Job:  # noqa: ANN401
    """A job that writes its output to the folder."""
    fields["params"] = Params(fields.get("params", {}))
    for name in ("output", "checkpoints"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    return Job(
        **{
            "job_type": job_type,
            "payload": payload,
            "inputs": {},
            "output_dir": folder / "output",
            "checkpoint_dir": folder / "checkpoints",
            "output_ids": OUTPUT_IDS,
            "artifacts_uri": "forge://artifacts/x/",
            **fields,
        }
    )


def write_job(
    folder: Path,
    job_type: str,
    payload: dict[str, Any],
    **fields: Any,  # noqa: ANN401
) -> dict[str, str]:
    """Writes a job file, as the agent does. Returns the handler's environment variables."""
    (folder / "output").mkdir(parents=True, exist_ok=True)
    job = {
        "job_id": "job_1",
        "job_type": job_type,
        "attempt": 1,
        "timeout_s": 60,
        "payload": payload,
        "params": {},
        "output_ids": OUTPUT_IDS,
        "artifacts_uri": "forge://artifacts/x/",
        "inputs": {},
        "output_dir": str(folder / "output"),
        "checkpoint_dir": str(folder / "checkpoints"),
        "resume_from": None,
        "teachers": {},
        **fields,
    }
    (folder / "job.json").write_text(json.dumps(job))
    return {
        "FORGE_JOB_FILE": str(folder / "job.json"),
        "FORGE_RESULT_FILE": str(folder / "result.json"),
        "FORGE_PROGRESS": str(folder / "progress"),
    }


def write_rows(path: Path, rows: list[dict[str, Any]]) -> Path:
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


def read(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return rows
