"""A lost response to a cancel or approval: whether the client retries, and the outcome."""

import asyncio
from typing import Any

import pytest
from sdk_support import KEY, Answer, Cut, FakeForge, Request, as_error, as_json

from forge import AsyncForge, ConflictError, Forge, ForgeHTTPError

JOB = {"job_id": "j1", "job_type": "generate"}


def cancelled_by(error_code: str | None) -> Any:  # noqa: ANN401 - a script
    """Returns a script: the first cancel gets no response, and the job ends with `error_code`."""
    paths: list[str] = []

    def script(request: Request) -> Answer:
        if request.method == "GET":
            return as_json({**JOB, "status": "failed", "error_code": error_code})
        paths.append(request.path)
        if len(paths) == 1:
            raise Cut
        return as_error(409, "job_already_finished")

    return script


def test_a_cancel_succeeds_after_a_lost_response(server: FakeForge, client: Forge) -> None:
    server.script = cancelled_by("cancelled")
    assert client.jobs.cancel("j1").error_code == "cancelled"

    async def run() -> str | None:
        async with AsyncForge(KEY, server.url) as client:
            return (await client.jobs.cancel("j1")).error_code

    server.script = cancelled_by("cancelled")
    assert asyncio.run(run()) == "cancelled"
    server.script = cancelled_by("job_error")
    with pytest.raises(ConflictError, match="job_already_finished"):
        client.jobs.cancel("j1")
    server.script = lambda _: as_error(409, "job_already_finished")
    with pytest.raises(ConflictError, match="job_already_finished"):
        client.jobs.cancel("j1")


def test_an_approval_without_a_step_is_not_retried(server: FakeForge, client: Forge) -> None:
    pipeline = {"pipeline_id": "pl_1", "status": "running"}
    for step, times in ((None, 1), ("deploy", 2)):
        answers: list[Answer | None] = [None, as_json(pipeline, 202)]

        def script(_: Request, answers: list[Answer | None] = answers) -> Answer:
            answer = answers.pop(0)
            if answer is None:
                raise Cut
            return answer

        server.script = script
        server.requests.clear()
        if step:
            assert client.pipelines.approve("pl_1", step).status == "running"
        else:
            with pytest.raises(ForgeHTTPError):
                client.pipelines.approve("pl_1")
        assert len(server.requests) == times
