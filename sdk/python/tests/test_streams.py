"""Events and logs across interruptions, and waiting for jobs."""

import asyncio
import json
from collections.abc import Callable

import pytest
from sdk_support import KEY, Answer, Cut, FakeForge, Request, as_error, as_json

from forge import (
    AsyncForge,
    Forge,
    ForgeError,
    ForgeHTTPError,
    JobFailedError,
    NotFoundError,
    WaitTimeoutError,
    sse,
)
from forge.sse import EventDecoder, ServerSentEvent

STREAM = {"Content-Type": "text/event-stream; charset=utf-8"}
STATUSES = ["pending", "assigned", "running", "completed"]


def job(status: str, **more: object) -> Answer:
    return as_json({"job_id": "j1", "job_type": "audit", "status": status, **more})


def event(number: int) -> bytes:
    data = json.dumps({"job_id": "j1", "status": STATUSES[number - 1], "new": [1]})
    return f"id: {number}\nevent: status\ndata: {data}\n\n".encode()


PROGRESS = b'event: progress\ndata: {"job_id": "j1", "progress": 0.5}\n\n'
OTHER = b'event: weather\ndata: {"job_id": "j1", "sun": true}\n\n: still here\n\n'


class Story:
    """A job whose event stream is interrupted again and again.

    `pieces`: the number of events that each connection delivers. None: the connection gets no
    response. With `half`, each connection also delivers a part of the next event.
    """

    def __init__(self, *pieces: int | None, half: bool = False) -> None:
        self.pieces = list(pieces)
        self.half = half
        self.resumed: list[str | None] = []
        self.asked = 0

    def __call__(self, request: Request) -> Answer:
        if not request.path.endswith("/events"):
            self.asked += 1
            return job("completed" if "3" in str(self.resumed[-1:]) else "running")
        last = request.headers.get("last-event-id")
        self.resumed.append(last)
        seen = int(last or 0)
        if seen == len(STATUSES):
            return Answer(204, b"")
        piece = self.pieces.pop(0) if self.pieces else len(STATUSES)
        if piece is None:
            raise Cut
        whole = [event(number) for number in range(seen + 1, len(STATUSES) + 1)]
        body = b"retry: 1000\n\n" + PROGRESS + OTHER + b"".join(whole)
        sent = b"retry: 1000\n\n" + PROGRESS + OTHER + b"".join(whole[:piece])
        return Answer(200, body, STREAM, cut_after=len(sent) + (20 if self.half else 0))


@pytest.mark.parametrize("half", [False, True])
def test_events_resume_after_the_last_received_one(
    server: FakeForge, client: Forge, half: bool
) -> None:
    server.script = story = Story(1, None, 2, 0, None, half=half)
    found = list(client.jobs.events("j1"))
    statuses = [each.raw_status for each in found if each.event == "status"]
    assert statuses == STATUSES
    assert story.resumed[:3] == [None, "1", "1"] and story.resumed[-1] == "3"
    assert 0.5 in [each.progress for each in found]


def test_events_async(server: FakeForge) -> None:
    server.script = Story(1, None, 2)

    async def run() -> list[str | None]:
        async with AsyncForge(KEY, server.url) as client:
            found = [each async for each in client.jobs.events("j1")]
            return [each.raw_status for each in found if each.event == "status"]

    assert asyncio.run(run()) == STATUSES


def test_an_ended_job_has_no_further_events(server: FakeForge, client: Forge) -> None:
    server.script = lambda _: Answer(204, b"")
    assert list(client.jobs.events("j1")) == []


@pytest.mark.parametrize(
    ("answer", "kind"),
    [(as_error(404, "job_not_found"), NotFoundError), (Answer(200, b"<html>"), ForgeHTTPError)],
)
def test_refuses_invalid_events(
    server: FakeForge, client: Forge, answer: Answer, kind: type[ForgeError]
) -> None:
    server.script = lambda _: answer
    with pytest.raises(kind):
        list(client.jobs.events("j1"))
    assert len(server.requests) == 1


def log_story() -> Callable[[Request], Answer]:
    text = "one\ntwo\u2028two\n".encode()

    def chunk(attempt: int, start: int, end: int) -> bytes:
        data = {"attempt": attempt, "offset": start, "text": text[start:end].decode()}
        return f"id: {attempt}-{end}\nevent: log\ndata: {json.dumps(data)}\n\n".encode()

    def script(request: Request) -> Answer:
        assert "follow=true" in request.path
        last = request.headers.get("last-event-id")
        if last is None:
            return Answer(200, chunk(1, 0, 6) + b"x" * 99, STREAM, cut_after=len(chunk(1, 0, 6)))
        if last == "1-6":
            return Answer(200, chunk(1, 6, len(text)) + chunk(2, 0, 3), STREAM)
        assert last == "2-3"
        return Answer(200, b'event: end\ndata: {"status": "completed"}\n\n', STREAM)

    return script


