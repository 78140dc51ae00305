"""Both clients support every operation of the API, with valid parameters and responses."""

import asyncio
import inspect
import json
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import openapi
import pytest
from sdk_support import KEY, Answer, FakeForge, Request

from forge import AsyncForge, Forge, ForgeHTTPError

Call = Callable[[Any], Any]

TABLE = b"a\n1\n"

CALLS: dict[str, Call] = {
    "generate": lambda c: c.generate("law", 10, resources={"gpu": 1}, tags=["x"], notes="n"),
    "audit": lambda c: c.audit("s3://b/k", priority=1, params={"a": 1}),
    "distill": lambda c: c.distill(dataset_id="ds", teacher="t", student_model="s"),
    "train": lambda c: c.train(model="m", dataset_id="ds", timeout_s=9, max_attempts=1),
    "evaluate": lambda c: c.evaluate("ck", "bench"),
    "deploy": lambda c: c.deploy("ck", "eu", min_replicas=1, max_replicas=2),
    "retryJob": lambda c: c.jobs.retry("j"),
    "listJobs": lambda c: c.jobs.list(
        status=["pending"],
        job_type="train",
        tag="x",
        worker_id="w",
        pipeline_id="p",
        created_after="2026-01-01T00:00:00Z",
        created_before="2026-01-01T00:00:00Z",
        completed_after="2026-01-01T00:00:00Z",
        completed_before="2026-01-01T00:00:00Z",
        created_by="k",
        error_code=["timeout"],
        q="x",
        user_id="u",
        page_size=7,
    ),
    "countJobs": lambda c: c.jobs.counts(ended_after="2026-01-01T00:00:00Z", user_id="u"),
    "getJobThroughput": lambda c: c.jobs.throughput(
        since="2026-01-01T00:00:00Z",
        until="2026-01-02T00:00:00Z",
        bucket_s=3600,
        job_type=["train"],
        user_id="u",
    ),
    "getJob": lambda c: c.status("j"),
    "listJobAttempts": lambda c: c.jobs.attempts("j"),
    "listJobArtifacts": lambda c: c.get_artifacts("j"),
    "cancelJob": lambda c: c.jobs.cancel("j"),
    "getJobLog": lambda c: c.jobs.logs("j", attempt=1, tail_bytes=9),
    "getJobMetrics": lambda c: c.jobs.metrics("j", attempt=1, max_points=9),
    "streamJobEvents": lambda c: c.jobs.events("j"),
    "streamEvents": lambda c: c.events(limit=1),
    "createPipeline": lambda c: c.pipelines.run("synthetic", {"train": {"model": "m"}}, name="n"),
    "estimatePipeline": lambda c: c.pipelines.estimate({"template": "synthetic", "params": {}}),
    "listPipelines": lambda c: c.pipelines.list(status="running", tag="x", q="n", user_id="u"),
    "setPipelineBudget": lambda c: c.pipelines.set_budget("p", 9, warning_usd=8),
    "getPipeline": lambda c: c.pipelines.get("p"),
    "cancelPipeline": lambda c: c.pipelines.cancel("p"),
    "approvePipelineStep": lambda c: c.pipelines.approve("p", "deploy", note="good"),
    "resumePipeline": lambda c: c.pipelines.resume("p", from_step="train", budget_usd=9),
    "listArtifacts": lambda c: c.artifacts.list(
        type="dataset", kind="raw_dataset", job_id="j", source="s", name="n", q="x", deleted=True
    ),
    "getArtifact": lambda c: c.artifacts.get("a"),
    "deleteArtifact": lambda c: c.artifacts.delete("a"),
    "getManifest": lambda c: c.artifacts.manifest("a"),
    "listFiles": lambda c: c.artifacts.files("a"),
    "getFile": lambda c: c.artifacts.verify("a"),
    "getArchive": lambda c: c.artifacts.archive("a", Path("a.tar")),
    "previewArtifact": lambda c: c.artifacts.preview("a", "raw.csv"),
    "createDownloadTicket": lambda c: c.artifacts.download_ticket("a", "raw.csv"),
    "getLineage": lambda c: c.artifacts.lineage("a"),
    "getStorage": lambda c: c.artifacts.storage("2026-11"),
    "getRetention": lambda c: c.artifacts.retention(user_id="u"),
    "setRetention": lambda c: c.artifacts.set_retention([{"kind": "checkpoint", "keep_days": 9}]),
    "uploadDataset": lambda c: c.datasets.upload(TABLE, "n", format="csv"),
    "listDeployments": lambda c: c.deployments.list(status="active"),
    "getDeployment": lambda c: c.deployments.get("d"),
    "scaleDeployment": lambda c: c.deployments.scale("d", max_replicas=2),
    "stopDeployment": lambda c: c.deployments.stop("d"),
    "askGet": lambda c: c.deployments.ask("d", "models"),
    "askPost": lambda c: c.deployments.ask("d", "chat/completions", {"messages": []}),
    "askDelete": lambda c: c.deployments.ask("d", "files/f", method="DELETE"),
    "getBillingSummary": lambda c: c.billing.summary("2026-11", user_id="u"),
    "getDailyBilling": lambda c: c.billing.daily("2026-11", user_id="u"),
    "listBillingRecords": lambda c: c.billing.records(
        period="2026-11", job_type=["train"], sort="cost", user_id="u"
    ),
    "getBillingRecord": lambda c: c.billing.record("j"),
    "getRates": lambda c: c.billing.rates(user_id="u"),
    "estimateCost": lambda c: c.billing.estimate("audit", {"dataset_uri": "s3://b/k"}),
    "exportBilling": lambda c: c.billing.export("2026-11"),
    "getBudget": lambda c: c.billing.budget(),
    "setBudget": lambda c: c.billing.set_budget(None, warning_usd=5, user_id="u"),
    "listAudit": lambda c: c.billing.audit(),
    "listRateCards": lambda c: c.rate_cards.list(),
    "createRateCard": lambda c: c.rate_cards.create("n", {"basis": "work"}, effective_from="x"),
    "assignRateCard": lambda c: c.users.set_rate_card("u", "n", effective_from="x"),
    "ping": lambda c: c.service.ping(),
    "getLimits": lambda c: c.service.limits(user_id="u"),
    "createApiKey": lambda c: c.api_keys.create("n", scope="worker", expires_at="x"),
    "createSession": lambda c: c.api_keys.create_session(),
    "listApiKeys": lambda c: c.api_keys.list(sessions=True),
    "revokeApiKey": lambda c: c.api_keys.revoke("k"),
    "createUser": lambda c: c.users.create("n", user_id="u"),
    "listUsers": lambda c: c.users.list(),
    "setPaymentCustomer": lambda c: c.users.set_payment_customer("u", None),
    "listWorkers": lambda c: c.workers.list(status=["idle"], gpu="a100", q="x", user_id="u"),
    "getFleet": lambda c: c.workers.summary(user_id="u"),
    "getDeploymentStats": lambda c: c.deployments.stats("d", bucket_s=60, user_id="u"),
    "getWorkerSamples": lambda c: c.workers.samples("w", since="2026-01-01T00:00:00Z", bucket_s=60),
    "undrainWorker": lambda c: c.workers.undrain("w"),
    "getWorker": lambda c: c.workers.get("w"),
    "decommissionWorker": lambda c: c.workers.remove("w"),
    "drainWorker": lambda c: c.workers.drain("w"),
    "resetWorker": lambda c: c.workers.reset("w"),
    "bootstrapWorker": lambda c: c.workers.bootstrap("w", ssh_host_key="k"),
    "registerWorker": lambda c: c.workers.register(
        "h", "u", gpu_count=1, gpu_type="A100", ssh_port=22, tags=["x"], worker_id="w"
    ),
    "isAlive": lambda c: c.service.is_alive(),
    "isReady": lambda c: c.service.is_ready(),
    "getOpenApi": lambda c: c.service.openapi(),
}

