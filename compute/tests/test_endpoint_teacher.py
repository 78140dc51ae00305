"""Teachers behind a real HTTP server that misbehaves."""

import json
from itertools import count
from pathlib import Path
from typing import Any

import openai
import pytest
from compute_support import make_job, read, write_rows
from fake_endpoint import Behave, FakeEndpoint, Reply, completion

from forge_compute.audit import audit
from forge_compute.distill import distill
from forge_compute.failures import FatalError, is_transient
from forge_compute.generate import generate
from forge_compute.job import Job

_NUMBERS = count()


def pairs(body: dict[str, Any]) -> Reply:
    """Replies with the requested number of new pairs."""
    wanted = int(body["messages"][0]["content"].split()[1])
    rows = [
        {"instruction": f"Question {next(_NUMBERS)}?", "response": "Yes.", "topic": "t"}
        for _ in range(wanted)
    ]
    return completion(json.dumps({"pairs": rows}))


def _job(folder: Path, url: str, size: int = 12, **fields: Any) -> Job:  # noqa: ANN401
    payload = {"task": "ask", "size": size, "teacher": "big"}
    teachers = {"big": {"base_url": url, "model": "teacher-1"}}
    return make_job(folder, "generate", payload, **{"teachers": teachers, **fields})


def _generate(folder: Path, behave: Behave, **fields: Any) -> tuple[dict[str, Any], FakeEndpoint]:  # noqa: ANN401
    with FakeEndpoint(behave) as endpoint:
        return generate(_job(folder, endpoint.url, **fields)), endpoint


def test_writes_exactly_as_many_rows_with_their_tokens(tmp_path: Path) -> None:
    content, endpoint = _generate(tmp_path, lambda body, _: pairs(body))
    rows = read(tmp_path / "output" / "raw.parquet")
    assert len(rows) == 12
    assert len(endpoint.requests) == 3
    assert {row["model"] for row in rows} == {"teacher-1"}
    assert sum(row["completion_tokens"] for row in rows) == 21
    assert content["metrics"]["tokens_generated"] == 21
    assert content["result"]["tokens_estimated"] is False
    progress = json.loads((tmp_path / "progress").read_text())
    assert (progress["progress"], progress["metrics"]["tokens_generated"]) == (1.0, 21)


def test_retries_busy_failing_and_disconnecting_servers(tmp_path: Path) -> None:
    faults: dict[int, Reply] = {0: (429, "{}"), 1: (500, "oops"), 2: None, 3: (503, "{}")}
    params = {"concurrency": 1}
    _, endpoint = _generate(
        tmp_path,
        lambda body, number: faults[number] if number in faults else pairs(body),
        params=params,
    )
    assert len(read(tmp_path / "output" / "raw.parquet")) == 12
    assert len(endpoint.requests) == 7


@pytest.mark.parametrize("status", [400, 422])
def test_works_without_response_format_if_it_is_refused(tmp_path: Path, status: int) -> None:
    def behave(body: dict[str, Any], _: int) -> Reply:
        if "response_format" in body:
            return status, '{"error": {"message": "response_format is not supported"}}'
        reply = pairs(body)
        assert reply
        text = json.loads(reply[1])["choices"][0]["message"]["content"]
        return completion(f"Here you are:\n```json\n{text}\n```")

    _, endpoint = _generate(tmp_path, behave, params={"concurrency": 1})
    assert len(read(tmp_path / "output" / "raw.parquet")) == 12
    assert len(endpoint.requests) == 4


@pytest.mark.parametrize(
    "bad",
    [
        completion("I'd rather not."),
        completion('{"pairs": [{"instruction": "only"}]}'),
        completion("[]"),
        completion('{"pairs": 3}'),
        completion('{"pairs": [', reason="length"),
        completion(""),
        (200, "no JSON at all"),
        (200, "{}"),
        (200, '"text"'),
        completion('{"pairs": [{"instruction": "Always?", "response": "The same."}]}'),
    ],
)
def test_retries_unusable_answers_up_to_a_limit(tmp_path: Path, bad: Reply) -> None:
    content, _ = _generate(
        tmp_path / "a",
        lambda body, number: bad if number % 2 else pairs(body),
        params={"concurrency": 1},
    )
    assert content["result"]["num_rows"] == 12
    with pytest.raises(FatalError, match=r"gave 21 unusable answers: 21 × "):
        _generate(tmp_path / "b", lambda _body, _number: bad)


