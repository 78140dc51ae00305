"""The methods that are on the client itself, such as `client.status(id)` (spec.md 4.5)."""

from __future__ import annotations

from typing import Generic

from ..models import Artifact, BaseJob
from ..operation import M, operation
from ..request import Request, path_of
from .job_requests import id_of, read_artifacts
from .job_type_methods import JobTypeMethods
from .submitting import J


class Submissions(JobTypeMethods[M, J], Generic[M, J]):
    """Submissions accept either of the API's sets of field names, e.g. `model` or `model_id`.

    The API's defaults apply to missing parameters.

    Each submission also takes `resources`, `priority`, `tags`, `params`, `notes`, `timeout_s`,
    `max_attempts` and `idempotency_key`.
    """

    @operation
    def status(self, job_id: str | BaseJob) -> Request[J]:
        """Reads the current state of a job."""
        return Request("GET", path_of("/api/jobs/{}", id_of(job_id)), self.jobs.read)

    @operation
    def get_artifacts(self, job_id: str | BaseJob) -> Request[list[Artifact]]:
        """The artifacts of a job: metadata and URIs. `client.artifacts` has their files."""
        return read_artifacts(job_id)
