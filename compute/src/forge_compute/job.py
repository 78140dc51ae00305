"""The handler's side of the job contract: reads the job file, writes progress and result."""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .failures import FatalError
from .params import Params

_INPUT_NAMES = {
    "dataset_id": "dataset",
    "dataset_uri": "dataset",
    "checkpoint_id": "checkpoint",
    "benchmark": "benchmark",
    "prompts": "dataset of prompts",
}


@dataclass(frozen=True)
class Job:
    job_type: str
    payload: dict[str, Any]
    params: Params
    inputs: dict[str, Path]
    """Inputs fetched by the agent, by the name of their field: a file or a folder each."""
    output_dir: Path
    """Its content becomes the job's artifact if the handler exits with 0."""
    checkpoint_dir: Path
    """The agent uploads the newest file in this folder, for a later attempt. Write to a file whose
    name begins with a dot, and rename it when it is complete."""
    output_ids: dict[str, str]
    artifacts_uri: str
    """The future URI of output_dir, with a trailing slash."""
    resume_from: Path | None = None
    """The latest checkpoint of an earlier attempt."""
    teachers: dict[str, dict[str, Any]] = field(default_factory=dict)
    git_commit: str | None = None

    @classmethod
    def from_env(cls) -> "Job":
        content = json.loads(Path(os.environ["FORGE_JOB_FILE"]).read_text())
        resume_from = content.get("resume_from")
        return cls(
            job_type=content["job_type"],
            payload=content["payload"],
            params=Params(content.get("params") or {}),
            inputs={name: Path(path) for name, path in content["inputs"].items()},
            output_dir=Path(content["output_dir"]),
            checkpoint_dir=Path(content["checkpoint_dir"]),
            output_ids=content["output_ids"],
            artifacts_uri=content["artifacts_uri"],
            resume_from=Path(resume_from) if resume_from else None,
            teachers=content.get("teachers") or {},
            git_commit=content.get("git_commit"),
        )

    def input(self, *names: str) -> Path:
        """Returns the path of an input: the first of `names` that the job has.

        Raises FatalError if the job has none of these inputs.
        """
        for name in names:
            if name in self.inputs:
                return self.inputs[name]
        for name in names:
            value = self.payload.get(name, self.params.get(name))
            if value is not None:
                raise FatalError(f"{_INPUT_NAMES[name]} {value} is not known to the control plane")
        raise FatalError(f"the job has no {' or '.join(names)}")

    def uri(self, name: str) -> str:
        """The URI that a file in output_dir will have after its upload."""
        return f"{self.artifacts_uri}{name}"


def report_progress(fraction: float, metrics: dict[str, Any] | None = None) -> None:
    """Reports the job's progress, from 0 to 1, and its metrics so far."""
    path = Path(os.environ["FORGE_PROGRESS"])
    partial = path.with_name(f".{path.name}.part")
    partial.write_text(json.dumps({"progress": round(fraction, 4), "metrics": metrics or {}}))
    partial.replace(path)


def write_result(content: dict[str, Any]) -> None:
    Path(os.environ["FORGE_RESULT_FILE"]).write_text(json.dumps(content))
