"""Idempotency, pagination, unknown fields and secrets."""

import asyncio
import json
import logging
import pickle
import pydoc
import threading
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from sdk_support import KEY, Answer, Cut, FakeForge, Request, as_error, as_json

import forge
from forge import AsyncForge, Forge, ForgeAPIError, ForgeError, ForgeHTTPError, JobStatus
from forge.pull import Progress

JOB = {"job_id": "j1", "job_type": "generate", "status": "provisioning_worker"}


def keys_of(server: FakeForge) -> set[str | None]:
    return {request.headers.get("idempotency-key") for request in server.requests}


def failing(*faults: Answer | None) -> Any:  # noqa: ANN401 - a script
    """Returns a script: the first responses are `faults`, and each later response is a job.

    A fault of None breaks the connection.
    """
    left = list(faults)

    def script(_: Request) -> Answer:
        fault = left.pop(0) if left else as_json(JOB, 201)
        if fault is None:
            raise Cut
        return fault

    return script


FAULTS = (None, as_error(409, "request_in_flight"), as_error(500, "internal"), Answer(503, b"?"))


def test_a_creation_has_the_same_key_in_all_tries(server: FakeForge, client: Forge) -> None:
    server.script = failing(*FAULTS)
    assert client.generate(domain="law", num_samples=5).job_id == "j1"
    assert len(server.requests) == 5
    assert len(keys_of(server)) == 1 and None not in keys_of(server)
    assert {request.body for request in server.requests} == {b'{"domain":"law","num_samples":5}'}
    client.generate(domain="law", num_samples=5)
    assert len(keys_of(server)) == 2
    client.generate(domain="law", num_samples=5, idempotency_key="mine")
    assert "mine" in keys_of(server)


def test_a_creation_has_the_same_key_in_all_tries_async(
    server: FakeForge, no_pauses: list[float]
) -> None:
    server.script = failing(*FAULTS)

    async def run() -> str:
        async with AsyncForge(KEY, server.url) as client:
            return (await client.generate(domain="law", num_samples=5)).job_id

    assert asyncio.run(run()) == "j1"
    assert len(server.requests) == 5
    assert len(keys_of(server)) == 1 and None not in keys_of(server)
    assert len(no_pauses) == 4


def test_an_upload_is_sent_completely_in_each_try(server: FakeForge, client: Forge) -> None:
    dataset = {"artifact_id": "ds", "artifact_type": "dataset", "kind": "raw_dataset", "uri": "u"}
    dataset |= {"dataset_id": "ds", "dataset_uri": "u"}
    left = [None, Answer(503, b"?"), as_json(dataset, 201)]

    def script(_: Request) -> Answer:
        answer = left.pop(0)
        if answer is None:
            raise Cut
        return answer

    server.script = script
    content = b"a\n" * 500_000
    reported: list[int] = []
    client.datasets.upload(
        content, format="csv", on_progress=lambda at: reported.append(at.done_bytes)
    )
    assert [request.body for request in server.requests] == [content] * 3
    assert len(keys_of(server)) == 1
    [checksum] = {request.headers["x-checksum-sha256"] for request in server.requests}
    assert len(checksum) == 64
    assert reported[-1] == len(content)


def test_max_retries_and_with_options(server: FakeForge, client: Forge) -> None:
    server.script = lambda _: as_error(503, "unavailable")
    with pytest.raises(ForgeHTTPError) as raised:
        client.with_options(max_retries=1).status("j1")
    assert len(server.requests) == 2
    assert (raised.value.status, raised.value.code) == (503, "unavailable")


def test_time_outs_are_http_errors(server: FakeForge, client: Forge) -> None:
    def script(_: Request) -> Answer:
        import time

        time.sleep(0.3)
        return as_json(JOB)

    server.script = script
    with pytest.raises(ForgeHTTPError, match="ReadTimeout"):
        client.with_options(timeout=0.05, max_retries=0).status("j1")


