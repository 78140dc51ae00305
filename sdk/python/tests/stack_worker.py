"""A worker that writes a log and reports progress, for a test against a real stack."""

import threading
from typing import Any

import httpx2


class LoggingWorker:
    """Registers with a tag, and runs one evaluation job that requires this tag."""

    def __init__(self, base_url: str, worker_key: str, tag: str) -> None:
        self._http = httpx2.Client(
            base_url=base_url, headers={"X-Service-Api-Key": worker_key}, timeout=40
        )
        self._id = f"worker-{tag}"
        self._post(
            "register",
            gpu={"name": "cpu", "memory_gb": 0},
            tags=[tag],
            job_types=["evaluate"],  # excludes the test's other jobs, which require no tag
            version="1.0",
        )
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def join(self) -> None:
        self._thread.join(30)
        assert not self._thread.is_alive()
        self._http.close()

    def _work(self) -> None:
        job = self._post("next_job", wait_seconds=30)
        log = "first\nsecönd\nlast, without an end".encode()
        half = log.index(b"\n") + 4
        self._append(job, 0, log[:half])
        self._post("heartbeat", status="busy", progress=0.5, job_id=job["job_id"], attempt=1)
        self._append(job, half, log[half:])
        self._post(
            "job_result",
            job_id=job["job_id"],
            status="completed",
            result={},
            metrics={"samples_evaluated": 100},
        )

    def _append(self, job: dict[str, Any], start: int, content: bytes) -> None:
        span = f"bytes {start}-{start + len(content) - 1}/*"
        self._http.patch(
            f"/worker/jobs/{job['job_id']}/log",
            params={"worker_id": self._id, "attempt": job["attempt"]},
            content=content,
            headers={"Content-Range": span, "Content-Type": "text/plain"},
        ).raise_for_status()

    def _post(self, name: str, **fields: object) -> dict[str, Any]:
        answer = self._http.post(f"/api/workers/{name}", json={"worker_id": self._id, **fields})
        answer.raise_for_status()
        found: dict[str, Any] = answer.json()
        return found
