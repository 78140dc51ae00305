"""A wait ends at its time-out, even if the server does not respond."""

import asyncio
import socket
from collections.abc import Iterator
from time import monotonic

import pytest
from sdk_support import KEY, Answer, FakeForge, Request, as_json

from forge import AsyncForge, Forge, ForgeError, WaitTimeoutError

WAITING = {"job_id": "job_1", "job_type": "audit", "status": "pending"}


@pytest.fixture
def closed_port() -> Iterator[str]:
    """An address that refuses connections."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    yield f"http://127.0.0.1:{port}"


@pytest.fixture
def silent_server() -> Iterator[str]:
    """An address that accepts connections and never responds."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def durations(url: str) -> Iterator[float]:
    """Waits up to 1.5 s for a job, then for a pipeline. Yields the seconds that each wait took."""
    with Forge(KEY, url) as client:
        for wait in (client.wait, client.pipelines.wait):
            began_s = monotonic()
            with pytest.raises(WaitTimeoutError, match="not known to have ended"):
                wait("job_1", timeout=1.5)
            yield monotonic() - began_s


@pytest.mark.parametrize("place", ["closed_port", "silent_server"])
def test_an_unresponsive_server(request: pytest.FixtureRequest, place: str) -> None:
    for took_s in durations(request.getfixturevalue(place)):
        assert 1.4 < took_s < 4


def test_an_unresponsive_server_async(silent_server: str) -> None:
    async def run() -> None:
        async with AsyncForge(KEY, silent_server) as client:
            with pytest.raises(WaitTimeoutError):
                await client.wait("job_1", timeout=1.5)

    began_s = monotonic()
    asyncio.run(run())
    assert monotonic() - began_s < 4


def test_a_server_that_stops_during_the_wait(server: FakeForge) -> None:
    def script(request: Request) -> Answer:
        known = not request.path.endswith("/events") and len(server.requests) == 1
        return as_json(WAITING) if known else Answer(503, b"", {"Retry-After": "1"})

    server.script = script
    began_s = monotonic()
    with Forge(KEY, server.url) as client, pytest.raises(WaitTimeoutError, match="is pending"):
        client.wait("job_1", poll_interval=0.2, timeout=2)
    assert 1.9 < monotonic() - began_s < 5


@pytest.mark.parametrize("timeout", [-1.0, float("nan")])
def test_refuses_an_invalid_timeout(client: Forge, timeout: float) -> None:
    with pytest.raises(ForgeError, match="timeout must not be negative"):
        client.wait("job_1", timeout=timeout)


def test_waits_through_maintenance(server: FakeForge, no_pauses: list[float]) -> None:
    answers = [Answer(503, b"", {"Retry-After": "120"})] * 3

    def script(_: Request) -> Answer:
        done = as_json({**WAITING, "status": "completed", "completed_at": "2026-01-01T00:00:00Z"})
        return answers.pop() if answers else done

    server.script = script
    with Forge(KEY, server.url) as client:
        assert client.wait("job_1").is_final
    assert no_pauses == [60, 60, 60]


def test_more_waits_than_pooled_connections(server: FakeForge) -> None:
    async def run() -> None:
        async with AsyncForge(KEY, server.url) as client:
            await asyncio.gather(*(client.wait("job_1", timeout=30) for _ in range(130)))

    ended = {**WAITING, "status": "completed", "completed_at": "2026-01-01T00:00:00Z"}
    events = b"id: 1\nevent: status\ndata: " + b'{"job_id": "job_1", "status": "completed"}\n\n'
    asked = 0

    def script(request: Request) -> Answer:
        nonlocal asked
        if request.path.endswith("/events"):
            return Answer(200, events, {"Content-Type": "text/event-stream"})
        asked += 1
        return as_json(WAITING if asked <= 130 else ended)

    server.script = script
    asyncio.run(run())


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\udcff", {1, 2}])
def test_does_not_send_values_that_json_cannot_represent(
    server: FakeForge, client: Forge, value: object
) -> None:
    with pytest.raises(ForgeError, match="can't be sent as JSON"):
        client.audit("s3://b/k", params={"x": value})
    assert not server.requests


def test_a_cancelled_upload_ends_immediately(silent_server: str) -> None:
    async def run() -> None:
        async with AsyncForge(KEY, silent_server) as client:
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(client.datasets.upload(b"{}\n", "x", format="jsonl"), 0.5)

    began_s = monotonic()
    asyncio.run(run())
    assert monotonic() - began_s < 3