@pytest.mark.parametrize("fault", [None, Answer(502, b"?"), as_error(500, "internal")])
def test_a_request_to_a_model_is_not_retried(
    server: FakeForge, client: Forge, fault: Answer | None
) -> None:
    server.script = failing(fault)
    with pytest.raises(ForgeHTTPError):
        client.deployments.ask("d", "chat/completions", {"messages": []})
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, forge.BadRequestError),
        (402, forge.PaymentRequiredError),
        (403, forge.PermissionDeniedError),
        (404, forge.NotFoundError),
        (409, forge.ConflictError),
        (410, forge.GoneError),
        (422, forge.UnprocessableEntityError),
        (418, ForgeAPIError),
    ],
)
def test_each_status_has_its_error(
    server: FakeForge, client: Forge, status: int, kind: type[ForgeAPIError]
) -> None:
    error = {"code": "no", "message": "no", "details": {"cap_usd": 1}}
    server.script = lambda _: as_json({"error": error}, status)
    with pytest.raises(kind) as raised:
        client.status("j1")
    assert type(raised.value) is kind
    assert raised.value.details == {"cap_usd": 1}
    copy = pickle.loads(pickle.dumps(raised.value))
    assert (type(copy), copy.code, str(copy)) == (kind, "no", str(raised.value))


def paged(server: FakeForge, count: int, most: int = 2) -> None:
    """Serves `count` jobs. `most`: maximum number of jobs per page."""

    def script(request: Request) -> Answer:
        query = parse_qs(urlsplit(request.path).query)
        start = int(query.get("after", ["0"])[0])
        end = min(count, start + min(most, int(query.get("limit", ["50"])[0])))
        jobs = [{**JOB, "job_id": f"j{n}"} for n in range(start, end)]
        has_more = end < count
        cursor = str(end) if has_more else None
        return as_json({"jobs": jobs, "has_more": has_more, "next_cursor": cursor})

    server.script = script


@pytest.mark.parametrize(("limit", "asked"), [(None, 3), (5, 3), (3, 2), (2, 1), (0, 0), (99, 3)])
def test_pages_are_fetched_as_needed(
    server: FakeForge, client: Forge, limit: int | None, asked: int
) -> None:
    paged(server, 5)
    found = [job.job_id for job in client.jobs.list(limit=limit)]
    assert found == [f"j{n}" for n in range(5)][:limit]
    assert len(server.requests) == asked
    listing = client.jobs.list(limit=limit)
    next(iter(listing), None)
    assert len(server.requests) == asked + min(asked, 1)

    async def run() -> list[str]:
        async with AsyncForge(KEY, server.url) as client:
            return [job.job_id async for job in client.jobs.list(limit=limit)]

    assert asyncio.run(run()) == found


@pytest.mark.parametrize("more", [{}, {"next_cursor": ""}, {"jobs": 3}])
def test_refuses_a_page_without_a_cursor(
    server: FakeForge, client: Forge, more: dict[str, object]
) -> None:
    server.script = lambda _: as_json({"jobs": [], "has_more": True, **more})
    with pytest.raises(ForgeHTTPError):
        list(client.jobs.list())


def test_refuses_a_page_that_leads_to_itself(server: FakeForge, client: Forge) -> None:
    server.script = lambda _: as_json({"jobs": [], "has_more": True, "next_cursor": "x"})
    with pytest.raises(ForgeHTTPError, match="leads to the same page"):
        list(client.jobs.list())


@pytest.mark.parametrize(
    ("raw", "more", "status"),
    [
        ("pending", {}, "pending"),
        ("provisioning_worker", {}, "pending"),
        ("assigned", {}, "pending"),
        ("running", {}, "running"),
        ("completed", {}, "completed"),
        ("failed", {}, "failed"),
        ("hibernating", {}, "pending"),
        ("evicted", {"completed_at": "2026-11-01T00:00:00.000Z"}, "failed"),
    ],
)
def test_maps_known_and_unknown_statuses(
    server: FakeForge, client: Forge, raw: str, more: dict[str, object], status: str
) -> None:
    server.script = lambda _: as_json({**JOB, "status": raw, "error_code": "new", **more})
    job = client.status("j1")
    assert (job.status, job.raw_status, job.error_code) == (status, raw, "new")
    assert job.status is JobStatus(status) and str(job.status) == status


def test_keeps_unknown_fields(server: FakeForge, client: Forge) -> None:
    server.script = lambda _: as_json({**JOB, "carbon_g": 7, "pending_reason": {"code": "moon"}})
    job: Any = client.status("j1")
    assert job.carbon_g == 7
    assert job.pending_reason.code == "moon"
    assert job.to_dict()["carbon_g"] == 7
    copy = pickle.loads(pickle.dumps(job))
    assert copy == job
    with pytest.raises(ForgeError, match="is not attached to a client"):
        copy.refresh()