@pytest.mark.parametrize(
    ("behave", "kind", "transient"),
    [
        (lambda _b, _n: (429, "{}"), openai.RateLimitError, True),
        (lambda _b, _n: (502, "{}"), openai.InternalServerError, True),
        (lambda _b, _n: None, openai.APIConnectionError, True),
        (lambda _b, _n: (401, "{}"), openai.AuthenticationError, False),
        (lambda _b, _n: (404, "{}"), openai.NotFoundError, False),
        (lambda _b, _n: (400, "{}"), openai.BadRequestError, False),
    ],
)
def test_distinguishes_transient_failures(
    tmp_path: Path, behave: Behave, kind: type[Exception], transient: bool
) -> None:
    with pytest.raises(kind) as caught:
        _generate(tmp_path, behave, params={"retries": 1})
    assert is_transient(caught.value) is transient


def test_sends_the_key_from_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeEndpoint(lambda body, _: pairs(body)) as endpoint:
        teachers = {"*": {"base_url": endpoint.url, "api_key_env": "BIG_KEY"}}
        with pytest.raises(FatalError, match="BIG_KEY is not set"):
            generate(_job(tmp_path, "", teachers=teachers))
        monkeypatch.setenv("BIG_KEY", "s3cret")
        generate(_job(tmp_path, "", teachers=teachers))
    assert endpoint.authorizations == {"Bearer s3cret"}
    # The entry `*` names no model, so the teacher's name is sent.
    assert {body["model"] for body in endpoint.requests} == {"big"}


def test_answers_prompts_in_plain_text_and_estimates_missing_usage(tmp_path: Path) -> None:
    content, endpoint = _generate(
        tmp_path,
        lambda body, _: completion(f"I was asked {len(body['messages'])} thing.", usage=False),
        size=3,
        params={"prompts": "builtin:sums", "temperature": 0.5, "max_tokens": 99},
    )
    assert content["result"]["tokens_estimated"] is True
    assert content["metrics"]["tokens_generated"] == 18
    assert all("response_format" not in body for body in endpoint.requests)
    assert {(body["temperature"], body["max_tokens"]) for body in endpoint.requests} == {(0.5, 99)}


def test_distill_skips_rows_without_a_usable_answer(tmp_path: Path) -> None:
    rows = [
        {"instruction": f"Tell me about {what}.", "response": "It is so, because it is."}
        for what in ("foxes", "silence", "owls")
    ]
    path = write_rows(tmp_path / "rows.parquet", rows)

    def behave(body: dict[str, Any], _: int) -> Reply:
        return completion("" if "silence" in body["messages"][0]["content"] else "An animal.")

    with FakeEndpoint(behave) as endpoint:
        job = make_job(
            tmp_path,
            "distill",
            {"dataset_id": "ds_1", "teacher": "big"},
            inputs={"dataset_id": path},
            teachers={"big": {"base_url": endpoint.url}},
        )
        content = distill(job)
    assert content["result"]["unanswered_rows"] == 1
    assert [row["source_row"] for row in read(tmp_path / "output" / "sft.parquet")] == [0, 2]
    assert content["metrics"]["tokens_generated"] == 5 * 7


def test_judges_rows(tmp_path: Path) -> None:
    rows = [{"instruction": f"Tell me about {n}.", "response": "No."} for n in range(4)]
    path = write_rows(tmp_path / "rows.parquet", rows)
    answers = iter(["0.5", "1", "2", '"x"'])
    with FakeEndpoint(lambda _b, _n: completion(f'{{"score": {next(answers)}}}')) as endpoint:
        job = make_job(
            tmp_path,
            "audit",
            {},
            inputs={"dataset_uri": path},
            params={"judge": "big"},
            teachers={"big": {"base_url": endpoint.url}},
        )
        content = audit(job)
    assert content["result"]["quality"]["judge_mean"] == 0.75
    assert (content["result"]["judge_rows"], content["result"]["judge_unusable"]) == (2, 2)
    assert content["metrics"]["tokens_used"] == 4 * 18