NOT_FOR_USERS = {
    "downloadByTicket",
    "getMetrics",
    "heartbeat",
    "nextJob",
    "jobResult",
    "appendJobLog",
    "uploadArtifactFile",
    "uploadCheckpoint",
    "downloadJobInput",
}
"""Operations without a method in the SDK: for workers, Prometheus, and links in a browser."""


def _examples_of_job_types() -> dict[str, Call]:
    """Returns one call for every job type that is not in CALLS.

    The call submits the first example of its job type.
    """
    calls: dict[str, Call] = {}
    for name, (_, path, operation) in openapi.operations().items():
        if name not in CALLS and path == f"/api/jobs/{name}":
            examples = operation["requestBody"]["content"]["application/json"]["examples"]
            body = next(iter(examples.values()))["value"]
            calls[name] = lambda c, name=name, body=body: getattr(c, name)(**body)  # type: ignore[misc]
    return calls


CALLS |= _examples_of_job_types()


def test_covers_all_operations() -> None:
    assert set(openapi.operations()) == set(CALLS) | NOT_FOR_USERS


def as_documented(request: Request, *, full: bool) -> Answer:
    found = openapi.operation_of(request.method, urlsplit(request.path).path)
    assert found, f"{request.method} {request.path} is no operation"
    name, operation = found
    if name == "streamJobEvents":
        data = json.dumps({"job_id": "j", "status": "completed"})
        body = f"id: 1\nevent: status\ndata: {data}\n\n".encode()
        return Answer(body=body, headers={"Content-Type": "text/event-stream"})
    if name == "streamEvents":
        body = b'id: 1\nevent: ready\ndata: {"resumed": false}\n\n'
        return Answer(body=body, headers={"Content-Type": "text/event-stream"})
    code, answer = next(
        (code, answer) for code, answer in operation["responses"].items() if code.startswith("2")
    )
    if request.path == "/api/workers/register":
        code, answer = "201", operation["responses"]["201"]
        answer = {"content": {"application/json": {"schema": {"anyOf": [_ssh_form(answer)]}}}}
    content = answer.get("content", {}).get("application/json")
    if content is None:
        return Answer(int(code), b"text")
    body = openapi.sample(content["schema"], full=full) or {}
    if isinstance(body, dict) and "has_more" in body:
        body["has_more"] = False
    return Answer(int(code), json.dumps(body).encode())


