"""The methods of section 4.5 of the specification: they are the client's own."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from typing_extensions import Unpack

from ..models import Artifact, BaseJob
from ..operation import M, Resource, operation
from ..request import Request, create, path_of
from ..submission import SubmissionOptions, body_of
from .job_requests import JobsOperations, id_of, read_artifacts

J = TypeVar("J", bound=BaseJob)


class Submissions(Resource[M], Generic[M, J]):
    """Submit jobs. A parameter that is left out has the API's default.

    Where a parameter has two names, both are the API's. Each submission also takes `resources`,
    `priority`, `tags`, `params`, `notes`, `timeout_s`, `max_attempts` and `idempotency_key`.
    """

    jobs: JobsOperations[M, J]

    @operation
    def generate(
        self,
        domain: str | None = None,
        num_samples: int | None = None,
        *,
        task: str | None = None,
        size: int | None = None,
        teacher: str | None = None,
        style: str | None = None,
        **options: Unpack[SubmissionOptions],
    ) -> Request[J]:
        """Makes a dataset: give `task`, `size`, `teacher`, or `domain` and `num_samples`."""
        payload = {
            "domain": domain,
            "num_samples": num_samples,
            "task": task,
            "size": size,
            "teacher": teacher,
            "style": style,
        }
        return self._submit("generate", payload, options)

    @operation
    def audit(self, dataset_uri: str, **options: Unpack[SubmissionOptions]) -> Request[J]:
        """Scores the rows of a dataset."""
        return self._submit("audit", {"dataset_uri": dataset_uri}, options)

    @operation
    def distill(
        self,
        teacher_model: str | None = None,
        student_model: str | None = None,
        dataset_uri: str | None = None,
        *,
        dataset_id: str | None = None,
        teacher: str | None = None,
        **options: Unpack[SubmissionOptions],
    ) -> Request[J]:
        """Distils a dataset: `dataset_id` or `dataset_uri`, `teacher` or `teacher_model`."""
        payload = {
            "teacher_model": teacher_model,
            "student_model": student_model,
            "dataset_uri": dataset_uri,
            "dataset_id": dataset_id,
            "teacher": teacher,
        }
        return self._submit("distill", payload, options)

    @operation
    def train(
        self,
        model: str | None = None,
        dataset_id: str | None = None,
        epochs: int = 3,
        *,
        model_id: str | None = None,
        dataset_uri: str | None = None,
        **options: Unpack[SubmissionOptions],
    ) -> Request[J]:
        """Trains a checkpoint: `model` or `model_id`, `dataset_id` or `dataset_uri`."""
        # By place, this parameter is either: the specification has both, and a URI can't be an id.
        if dataset_id and dataset_uri is None and "://" in dataset_id:
            dataset_id, dataset_uri = None, dataset_id
        payload = {
            "model": model,
            "model_id": model_id,
            "dataset_id": dataset_id,
            "dataset_uri": dataset_uri,
            "epochs": epochs,
        }
        return self._submit("train", payload, options)

    @operation
    def evaluate(
        self,
        checkpoint_id: str | None = None,
        benchmark: str | None = None,
        *,
        model_id: str | None = None,
        **options: Unpack[SubmissionOptions],
    ) -> Request[J]:
        """Scores a checkpoint, given as `checkpoint_id` or `model_id`."""
        payload = {"checkpoint_id": checkpoint_id, "benchmark": benchmark, "model_id": model_id}
        return self._submit("evaluate", payload, options)

    @operation
    def deploy(
        self,
        checkpoint_id: str | None = None,
        region: str | None = None,
        *,
        model_id: str | None = None,
        min_replicas: int | None = None,
        max_replicas: int | None = None,
        **options: Unpack[SubmissionOptions],
    ) -> Request[J]:
        """Serves a checkpoint, given as `checkpoint_id` or `model_id`."""
        payload = {
            "checkpoint_id": checkpoint_id,
            "region": region,
            "model_id": model_id,
            "min_replicas": min_replicas,
            "max_replicas": max_replicas,
        }
        return self._submit("deploy", payload, options)

    @operation
    def status(self, job_id: str | BaseJob) -> Request[J]:
        """The job as it is now."""
        return Request("GET", path_of("/api/jobs/{}", id_of(job_id)), self.jobs.read)

    @operation
    def get_artifacts(self, job_id: str | BaseJob) -> Request[list[Artifact]]:
        """What a job left behind: metadata and URIs. `client.artifacts` has the files."""
        return read_artifacts(job_id)

    def _submit(
        self, job_type: str, payload: dict[str, Any], options: SubmissionOptions
    ) -> Request[J]:
        body = body_of(payload, options)
        key = options.get("idempotency_key")
        return create(f"/api/jobs/{job_type}", self.jobs.read, body, key)
