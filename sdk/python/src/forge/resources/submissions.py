"""The methods of spec 4.5, which are on the client itself: `client.status(id)`."""

from __future__ import annotations

from typing import Generic

from ..models import Artifact, BaseJob
from ..operation import M, operation
from ..request import Request, path_of
from .job_requests import id_of, read_artifacts
from .job_type_methods import JobTypeMethods
from .submitting import J


class Submissions(JobTypeMethods[M, J], Generic[M, J]):
    """Submit jobs. A parameter that is left out has the API's default.

    Where a parameter has two names, both are the API's. Each submission also takes `resources`,
    `priority`, `tags`, `params`, `notes`, `timeout_s`, `max_attempts` and `idempotency_key`.
    """

    @operation
    def status(self, job_id: str | BaseJob) -> Request[J]:
        """The job as it is now."""
        return Request("GET", path_of("/api/jobs/{}", id_of(job_id)), self.jobs.read)

    @operation
    def get_artifacts(self, job_id: str | BaseJob) -> Request[list[Artifact]]:
        """What a job left behind: metadata and URIs. `client.artifacts` has the files."""
        return read_artifacts(job_id)
