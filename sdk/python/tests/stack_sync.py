"""Tests `Forge` with a real stack. test/e2e/sdk-python.test.ts runs it. Exits with 0 on success."""

import os
import secrets
from pathlib import Path

from stack_worker import LoggingWorker

from forge import (
    BadRequestError,
    ConflictError,
    Forge,
    JobFailedError,
    JobStatus,
    NotFoundError,
    UnprocessableEntityError,
    WaitTimeoutError,
)

DATA = b'{"question": "1 + 1?", "answer": "2"}\n' * 500


def jobs(client: Forge) -> str:
    key = secrets.token_hex(8)
    job = client.generate(domain="law", num_samples=10, tags=["sdk"], idempotency_key=key)
    assert job.status in (JobStatus.PENDING, JobStatus.RUNNING), job
    again = client.generate(domain="law", num_samples=10, tags=["sdk"], idempotency_key=key)
    assert again.job_id == job.job_id
    try:
        client.generate(domain="law", num_samples=11, tags=["sdk"], idempotency_key=key)
        raise AssertionError("another request by the same key")
    except UnprocessableEntityError as error:
        assert error.code == "idempotency_key_reused", error
    seen: list[str | None] = []
    done = job.wait(timeout=60, on_event=lambda event: seen.append(event.raw_status))
    assert done.status == "completed" and done.result, done
    statuses = [event.raw_status for event in client.jobs.events(job)]
    assert (statuses[0], statuses[-1]) == ("pending", "completed"), statuses
    assert [each for each in seen if each] == statuses[: len(seen)] or seen[-1] == "completed"
    [artifact] = client.get_artifacts(job.job_id)
    assert artifact.artifact_id == done.result["dataset_id"]
    assert client.billing.record(job).total_cost_usd == 0.3
    assert [attempt.outcome for attempt in client.jobs.attempts(job)] == ["completed"]
    assert client.train("m", artifact.artifact_id).payload["epochs"] == 3
    return job.job_id


def refusals(client: Forge, job_id: str) -> None:
    try:
        client.generate(domain="law", num_samples=-1)
        raise AssertionError("a size of -1")
    except BadRequestError as error:
        assert error.param and error.request_id, error
    for call, kind in [
        (lambda: client.jobs.cancel(job_id), ConflictError),
        (lambda: client.status("job_that_never_was"), NotFoundError),
    ]:
        try:
            call()
            raise AssertionError(kind)
        except kind:
            pass
    try:
        client.audit("s3://b/fail", notes="fail").wait(timeout=60)
        raise AssertionError("expected an error")
    except JobFailedError as error:
        assert str(error) == "asked to fail" and error.job.error_code == "job_error"


def waiting_and_cancel(client: Forge) -> None:
    job = client.audit("s3://b/k", resources={"gpu": 1000})
    try:
        client.wait(job.job_id, timeout=1)
        raise AssertionError("expected a time-out: no worker has 1,000 GPUs")
    except WaitTimeoutError:
        pass
    reason = job.refresh().pending_reason
    assert reason and reason.code == "no_worker_fits", reason
    assert job.cancel().error_code == "cancelled"


def log(client: Forge) -> None:
    tag = f"log-{secrets.token_hex(4)}"
    worker = LoggingWorker(os.environ["SERVICE_BASE_URL"], os.environ["WORKER_KEY"], tag)
    job = client.evaluate("ckpt_1", resources={"tags": [tag]})
    assert list(job.logs(follow=True)) == ["first", "secönd", "last, without an end"]
    assert job.wait(timeout=30).is_final
    assert job.logs() == "first\nsecönd\nlast, without an end"
    assert job.logs(tail_bytes=3) == "end"
    whole = client.jobs.log_range(job)
    assert (whole.start, whole.total, whole.text) == (0, len(whole.content), job.logs())
    part = client.jobs.log_range(job, start=2, end=5)
    assert (part.start, part.total, part.content) == (2, whole.total, whole.content[2:5])
    beyond = client.jobs.log_range(job, start=whole.total)
    assert (beyond.start, beyond.total, beyond.content) == (whole.total, whole.total, b"")
    worker.join()


def files(client: Forge) -> None:
    Path("up.jsonl").write_bytes(DATA)
    progress: list[int] = []
    dataset = client.datasets.upload(
        "up.jsonl", on_progress=lambda at: progress.append(at.done_bytes)
    )
    assert (dataset.num_rows, progress[-1]) == (500, len(DATA))
    assert list(dataset.columns) == ["question", "answer"]
    pulled = client.artifacts.pull(dataset.dataset_id, "down")
    assert pulled.verified and (Path("down") / "raw.jsonl").read_bytes() == DATA
    assert client.artifacts.verify(dataset.dataset_id).ok
    assert client.artifacts.download(dataset.dataset_id, "raw.jsonl", "one").read_bytes() == DATA
    assert client.artifacts.archive(dataset.dataset_id, "all.tar").stat().st_size > len(DATA)
    assert client.artifacts.preview(dataset.dataset_id).num_rows == 500
    assert dataset.artifact_id in client.artifacts.lineage(dataset.dataset_id).nodes
    client.artifacts.delete(dataset.dataset_id)


def pipelines(client: Forge) -> None:
    seen: list[str] = []
    pipeline = client.pipelines.run(
        "synthetic",
        {"generate": {"domain": "law", "num_samples": 10}, "train": {"model": "m"}},
        skip=["audit", "distill"],
        gates=[{"step": "evaluate", "condition": "scores.overall >= 0.7"}],
        approvals=["deploy"],
    )
    pipeline = client.pipelines.wait(
        pipeline.pipeline_id, 0.3, 60, lambda each: seen.append(each.status), stop_at_approval=True
    )
    assert pipeline.status == "waiting_approval" and seen, pipeline
    client.pipelines.approve(pipeline.pipeline_id, "deploy")
    pipeline = client.pipelines.wait(pipeline.pipeline_id, 0.3, 60)
    gate = pipeline.step("evaluate").gate
    assert pipeline.cost_usd > 0 and gate and gate.passed, pipeline
    assert len(list(client.jobs.list(pipeline_id=pipeline.pipeline_id, page_size=1))) == 4
    [deployment] = client.deployments.list(status="active", limit=1)
    assert client.deployments.stop(deployment.deployment_id).status in ("stopping", "stopped")


def the_rest(client: Forge) -> None:
    assert client.service.ping().scope == "user"
    assert client.service.is_alive() and client.service.is_ready().ready
    assert client.billing.summary().total_cost_usd > 0
    assert client.billing.estimate("audit", {"dataset_uri": "s3://b/k"}).high_usd >= 0
    assert client.billing.set_budget(1000).budget
    assert client.billing.set_budget(None).user_id
    assert client.billing.export().splitlines()
    assert client.billing.rates().rate_card == "default"
    key = client.api_keys.create("sdk", scope="worker")
    assert key.key and key.key not in repr(key) + str(key) + key._repr_html_()
    assert key.key_id in [each.key_id for each in client.api_keys.list()]
    assert client.api_keys.revoke(key.key_id).revoked
    worker = next(iter(client.workers.list()))
    assert client.workers.get(worker.worker_id).bootstrap is None


with Forge() as client:
    refusals(client, jobs(client))
    waiting_and_cancel(client)
    log(client)
    files(client)
    pipelines(client)
    the_rest(client)
print("all right")
