"""A worker that a test controls step by step, for tests with a real stack."""

from typing import Any

import httpx2

DispatchedJob = dict[str, Any]


class SteeredWorker:
    """A worker with one GPU. It polls for a job only when `take` is called."""

    def __init__(self, base_url: str, worker_key: str, worker_id: str) -> None:
        self._http = httpx2.Client(
            base_url=base_url, headers={"X-Service-Api-Key": worker_key}, timeout=40
        )
        self._id = worker_id
        gpu = {"name": "NVIDIA A100-SXM4-80GB", "memory_gb": 80}
        self._post("register", gpu=gpu, tags=[], version="1.0")

    def take(self, job_type: str) -> DispatchedJob:
        """Polls for the next job. Fails if the job has another type."""
        job = self._post("next_job", wait_seconds=20)
        assert job.get("job_type") == job_type, job
        return job

    def progress(self, job: DispatchedJob, progress: float) -> None:
        self._post(
            "heartbeat",
            status="busy",
            progress=progress,
            job_id=job["job_id"],
            attempt=job["attempt"],
            gpu={"util": 90, "mem_used": 40, "mem_total": 80},
        )

    def log(self, job: DispatchedJob, start: int, text: str) -> None:
        content = text.encode()
        span = f"bytes {start}-{start + len(content) - 1}/*"
        self._http.patch(
            f"/worker/jobs/{job['job_id']}/log",
            params={"worker_id": self._id, "attempt": job["attempt"]},
            content=content,
            headers={"Content-Range": span, "Content-Type": "text/plain"},
        ).raise_for_status()

    def complete(self, job: DispatchedJob, metrics: dict[str, float], **result: object) -> None:
        self._end(job, status="completed", result=result, metrics=metrics)

    def fail(self, job: DispatchedJob, error: str) -> None:
        self._end(job, status="failed", error=error)

    def close(self) -> None:
        self._http.close()

    def _end(self, job: DispatchedJob, **fields: object) -> None:
        self._post("job_result", job_id=job["job_id"], **fields)

    def _post(self, name: str, **fields: object) -> DispatchedJob:
        answer = self._http.post(f"/api/workers/{name}", json={"worker_id": self._id, **fields})
        assert answer.is_success, answer.text
        found: DispatchedJob = answer.json()
        return found
