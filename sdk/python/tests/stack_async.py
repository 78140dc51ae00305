"""Tests `AsyncForge` with a real stack. test/e2e/sdk-python.test.ts runs it."""

import asyncio
import os
import secrets

from stack_worker import LoggingWorker

from forge import AsyncForge, JobFailedError, WaitTimeoutError

DATA = b'{"question": "1 + 1?", "answer": "2"}\n' * 500


async def jobs(client: AsyncForge) -> None:
    submitted = await asyncio.gather(
        *(client.generate(domain="law", num_samples=n, tags=["async"]) for n in range(1, 11))
    )
    done = await asyncio.gather(*(job.wait(timeout=60) for job in submitted))
    assert {job.job_id for job in done} == {job.job_id for job in submitted}
    listed = [job.job_id async for job in client.jobs.list(tag="async", page_size=3)]
    assert sorted(listed) == sorted(job.job_id for job in done)
    statuses = [event.raw_status async for event in done[0].events()]
    assert (statuses[0], statuses[-1]) == ("pending", "completed"), statuses
    [artifact] = await done[0].get_artifacts()
    assert artifact.kind == "raw_dataset"
    assert (await client.billing.record(done[0])).total_cost_usd == 0.3
    try:
        await (await client.audit("s3://b/fail", notes="fail")).wait(timeout=60)
        raise AssertionError("expected an error")
    except JobFailedError as error:
        assert str(error) == "asked to fail"
    job = await client.audit("s3://b/k", resources={"gpu": 1000})
    try:
        await job.wait(timeout=1)
        raise AssertionError("expected a time-out: no worker has 1,000 GPUs")
    except WaitTimeoutError:
        pass
    assert (await job.cancel()).error_code == "cancelled"


async def log(client: AsyncForge) -> None:
    tag = f"log-{secrets.token_hex(4)}"
    worker = await asyncio.to_thread(
        LoggingWorker, os.environ["SERVICE_BASE_URL"], os.environ["WORKER_KEY"], tag
    )
    job = await client.evaluate("ckpt_1", resources={"tags": [tag]})
    lines = [line async for line in job.logs(follow=True)]
    assert lines == ["first", "secönd", "last, without an end"], lines
    assert await job.logs(tail_bytes=3) == "end"
    part = await client.jobs.log_range(job, start=2, end=5)
    assert (part.start, part.text) == (2, (await job.logs())[2:5])
    await asyncio.to_thread(worker.join)


async def files(client: AsyncForge) -> None:
    progress: list[int] = []
    dataset = await client.datasets.upload(
        DATA, "async", format="jsonl", on_progress=lambda at: progress.append(at.done_bytes)
    )
    assert (dataset.num_rows, progress[-1]) == (500, len(DATA))
    pulled = await client.artifacts.pull(dataset.dataset_id, "async-down")
    assert (pulled.directory / "raw.jsonl").read_bytes() == DATA
    assert (await client.artifacts.verify(dataset.dataset_id)).ok


async def pipelines(client: AsyncForge) -> None:
    pipeline = await client.pipelines.create(
        steps=[{"name": "a", "job_type": "audit", "payload": {"dataset_uri": "s3://b/k"}}]
    )
    done = await client.pipelines.wait(pipeline.pipeline_id, 0.3, 60)
    assert done.step("a").status == "completed"


async def main() -> None:
    async with AsyncForge() as client:
        await asyncio.gather(jobs(client), log(client), files(client), pipelines(client))
        assert (await client.service.ping()).scope == "user"


asyncio.run(main())
print("all right")