def test_a_log_is_followed_line_by_line(server: FakeForge, client: Forge) -> None:
    server.script = log_story()
    assert list(client.jobs.logs("j1", follow=True)) == ["one", "two\u2028two", "one"]

    async def run() -> list[str]:
        async with AsyncForge(KEY, server.url) as client:
            return [line async for line in client.jobs.logs("j1", follow=True)]

    server.script = log_story()
    assert asyncio.run(run()) == ["one", "two\u2028two", "one"]


def waited(server: FakeForge, client: Forge, *, is_async: bool, **options: float) -> str:
    async def run() -> str:
        async with AsyncForge(KEY, server.url) as client:
            return (await client.wait("j1", **options)).job_id

    return asyncio.run(run()) if is_async else client.wait("j1", **options).job_id


@pytest.mark.parametrize("is_async", [False, True])
def test_wait_uses_events_and_polls_rarely(
    server: FakeForge, client: Forge, no_pauses: list[float], is_async: bool
) -> None:
    server.script = story = Story(2, None, 3)
    ended: list[bool] = []

    def script(request: Request) -> Answer:
        if request.path.endswith("/events"):
            answer = story(request)
            ended.append(story.resumed[-1] is not None and len(story.resumed) >= 3)
            return answer
        return job("completed" if ended and ended[-1] else "running")

    server.script = script
    assert waited(server, client, is_async=is_async) == "j1"
    assert story.resumed == [None, "2", "2"]
    assert len(server.requests) == 7


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    "events", [as_error(404, "no"), as_error(429, "rate_limited"), Answer(200, b"<html>"), None]
)
def test_wait_polls_if_there_are_no_events(
    server: FakeForge,
    client: Forge,
    no_pauses: list[float],
    is_async: bool,
    events: Answer | None,
) -> None:
    answers = ["pending", "running", "running", "running", "completed"]

    def script(request: Request) -> Answer:
        if request.path.endswith("/events"):
            if events is None:
                raise Cut
            return events
        return job(answers.pop(0))

    server.script = script
    assert waited(server, client, is_async=is_async, poll_interval=30) == "j1"
    # Each pause is the poll interval minus the time since the last poll.
    assert all(25 < pause <= 30 for pause in no_pauses) and len(no_pauses) == 4
    assert sum("/events" in request.path for request in server.requests) == 2


@pytest.mark.parametrize("is_async", [False, True])
def test_wait_raises_the_workers_error(server: FakeForge, client: Forge, is_async: bool) -> None:
    server.script = lambda _: job("failed", error="CUDA out of memory", error_code="job_error")
    with pytest.raises(JobFailedError, match=r"^CUDA out of memory$") as raised:
        waited(server, client, is_async=is_async)
    assert raised.value.job.error_code == "job_error"


@pytest.mark.parametrize("is_async", [False, True])
def test_wait_times_out_and_survives_an_outage(
    server: FakeForge, client: Forge, is_async: bool
) -> None:
    left = [as_error(503, "unavailable")] * 12

    def script(request: Request) -> Answer:
        return left.pop() if left else job("running")

    server.script = script
    with pytest.raises(WaitTimeoutError, match=r"j1 is running after 1\.5 s; it goes on"):
        waited(server, client, is_async=is_async, timeout=1.5, poll_interval=0.05)
    assert not left


def test_wait_stops_if_it_is_refused(server: FakeForge, client: Forge) -> None:
    server.script = lambda _: as_error(403, "invalid_api_key")
    with pytest.raises(ForgeError, match="invalid_api_key"):
        client.wait("j1")
    assert len(server.requests) == 1


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_decodes_an_event_stream_in_any_chunks(size: int, end: bytes) -> None:
    text = (
        b"retry: 9\n\n: hello\nid: 1\nevent: a\ndata: x\ndata:  y\n\nevent: none\n\n"
        b"data: \xc3\xa4\xe2\x80\xa8\n\nid: 2\ndata\n\n:\n\ndata: lost"
    ).replace(b"\n", end)
    decoder = EventDecoder()
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    assert [each for piece in pieces for each in decoder.feed(piece)] == [
        ServerSentEvent("a", "x\n y", "1"),
        ServerSentEvent("message", "ä\u2028"),
        ServerSentEvent("message", "", "2"),
    ]


@pytest.mark.parametrize("piece", [b"data: " + b"x" * 1_000 + b"\n", b"x" * 1_000])
def test_an_event_without_end_is_refused(piece: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "_MAX_EVENT_BYTES", 100_000)
    decoder = EventDecoder()
    with pytest.raises(ForgeHTTPError, match="of an event stream is too long"):
        for _ in range(1_000):
            assert not list(decoder.feed(piece))


def test_many_events_together_are_not_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "_MAX_EVENT_BYTES", 2_000)
    decoder = EventDecoder()
    events = b"data: " + b"x" * 1_000 + b"\n\n"
    assert len([each for _ in range(10) for each in decoder.feed(events)]) == 10
