"""A method for each job type (spec.md 4.5)."""

# Written by `npm run openapi -- --write` from core/jobs/types: don't edit it here.

from __future__ import annotations

from typing import Generic

from typing_extensions import Unpack

from ..operation import M, operation
from ..request import Request
from ..submission import SubmissionOptions
from .submitting import J, Submitting, by_place


class JobTypeMethods(Submitting[M, J], Generic[M, J]):
    """Submit jobs."""

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
        """Makes a dataset: give `task`, `size` and `teacher`, or `domain` and `num_samples`."""
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
    def audit(
        self,
        dataset_uri: str,
        **options: Unpack[SubmissionOptions],
    ) -> Request[J]:
        """Scores the rows of a dataset."""
        payload = {
            "dataset_uri": dataset_uri,
        }
        return self._submit("audit", payload, options)

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
        """Distils a dataset (`dataset_id` or `dataset_uri`) with `teacher` or `teacher_model`."""
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
        """Trains a checkpoint: give `model` or `model_id`, and `dataset_id` or `dataset_uri`."""
        dataset_id, dataset_uri = by_place(dataset_id, dataset_uri)
        payload = {
            "model": model,
            "dataset_id": dataset_id,
            "epochs": epochs,
            "model_id": model_id,
            "dataset_uri": dataset_uri,
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
        payload = {
            "checkpoint_id": checkpoint_id,
            "benchmark": benchmark,
            "model_id": model_id,
        }
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
