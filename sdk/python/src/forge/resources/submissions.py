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
    """Methods that submit jobs, and methods for a submitted job.

    For some job types, the API has two sets of field names. For example, one set has `model`, and
    the other set has `model_id`. The API accepts both sets. The API's defaults apply to missing
    parameters.

    Each submission also takes `resources`, `priority`, `tags`, `params`, `notes`, `timeout_s`,
    `max_attempts` and `idempotency_key`.
    """

    @operation
    def status(self, job_id: str | BaseJob) -> Request[J]:
        """Reads the current state of a job."""
        return Request("GET", path_of("/api/jobs/{}", id_of(job_id)), self.jobs.read)

    @operation
    def get_artifacts(self, job_id: str | BaseJob) -> Request[list[Artifact]]:
        """Lists the artifacts of a job: metadata and URIs.

        To read the files of an artifact, use `client.artifacts`.
        """
        return read_artifacts(job_id)
