"""The deploy handler in its own process, called by the official client."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from compute_support import make_job, read, write_job, write_rows

pytest.importorskip("torch")

import torch

from forge_compute.deploy import deploy
from forge_compute.failures import TransientError
from forge_compute.generate import generate
from forge_compute.language_model import load_model
from forge_compute.serving import Busy, Finish, ModelQueue, Request
from forge_compute.train import train

TOKEN = "forge_model_t"
AUTHORIZED = {"Authorization": f"Bearer {TOKEN}"}
LINE = "The lazy dög, then."
ROWS = [{"instruction": f"Say it {number}.", "response": LINE} for number in range(48)]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that has memorized one line."""
    folder = tmp_path_factory.mktemp("checkpoint")
    os.environ["FORGE_PROGRESS"] = str(folder / "progress")
    path = write_rows(folder / "rows.parquet", ROWS)
    payload = {"dataset_id": "ds", "model": "builtin:tiny", "epochs": 40}
    params = {"batch_size": 16, "seed": 1}
    train(make_job(folder, "train", payload, inputs={"dataset_id": path}, params=params))
    return folder / "output"


@pytest.fixture(scope="module")
def url(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("deployment")
    inputs = {"checkpoint_id": str(checkpoint)}
    env = write_job(folder, "deploy", {"checkpoint_id": "ckpt_1"}, inputs=inputs)
    port = _free_port()
    address = {
        "FORGE_HOST": "127.0.0.1",
        "FORGE_PORT": str(port),
        "FORGE_DEPLOYMENT_ID": "dep_1",
        "FORGE_DEPLOYMENT_TOKEN": TOKEN,
    }
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "forge_compute", "deploy"],
            env={**os.environ, **env, **address, "PYTHONPATH": ":".join(sys.path)},
            stdout=log,
            stderr=log,
        )
    try:
        yield _until_healthy(f"http://127.0.0.1:{port}", process, folder / "log")
        config = json.loads((folder / "output" / "config.json").read_text())
        assert config["inference_url"] == f"http://127.0.0.1:{port}/v1"
        result = json.loads((folder / "result.json").read_text())["result"]
        assert (result["deployment_id"], result["model"]) == ("dep_1", "dep_1")
    finally:
        process.terminate()
        assert process.wait(10) == -signal.SIGTERM


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _until_healthy(base: str, process: "subprocess.Popen[bytes]", log: Path) -> str:
    for _ in range(300):
        assert process.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(f"{base}/health") as answer:
                assert json.load(answer)["status"] == "ok"
            return base
        except OSError:
            time.sleep(0.1)
    raise AssertionError(log.read_text())


@pytest.fixture
def client(url: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{url}/v1", api_key=TOKEN, max_retries=0) as client:
        yield client


def _ask(text: str = "Say it 3.") -> list[Any]:
    return [{"role": "system", "content": "Be kind."}, {"role": "user", "content": text}]


def test_answers_the_official_client(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["dep_1"]
    assert client.models.retrieve("dep_1").owned_by == "forge"
    whole = client.chat.completions.create(model="dep_1", messages=_ask())
    assert whole.choices[0].message.content == LINE
    assert whole.choices[0].finish_reason == "stop"
    assert whole.usage
    assert whole.usage.prompt_tokens == len("Say it 3.") + 2
    assert whole.usage.completion_tokens == len(LINE.encode())
    plain = client.completions.create(model="dep_1", prompt="Say it 3.", max_tokens=8)
    assert (plain.choices[0].text, plain.choices[0].finish_reason) == (LINE[:8], "length")
    stopped = client.chat.completions.create(
        model="dep_1", messages=_ask(), stop=["gone", "ög, "], temperature=0.1, seed=5
    )
    assert (stopped.choices[0].message.content, stopped.choices[0].finish_reason) == (
        "The lazy d",
        "stop",
    )


def test_streams_to_the_official_client(client: openai.OpenAI) -> None:
    chunks = list(
        client.chat.completions.create(
            model="dep_1",
            messages=_ask(),
            stream=True,
            stream_options={"include_usage": True},
            stop=["lazz", "then?"],
        )
    )
    texts = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices]
    assert len(texts) > 10
    assert "".join(text or "" for text in texts) == LINE
    assert "\ufffd" not in "".join(text or "" for text in texts)
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-1].usage
    assert chunks[-1].usage.completion_tokens == len(LINE.encode())
    plain = client.completions.create(model="dep_1", prompt="Say it 3.", stream=True)
    assert "".join(chunk.choices[0].text for chunk in plain) == LINE