def test_reprs_are_short_and_safe_in_a_notebook(server: FakeForge, client: Forge) -> None:
    server.script = lambda _: as_json({**JOB, "error": "<script>alert(1)</script>"})
    job = client.status("j1")
    assert repr(job).startswith("Job(job_id='j1', job_type='generate', status=pending, error=")
    assert "<script>" not in job._repr_html_() and "&lt;script&gt;" in job._repr_html_()


def test_no_key_is_reported(
    server: FakeForge, client: Forge, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.script = lambda _: as_json({"key_id": "k", "name": "n", "scope": "user", "key": KEY})
    made = client.api_keys.create("n")
    assert made.key == KEY
    said = [repr(client), repr(made), str(made), made._repr_html_(), repr(client._transport.wire)]
    server.script = lambda _: as_json({"key_id": 1, "name": [KEY], "scope": "user", "key": KEY})
    with pytest.raises(ForgeHTTPError, match="key_id") as raised:
        client.api_keys.create("n")
    said += [str(raised.value), repr(raised.value), caplog.text]
    assert "forge" in {record.name for record in caplog.records}
    assert not [text for text in said if KEY in text]


def test_accepts_both_field_sets_and_positional_arguments(server: FakeForge, client: Forge) -> None:
    server.script = lambda _: as_json(JOB, 201)
    client.generate(task="t", size=3, teacher="x", style="s")
    client.train("m", "s3://b/k", 5)
    client.train(model_id="m", dataset_uri="s3://b/k")
    client.train("m", "ds_1")
    client.distill("t", "s", "s3://b/k")
    client.evaluate(model_id="m", benchmark="b")
    bodies = [json.loads(request.body) for request in server.requests]
    assert bodies == [
        {"task": "t", "size": 3, "teacher": "x", "style": "s"},
        {"model": "m", "dataset_uri": "s3://b/k", "epochs": 5},
        {"model_id": "m", "dataset_uri": "s3://b/k", "epochs": 3},
        {"model": "m", "dataset_id": "ds_1", "epochs": 3},
        {"teacher_model": "t", "student_model": "s", "dataset_uri": "s3://b/k"},
        {"benchmark": "b", "model_id": "m"},
    ]


def test_does_not_send_invalid_requests(server: FakeForge, client: Forge) -> None:
    wrong: Any = client
    for call in (
        lambda: wrong.status("../keys"),
        lambda: wrong.generate(domain="x", num_samples=1, idempotency_key="a\nb"),
        lambda: wrong.generate(domain="x", num_samples=1, colour="red"),
        lambda: wrong.generate(domain="x", num_samples=1, tags="nightly"),
        lambda: list(wrong.jobs.list(created_after=datetime(2026, 1, 1))),
        lambda: wrong.datasets.upload(b"x"),
        lambda: wrong.deployments.ask("d", "../../api-keys"),
    ):
        with pytest.raises((ForgeError, TypeError)):
            call()
    assert not server.requests


def test_cancelling_a_task_ends_its_transfer(server: FakeForge, tmp_path: Path) -> None:
    server.set_files({"big": b"x" * 3_000_000})
    reported: list[str] = []

    async def run() -> None:
        async with AsyncForge(KEY, server.url) as client:
            loop = asyncio.get_running_loop()

            def cancel(at: Progress) -> None:
                reported.append(at.path)
                task.cancel()
                # The server sends the second half of the file only after `go_on` is set, so the
                # task is cancelled during the transfer.
                loop.call_soon(go_on.set)

            def hold(request: Request) -> None:
                if request.path.endswith("/files/big"):
                    server.go_on = go_on

            go_on = threading.Event()
            server.script = hold

            task = asyncio.ensure_future(client.artifacts.pull("ds_1", tmp_path, cancel))
            await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(run())
    assert reported and not list(tmp_path.iterdir())


def test_help_shows_the_parameters(client: Forge) -> None:
    shown = pydoc.plain(pydoc.render_doc(client.train))
    assert "dataset_id: 'str | None' = None, epochs: 'int' = 3" in shown
    assert "Trains a checkpoint" in shown and "self" not in shown
    undocumented = [
        f"{name}.{method}"
        for name, part in vars(client).items()
        for method in dir(part)
        if name != "_transport" and method[0] != "_" and not getattr(part, method).__doc__
    ]
    assert undocumented == []