def _ssh_form(answer: dict[str, Any]) -> dict[str, Any]:
    form: dict[str, Any] = answer["content"]["application/json"]["schema"]["anyOf"][1]
    return form


def require_documented(request: Request) -> None:
    """Checks that the API documents all parameters and fields of the request."""
    found = openapi.operation_of(request.method, urlsplit(request.path).path)
    assert found
    _, operation = found
    known = {each["name"] for each in operation.get("parameters", []) if each["in"] == "query"}
    assert set(parse_qs(urlsplit(request.path).query)) <= known
    has_key = any(each["name"] == "Idempotency-Key" for each in operation.get("parameters", []))
    assert ("idempotency-key" in request.headers) == has_key
    schema = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    if schema.get("schema") and request.headers.get("content-type") == "application/json":
        fields = set(json.loads(request.body))
        assert fields <= _fields_of(schema["schema"]) or not _fields_of(schema["schema"])


def _fields_of(schema: dict[str, Any]) -> set[str]:
    if "$ref" in schema:
        name = schema["$ref"].split("/")[-1]
        return _fields_of(openapi.document()["components"]["schemas"][name])
    inner = schema.get("anyOf", []) + schema.get("oneOf", [])
    return set(schema.get("properties", {})).union(*map(_fields_of, inner))


def take(result: object) -> None:
    if isinstance(result, Iterator) or type(result).__name__ == "Listing":
        list(result)  # type: ignore[call-overload]


async def take_async(result: Any) -> None:  # noqa: ANN401 - any result
    if inspect.isawaitable(result):
        await result
    elif isinstance(result, AsyncIterator) or type(result).__name__ == "AsyncListing":
        async for _ in result:
            pass


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("name", CALLS)
def test_operation(
    server: FakeForge,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    is_async: bool,
    full: bool,
) -> None:
    monkeypatch.chdir(tmp_path)
    server.script = lambda request: as_documented(request, full=full)

    async def run() -> None:
        async with AsyncForge(KEY, server.url) as client:
            await take_async(CALLS[name](client))

    try:
        if is_async:
            asyncio.run(run())
        else:
            with Forge(KEY, server.url) as client:
                take(CALLS[name](client))
    except ForgeHTTPError as error:
        # Only `getFile` may fail, because the sample file does not match the sample manifest.
        assert name == "getFile", error
    asked = [
        openapi.operation_of(request.method, urlsplit(request.path).path)
        for request in server.requests
    ]
    assert name in [found[0] for found in asked if found] or (name == "getFile" and not full)
    for request in server.requests:
        require_documented(request)