@pytest.mark.parametrize("sent", [None, "Bearer forge_model_x", "Bearer ", TOKEN, "Basic ä"])
@pytest.mark.parametrize("path", ["/v1/models", "/v1/chat/completions", "/v1/x"])
def test_refuses_requests_without_the_token(url: str, path: str, sent: str | None) -> None:
    host, port = url.removeprefix("http://").split(":")
    method = "GET" if path == "/v1/models" else "POST"
    connection = http.client.HTTPConnection(host, int(port), timeout=10)
    headers = {} if sent is None else {"Authorization": sent}
    connection.request(method, path, None if method == "GET" else b"{}", headers)
    answer = connection.getresponse()
    assert answer.status == 401
    assert json.loads(answer.read())["error"]["code"] == "invalid_token"
    connection.close()


@pytest.mark.parametrize(
    ("change", "status", "param"),
    [
        ({"model": "gpt-9"}, 404, "model"),
        ({"messages": []}, 400, "messages"),
        ({"messages": [{"role": "user", "content": 3}]}, 400, "messages[0].content"),
        ({"messages": [{"role": "user", "content": "\ud800"}]}, 400, "messages[0]"),
        ({"messages": [{"role": "user", "content": "x" * 300}]}, 400, "messages"),
        ({"max_tokens": 0}, 400, "max_tokens"),
        ({"temperature": 3}, 400, "temperature"),
        ({"temperature": "hot"}, 400, "temperature"),
        ({"stop": [""]}, 400, "stop"),
        ({"n": 2}, 400, "n"),
        ({"response_format": {"type": "json_object"}}, 400, "response_format"),
    ],
)
def test_errors_have_openais_format(
    url: str, change: dict[str, Any], status: int, param: str
) -> None:
    body = {"model": "dep_1", "messages": _ask(), **change}
    assert _refusal(f"{url}/v1/chat/completions", json.dumps(body).encode()) == (status, param)


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/v1/chat/completions", b"{", 400),
        ("/v1/chat/completions", b"[]", 400),
        ("/v1/chat/completions", b"[" * 100_000, 400),
        ("/v1/chat/completions", b" " * (2**20 + 1), 413),
        ("/v1/completions", b'{"model": "dep_1", "prompt": ["a", "b"]}', 400),
        ("/v1/embeddings", b"{}", 404),
    ],
)
def test_refuses_invalid_requests(url: str, path: str, body: bytes, status: int) -> None:
    assert _refusal(f"{url}{path}", body)[0] == status


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/embeddings"])
def test_a_client_that_sends_all_before_it_reads_gets_the_response(url: str, path: str) -> None:
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), 10) as client:
        size = 8 * 2**20
        client.sendall(
            f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"
            f"Content-Length: {size}\r\n\r\n".encode()
        )
        for _ in range(size // 2**16):
            client.sendall(b" " * 2**16)
            time.sleep(0.001)
        answer = b""
        while piece := client.recv(2**16):
            answer += piece
    assert answer.startswith((b"HTTP/1.1 413 ", b"HTTP/1.1 404 "))


def _refusal(url: str, body: bytes) -> tuple[int, str | None]:
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(urllib.request.Request(url, body, AUTHORIZED))
    error = json.load(caught.value)["error"]
    assert error["message"]
    assert error["type"] == "invalid_request_error"
    return caught.value.code, error["param"]


def test_handles_concurrent_and_disconnecting_clients(url: str, client: openai.OpenAI) -> None:
    host, port = url.removeprefix("http://").split(":")
    body = json.dumps({"model": "dep_1", "messages": _ask(), "stream": True}).encode()
    for _ in range(5):
        with socket.create_connection((host, int(port))) as client_socket:
            head = (
                "POST /v1/chat/completions HTTP/1.1\r\n"
                f"Authorization: Bearer {TOKEN}\r\nContent-Length: {len(body)}\r\n\r\n"
            )
            client_socket.sendall(head.encode() + body)
    answers: list[str | None] = []

    def ask() -> None:
        whole = client.chat.completions.create(model="dep_1", messages=_ask())
        answers.append(whole.choices[0].message.content)

    threads = [threading.Thread(target=ask) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [LINE] * 12


def test_the_queue_is_bounded(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release, begun = threading.Event(), threading.Event()
    model = load_model(checkpoint)
    prompt = model.prompt([{"role": "user", "content": "Say it 3."}])
    logits = model.logits

    def slow(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401
        begun.set()
        assert release.wait(10)
        return logits(*arguments, **named)

    monkeypatch.setattr(model, "logits", slow)
    waiting = ModelQueue(model, length=1)
    first, second, third = (Request(prompt, 3, 0.0, []) for _ in range(3))
    waiting.submit(first)
    assert begun.wait(10)  # the first request has left the queue
    waiting.submit(second)
    with pytest.raises(Busy):
        waiting.submit(third)
    release.set()
    assert list(second.pieces()) == ["T", "h", "e", Finish("length", 3)]


def test_a_failure_of_the_model_affects_one_request_only(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = load_model(checkpoint)
    logits = model.logits

    def fail_once(*_: Any, **__: Any) -> None:  # noqa: ANN401
        monkeypatch.setattr(model, "logits", logits)
        raise RuntimeError("planted")

    monkeypatch.setattr(model, "logits", fail_once)
    queue = ModelQueue(model)
    failing, sound = (Request([1, 2], 1, 0.0, []) for _ in range(2))
    queue.submit(failing)
    queue.submit(sound)
    assert list(failing.pieces()) == [Finish("error", 0)]
    assert len(list(sound.pieces())) == 2


@pytest.fixture
def release(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Simulates a GPU that fails.

    Returns an event. Each request waits until the test sets the event, and then fails.
    """
    released = threading.Event()

    def fail(*_: Any) -> None:  # noqa: ANN401
        assert released.wait(10)
        raise RuntimeError("CUDA error: planted")

    monkeypatch.setattr("forge_compute.serving.sample", fail)
    monkeypatch.setattr("forge_compute.serving.find_gpu_failure", lambda _: "CUDA error: planted")
    return released


def test_a_failure_of_the_gpu_ends_the_server(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, release: threading.Event
) -> None:
    release.set()
    port = _free_port()
    monkeypatch.setenv("FORGE_PORT", str(port))
    job = make_job(tmp_path, "deploy", {"checkpoint_id": "c"}, inputs={"checkpoint_id": checkpoint})
    answers = []

    def ask() -> None:
        url = f"http://127.0.0.1:{port}/v1"
        with openai.OpenAI(base_url=url, api_key="-", max_retries=0) as client:
            while not answers:
                try:
                    client.completions.create(model="c", prompt="Say it 3.")
                except openai.APIConnectionError:  # the server does not listen yet
                    time.sleep(0.01)
                except openai.APIStatusError as error:
                    answers.append(error.status_code)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    with pytest.raises(TransientError, match="the GPU failed: CUDA error: planted"):
        deploy(job)
    asking.join(10)
    assert answers == [500]


def test_waiting_requests_get_an_error_when_the_gpu_fails(
    checkpoint: Path, release: threading.Event
) -> None:
    has_failed = threading.Event()
    queue = ModelQueue(load_model(checkpoint), on_gpu_failure=lambda _: has_failed.set())
    requests = [Request([1, 2], 1, 0.0, []) for _ in range(4)]
    for request in requests:
        queue.submit(request)
    release.set()
    for request in requests:
        assert list(request.pieces()) == [Finish("error", 0)]
    assert has_failed.wait(10)
    with pytest.raises(Busy):
        queue.submit(requests[0])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_an_error_in_a_kernel_is_a_failure_of_the_gpu(checkpoint: Path) -> None:
    """Runs in a separate process: after an error in a kernel, the process can't use CUDA."""
    script = f"""
from pathlib import Path
from queue import SimpleQueue
from forge_compute.language_model import load_model
from forge_compute.serving import ModelQueue, Request

failures = SimpleQueue()
queue = ModelQueue(load_model(Path({str(checkpoint)!r})), on_gpu_failure=failures.put)
for tokens in ([1, 2], [9_999]):
    request = Request(tokens, 1, 0.0, [])
    queue.submit(request)
    print(*(type(piece).__name__ for piece in request.pieces()))
print(failures.get(timeout=30))
"""
    env = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True)
    failure = "CUDA error: device-side assert triggered"
    assert done.stdout.splitlines() == ["str Finish", "Finish", failure], done.stderr


def test_a_deployment_can_be_a_teacher(url: str, tmp_path: Path) -> None:
    prompts = write_rows(tmp_path / "prompts.parquet", ROWS)
    job = make_job(
        tmp_path,
        "generate",
        {"task": "repeat", "size": 20, "teacher": "dep_1"},
        params={"prompts": "ds_1"},
        inputs={"prompts": prompts},
        teachers={"*": {"base_url": f"{url}/v1", "api_key": TOKEN}},
    )
    content = generate(job)
    rows = read(tmp_path / "output" / "raw.parquet")
    assert {row["response"] for row in rows} == {LINE}
    assert content["metrics"]["tokens_generated"] == 20 * len(LINE.encode())
