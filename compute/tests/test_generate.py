"""The generate and distill handlers with builtin teachers."""

from pathlib import Path
from typing import Any

import pytest
from compute_support import make_job, read, write_rows

from forge_compute.checks import contains_answer
from forge_compute.distill import distill
from forge_compute.failures import FatalError
from forge_compute.generate import generate


def _generate(folder: Path, **payload: Any) -> list[dict[str, Any]]:  # noqa: ANN401
    params = payload.pop("params", {})
    inputs = payload.pop("inputs", {})
    whole = {"task": "questions with answers", "size": 300, "teacher": "builtin:mixed", **payload}
    content = generate(make_job(folder, "generate", whole, params=params, inputs=inputs))
    rows = read(folder / "output" / "raw.parquet")
    assert content["result"]["num_rows"] == len(rows) == whole["size"]
    assert content["result"]["dataset_id"] == "ds_out"
    assert content["result"]["dataset_uri"] == "forge://artifacts/x/raw.parquet"
    tokens = sum(row["completion_tokens"] for row in rows)
    assert content["metrics"]["tokens_generated"] == tokens > 0
    return rows


@pytest.mark.parametrize("name", ["sums", "arithmetic", "units", "dates", "mixed"])
def test_builtin_answers_are_correct_and_instructions_unique(name: str, tmp_path: Path) -> None:
    rows = _generate(tmp_path, teacher=f"builtin:{name}", size=2_500)
    assert all(contains_answer(row["instruction"], row["response"]) for row in rows)
    assert len({row["instruction"] for row in rows}) == 2_500


def test_the_seed_determines_the_rows(tmp_path: Path) -> None:
    first, again, other = (
        _generate(tmp_path / name, params={"seed": seed})
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    assert first == again != other


def test_style_and_domain_select_the_answers(tmp_path: Path) -> None:
    rows = _generate(tmp_path, domain="dates", style="step by step")
    assert {row["topic"] for row in rows} == {"dates"}
    assert all(row["response"].endswith(".") for row in rows)


def test_answers_the_prompts_of_a_dataset(tmp_path: Path) -> None:
    builtin = _generate(tmp_path, params={"prompts": "builtin:sums"})
    assert len({row["instruction"] for row in builtin}) == 300
    prompts = write_rows(tmp_path / "prompts.parquet", [{"prompt": "What is 2 + 3?"}] * 2)
    given = {"params": {"prompts": "ds_prompts"}, "inputs": {"prompts": prompts}}
    assert [row["response"] for row in _generate(tmp_path, size=2, **given)] == ["5", "5"]
    with pytest.raises(FatalError, match="ran out after 2 of 3 rows"):
        _generate(tmp_path, size=3, **given)


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        ({"teacher": "builtin:wisdom"}, "unknown task builtin:wisdom; use one of builtin:sums, "),
        ({"teacher": "gpt-9"}, "unknown teacher gpt-9; use one of builtin:sums"),
        ({"params": {"seed": "x"}}, "params.seed must be an integer"),
        ({"params": {"prompts": "ds_9"}}, "dataset of prompts ds_9 is not known"),
    ],
)
def test_errors_list_the_valid_values(
    payload: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(FatalError, match=message):
        _generate(tmp_path, **payload)


def test_distills_good_rows_with_their_provenance(tmp_path: Path) -> None:
    rows = [
        {"instruction": "What is 2 + 3?", "response": "It is 5, because 2 and 3 are 5."},
        {"instruction": "what is  2 + 3?", "response": "5, so 5."},
        {"instruction": "What is 2 + 4?", "response": "7"},
        {"instruction": "Tell me of foxes.", "response": "Foxes dig, because they live in dens."},
    ]
    path = write_rows(tmp_path / "rows.parquet", rows)
    payload = {"dataset_id": "ds_in", "teacher": "builtin:mixed"}
    job = make_job(tmp_path, "distill", payload, inputs={"dataset_id": path})
    content = distill(job)
    kept = read(tmp_path / "output" / "sft.parquet")
    assert [(row["source_row"], row["response"], row["teacher"]) for row in kept] == [
        (0, "5", "builtin:mixed"),
        (3, "Foxes dig, because they live in dens.", None),
    ]
    assert kept[0]["original_response"] == "It is 5, because 2 and 3 are 5."
    assert {row["source_dataset"] for row in kept} == {"ds_in"}
    result = content["result"]
    assert (result["num_pairs"], result["low_score_rows"], result["duplicate_rows"]) == (2, 1, 1)
    assert result["distilled_dataset_id"] == "ds_distilled"
    assert content["metrics"]["tokens_generated"] == 1


def test_distill_skips_rows_that_are_too_long_for_the_student(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    rows = [
        {"instruction": f"What is 2 + {n}? {'x' * n}", "response": f"It is {n + 2}, because so."}
        for n in (3, 300, 600)
    ]
    path = write_rows(tmp_path / "rows.parquet", rows)

    def sources(student: str, folder: str) -> tuple[list[int], int]:
        payload = {"dataset_id": "d", "teacher": "builtin:mixed", "student_model": student}
        (tmp_path / folder).mkdir()
        job = make_job(
            tmp_path / folder,
            "distill",
            payload,
            inputs={"dataset_id": path},
            params={"min_score": 0},
        )
        left_out = distill(job)["result"]["too_long_rows"]
        kept = read(tmp_path / folder / "output" / "sft.parquet")
        return [row["source_row"] for row in kept], left_out

    assert sources("builtin:tiny", "tiny") == ([0], 2)
    assert sources("builtin:small", "small") == ([0, 1], 1)
    with pytest.raises(FatalError, match="unknown model builtin:huge; use one of builtin:tiny"):
        sources("builtin:huge", "huge")


def test_distill_uses_an_audits_scores_and_fails_without_rows(tmp_path: Path) -> None:
    scores = {name: 0.5 for name in ("clarity_score", "correctness_score", "educational_score")}
    row = {"instruction": "What is 2 + 3?", "response": "5, because 2 + 3 = 5.", **scores}
    path = write_rows(tmp_path / "rows.parquet", [row])
    payload = {"dataset_uri": "forge://x/y.parquet", "teacher": "builtin:mixed"}
    inputs = {"dataset_uri": path}
    with pytest.raises(FatalError, match="none of 1 rows can be used: 1 scored too low"):
        distill(make_job(tmp_path, "distill", payload, inputs=inputs))
    content = distill(
        make_job(tmp_path, "distill", payload, inputs=inputs, params={"min_score": 0.5})
    )
    assert content["result"]["num_pairs"] == 1
