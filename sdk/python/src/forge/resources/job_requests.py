"""Methods of `client.jobs` with one request each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from http import HTTPStatus
from typing import Any, Generic, TypeVar

from ..errors import ForgeError, JobFailedError
from ..following import Following
from ..listing import PageRequest
from ..log_range import LogRange
from ..models import Artifact, Attempt, BaseJob, JobCounts, JobMetrics, JobThroughput
from ..operation import M, Resource, listing, operation
from ..request import AppliedCheck, Request, create, get, get_list, path_of, post

J = TypeVar("J", bound=BaseJob)

JobRef = str | BaseJob
"""A job, or its id."""
# Aliases for annotations: inside the class below, `list` means the method.
ArtifactList = list[Artifact]
AttemptList = list[Attempt]


def id_of(job: JobRef) -> str:
    return job.job_id if isinstance(job, BaseJob) else job


def read_artifacts(job: JobRef) -> Request[ArtifactList]:
    return get_list(path_of("/api/jobs/{}/artifacts", id_of(job)), "artifacts", Artifact)


def completed(job: J) -> J:
    """Returns the given job, which must have ended. Raises JobFailedError if it has failed."""
    if job.status == "failed":
        raise JobFailedError(job)
    return job


class JobsOperations(Resource[M], Generic[M, J]):
    """The methods of `client.jobs` that `Forge` and `AsyncForge` share.

    Parameters named `job_id` also accept a job.
    """

    def read(self, answer: object) -> J:
        """Converts a job in a response to an object that uses this client."""
        raise NotImplementedError

    @operation
    def submit(
        self, job_type: str, body: Mapping[str, Any], *, idempotency_key: str | None = None
    ) -> Request[J]:
        """Submits a body in the API's format. `client.train` etc. have typed parameters."""
        return create(path_of("/api/jobs/{}", job_type), self.read, body, idempotency_key)

    @listing
    def list(
        self,
        *,
        status: str | Sequence[str] | None = None,
        job_type: str | Sequence[str] | None = None,
        tag: str | Sequence[str] | None = None,
        worker_id: str | None = None,
        pipeline_id: str | None = None,
        created_after: datetime | str | None = None,
        created_before: datetime | str | None = None,
        completed_after: datetime | str | None = None,
        completed_before: datetime | str | None = None,
        created_by: str | None = None,
        error_code: str | Sequence[str] | None = None,
        q: str | None = None,
        user_id: str | None = None,
        limit: int | None = None,
        page_size: int | None = None,
    ) -> PageRequest[J]:
        """Lists jobs, newest first. `limit`: maximum number in total.

        `status`: one of the API's six statuses. `q`: the beginning of an id, or a part of a tag or
        the notes. `created_by`: the name of a key.
        """
        query = {
            "status": status,
            "job_type": job_type,
            "tag": tag,
            "worker_id": worker_id,
            "pipeline_id": pipeline_id,
            "created_after": created_after,
            "created_before": created_before,
            "completed_after": completed_after,
            "completed_before": completed_before,
            "created_by": created_by,
            "error_code": error_code,
            "q": q,
            "user_id": user_id,
        }
        return PageRequest("/api/jobs", "jobs", self.read, query, limit, page_size)

    @operation
    def counts(
        self, *, ended_after: datetime | str | None = None, user_id: str | None = None
    ) -> Request[JobCounts]:
        """Counts jobs by status, type, pending reason and error.

        Counts unfinished jobs, and jobs that ended after `ended_after` (default: one day ago).
        """
        return get("/api/jobs/counts", JobCounts, ended_after=ended_after, user_id=user_id)

    @operation
    def throughput(
        self,
        *,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        bucket_s: int | None = None,
        job_type: str | Sequence[str] | None = None,
        user_id: str | None = None,
    ) -> Request[JobThroughput]:
        """Counts submitted, started, ended, waiting and running jobs over time.

        Default: the last day.
        """
        query = {
            "since": since,
            "until": until,
            "bucket_s": bucket_s,
            "job_type": job_type,
            "user_id": user_id,
        }
        return get("/api/jobs/throughput", JobThroughput, **query)

    @operation
    def get(self, job_id: JobRef) -> Request[J]:
        """Reads the current state of the job."""
        return self._get(job_id)

    @operation
    def cancel(self, job_id: JobRef) -> Request[J]:
        """Cancels the job. A job without a worker ends immediately, others after some seconds.

        Raises ConflictError if the job has ended, or its result is already being recorded.
        """
        request = post(path_of("/api/jobs/{}/cancel", id_of(job_id)), self.read)
        applied_check = AppliedCheck(
            {"job_already_finished"}, self._get(job_id), lambda job: job.error_code == "cancelled"
        )
        return replace(request, applied_check=applied_check)

    @operation
    def retry(self, job_id: JobRef, *, idempotency_key: str | None = None) -> Request[J]:
        """Submits a new job with the same payload."""
        return create(path_of("/api/jobs/{}/retry", id_of(job_id)), self.read, {}, idempotency_key)

    @operation
    def attempts(self, job_id: JobRef) -> Request[AttemptList]:
        """Lists the attempts of the job."""
        return get_list(path_of("/api/jobs/{}/attempts", id_of(job_id)), "attempts", Attempt)

    @operation
    def artifacts(self, job_id: JobRef) -> Request[ArtifactList]:
        """Lists the artifacts of the job."""
        return read_artifacts(job_id)

    def _get(self, job_id: JobRef) -> Request[J]:
        return get(path_of("/api/jobs/{}", id_of(job_id)), self.read)

    def _log(self, job_id: JobRef, attempt: int | None, tail_bytes: int | None) -> Request[str]:
        if tail_bytes is not None and tail_bytes <= 0:
            raise ForgeError("tail_bytes must be more than 0")
        headers = {"Accept": "text/plain"}
        if tail_bytes:
            headers["Range"] = f"bytes=-{tail_bytes}"
        path = path_of("/api/jobs/{}/logs", id_of(job_id))
        return Request("GET", path, str, {"attempt": attempt}, headers=headers, is_text=True)

    @operation
    def metrics(
        self, job_id: JobRef, *, attempt: int | None = None, max_points: int | None = None
    ) -> Request[JobMetrics]:
        """Reads the job's metrics over time: its progress, and the numbers that it reports.

        A job reports numbers by output lines that begin with `::forge`.
        """
        path = path_of("/api/jobs/{}/metrics", id_of(job_id))
        return get(path, JobMetrics, attempt=attempt, max_points=max_points)

    @operation
    def log_range(
        self, job_id: JobRef, *, start: int = 0, end: int | None = None, attempt: int | None = None
    ) -> Request[LogRange]:
        """Reads bytes of the log from `start` (inclusive) to `end` (exclusive).

        The result also has the log's total length. Beyond the log's end, `content` is empty.
        """
        if start < 0 or (end is not None and end <= start):
            raise ForgeError("start must not be negative, and end must be more than start")
        last = "" if end is None else end - 1
        headers = {"Accept": "text/plain", "Accept-Encoding": "identity"}
        headers["Range"] = f"bytes={start}-{last}"
        path = path_of("/api/jobs/{}/logs", id_of(job_id))
        query = {"attempt": attempt}
        return Request(
            "GET",
            path,
            LogRange.of,
            query,
            headers=headers,
            is_whole=True,
            other_statuses={HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE},
        )

    def _log_stream(self, job_id: JobRef, attempt: int | None) -> Following:
        path = path_of("/api/jobs/{}/logs", id_of(job_id))
        return Following(path, {"follow": True, "attempt": attempt})

    def _events(self, job_id: JobRef) -> Following:
        return Following(path_of("/api/jobs/{}/events", id_of(job_id)), {})
