"""A handler's side of the job contract: the job file in, result file and progress out."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class FatalError(Exception):
    """The job can't succeed: a bad parameter, a missing or unreadable file."""


@dataclass(frozen=True)
class Job:
    payload: dict[str, Any]
    input_files: dict[str, Path]
    """Downloaded inputs by the payload field that named them."""
    output_dir: Path
    output_ids: dict[str, str]
    artifacts_uri: str

    @classmethod
    def from_env(cls) -> "Job":
        content = json.loads(Path(os.environ["FORGE_JOB_FILE"]).read_text())
        return cls(
            payload=content["payload"],
            input_files={name: Path(path) for name, path in content["input_files"].items()},
            output_dir=Path(content["output_dir"]),
            output_ids=content["output_ids"],
            artifacts_uri=content["uploads"]["artifacts_uri"],
        )


def report_progress(fraction: float) -> None:
    """Tells how far the job is, from 0 to 1."""
    path = Path(os.environ["FORGE_PROGRESS"])
    partial = path.with_suffix(".part")
    partial.write_text(f"{fraction:.4f}")
    partial.replace(path)


def write_result(content: dict[str, Any]) -> None:
    Path(os.environ["FORGE_RESULT_FILE"]).write_text(json.dumps(content))
