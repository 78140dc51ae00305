"""The audit handler, with real files."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from compute_support import make_job, read, write_rows

from forge_compute.audit import audit
from forge_compute.failures import FatalError
from forge_compute.scores import quality_tier, score

Run = Callable[..., dict[str, Any]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def run_audit(dataset: Path, **params: Any) -> dict[str, Any]:  # noqa: ANN401
        inputs = {"dataset_uri": dataset}
        return audit(make_job(tmp_path, "audit", {}, inputs=inputs, params=params))

    return run_audit


def _jsonl(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_counts_duplicates_empty_and_overlong_fields(run: Run, tmp_path: Path) -> None:
    rows = [
        {"instruction": "What is 1 + 1?", "response": "2."},
        {"instruction": "what is 1 + 1?", "response": " 2. "},
        {"instruction": "What is 1 + 2?", "response": ""},
        {"instruction": "Say a lot, please.", "response": "a " * 5_000},
        {"instruction": None, "response": "so"},
    ]
    content = run(_jsonl(tmp_path / "rows.jsonl", rows))
    assert content["metrics"]["rows_processed"] == 5
    result = content["result"]
    assert (result["num_rows"], result["duplicate_rows"]) == (5, 1)
    assert (result["empty_fields"], result["overlong_fields"]) == (2, 1)
    scored = pq.read_table(tmp_path / "output" / "scored.parquet")
    assert scored["is_duplicate"].to_pylist() == [False, True, False, False, False]
    assert scored["correctness_score"].to_pylist()[0] == 1.0
    assert scored.column_names[:2] == ["instruction", "response"]


def test_reads_a_large_parquet_file_in_batches(run: Run, tmp_path: Path) -> None:
    table = pa.table(
        {
            "prompt": [f"What is {n} + 1?" for n in range(5_001)],
            "completion": [f"{n + 1}" for n in range(5_001)],
            "weight": pa.array(range(5_001), pa.int32()),
        }
    )
    pq.write_table(table, tmp_path / "rows.parquet")
    result = run(tmp_path / "rows.parquet")["result"]
    assert result["num_rows"] == 5_001
    assert result["schema"]["columns"][2] == {"name": "weight", "dtype": "int32"}
    assert result["quality"]["correctness_mean"] == 1.0
    assert pq.read_metadata(tmp_path / "output" / "scored.parquet").num_rows == 5_001


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "no rows"),
        ("{", "line 1 .* not JSON"),
        ("[1]\n", "line 1 .* not a JSON object"),
        ('{"a": 1}\n', "none of the columns"),
        ('{"instruction": "\\ud800", "response": "x"}\n', "not Unicode"),
        ("PAR1 and then nonsense", "not readable parquet"),
    ],
)
def test_reports_errors_of_the_dataset(
    run: Run, tmp_path: Path, content: str, message: str
) -> None:
    path = tmp_path / "rows"
    path.write_text(content)
    with pytest.raises(FatalError, match=message):
        run(path)


def test_finds_near_duplicates_languages_and_leaks(run: Run, tmp_path: Path) -> None:
    text = "The quick brown fox jumps over the lazy dog while the sun sets behind the far hills"
    french = "Le renard brun saute par-dessus le chien paresseux pendant que le soleil se couche"
    rows = [
        {"instruction": f"Translate: {text}", "response": "No.", "split": "train"},
        {"instruction": f"Translate: {text}", "response": "Nope.", "split": "test"},
        {"instruction": f"Repeat: {french}", "response": french, "split": "train"},
        {"instruction": "What is 12 + 7?", "response": "19", "split": "train"},
        {"instruction": "What is 12 + 8?", "response": "20", "split": "test"},
    ]
    result = run(write_rows(tmp_path / "rows.parquet", rows))["result"]
    assert (result["duplicate_rows"], result["near_duplicate_rows"]) == (0, 1)
    assert result["near_duplicate_rows_compared"] == 5
    assert result["languages"]["fr"] == 1
    assert (result["main_language"], result["main_language_share"]) == ("en", 0.8)
    assert result["leakage"] == {
        "across_splits": 1,
        "across_splits_compared": 5,
        "response_in_instruction": 1,
    }
    scored = read(tmp_path / "output" / "scored.parquet")
    assert [row["is_near_duplicate"] for row in scored] == [False, True, False, False, False]
    assert scored[2]["language"] == "fr"


def test_keeps_a_column_of_the_dataset_that_is_named_like_a_finding(
    run: Run, tmp_path: Path
) -> None:
    row = {"instruction": "What is 1 + 1?", "response": "2", "language": "pidgin"}
    run(write_rows(tmp_path / "rows.parquet", [row]))
    scored = tmp_path / "output" / "scored.parquet"
    [first] = read(scored)
    assert first["language"] == "pidgin"
    assert first["detected_language"] != "pidgin"
    again = tmp_path / "again.parquet"
    scored.rename(again)
    run(again)
    assert read(scored) == [first]


def test_reports_how_many_rows_it_checked(run: Run, tmp_path: Path) -> None:
    rows = [{"instruction": f"What is {n} + 1?", "response": f"{n + 1}"} for n in range(50)]
    path = write_rows(tmp_path / "rows.parquet", rows)
    result = run(path, near_duplicate_rows=20, language_rows=10)["result"]
    assert result["near_duplicate_rows_compared"] == 20
    assert result["language_rows_checked"] == 10
    assert result["leakage"]["across_splits"] is None
    scored = read(tmp_path / "output" / "scored.parquet")
    assert [row["is_near_duplicate"] for row in scored][19:21] == [False, None]


def test_lets_a_judge_rate_a_sample(run: Run, tmp_path: Path) -> None:
    rows = [
        {"instruction": f"What is {n} + 1?", "response": f"{n + 1 + (n % 2)}"} for n in range(99)
    ]
    path = write_rows(tmp_path / "rows.parquet", rows)
    result = run(path, judge="builtin:mixed", judge_rows=33)["result"]
    assert result["judge_rows"] == 33
    assert 0.4 < result["quality"]["judge_mean"] < 0.6


def test_audits_an_audited_dataset_again(run: Run, tmp_path: Path) -> None:
    rows = [{"instruction": "What is 1 + 1?", "response": "2"}]
    run(write_rows(tmp_path / "rows.parquet", rows))
    (tmp_path / "output" / "scored.parquet").rename(tmp_path / "again.parquet")
    run(tmp_path / "again.parquet")
    assert len(set(pq.read_schema(tmp_path / "output" / "scored.parquet").names)) == 8


def test_scores_match_their_documentation() -> None:
    assert score("", "x").clarity == 0
    assert score("What is 2 + 2?", "4.").correctness == 1
    assert score("Tell me a story about a fox.", "I'm sorry, but no.").correctness == 0.2
    assert score("Sums?", "Yes.").clarity == 0.5
    assert score("What is 2 + 2?", "2 + 2 = 4, because two twos are four.").educational == 0.7
    assert [quality_tier(mean) for mean in (0.8, 0.79, 0.5, 0.1)] == [
        "gold",
        "silver",
        "bronze",
        "reject",
    ]
