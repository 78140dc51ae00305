"""The base class of the methods that submit a job."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from ..models import BaseJob
from ..operation import M, Resource
from ..request import Request, create
from ..submission import SubmissionOptions, body_of
from .job_requests import JobsOperations

J = TypeVar("J", bound=BaseJob)


class Submitting(Resource[M], Generic[M, J]):
    """Base class for the submission methods of all job types."""

    jobs: JobsOperations[M, J]

    def _submit(
        self, job_type: str, payload: dict[str, Any], options: SubmissionOptions
    ) -> Request[J]:
        body = body_of(payload, options)
        key = options.get("idempotency_key")
        return create(f"/api/jobs/{job_type}", self.jobs.read, body, key)


def by_place(dataset_id: str | None, dataset_uri: str | None) -> tuple[str | None, str | None]:
    """Returns the id and the URI of a dataset.

    If `dataset_uri` is None and `dataset_id` contains "://", `dataset_id` is returned as the URI.
    """
    if dataset_id and dataset_uri is None and "://" in dataset_id:
        return None, dataset_id
    return dataset_id, dataset_uri
