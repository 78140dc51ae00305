"""The audit handler on real files."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from forge_compute.audit import audit
from forge_compute.job import FatalError, Job
from forge_compute.scores import quality_tier, score


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:  # noqa: ANN401 - a function
    monkeypatch.setenv("FORGE_PROGRESS", str(tmp_path / "progress"))
    output = tmp_path / "output"
    output.mkdir()

    def run_audit(dataset: Path) -> dict[str, Any]:
        return audit(
            Job(
                payload={},
                input_files={"dataset_uri": dataset},
                output_dir=output,
                output_ids={"dataset_id": "ds_1"},
                artifacts_uri="forge://artifacts/datasets/ds_1/",
            )
        )

    run_audit.output = output  # type: ignore[attr-defined]
    return run_audit


def _jsonl(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_counts_duplicates_empty_and_overlong_fields(run: Any, tmp_path: Path) -> None:  # noqa: ANN401
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
    scored = pq.read_table(run.output / "scored.parquet")
    assert scored["is_duplicate"].to_pylist() == [False, True, False, False, False]
    assert scored["correctness_score"].to_pylist()[0] == 1.0
    assert scored.column_names[:2] == ["instruction", "response"]


def test_takes_a_large_parquet_batch_by_batch(run: Any, tmp_path: Path) -> None:  # noqa: ANN401
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
    assert pq.read_metadata(run.output / "scored.parquet").num_rows == 5_001


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "no rows"),
        ("{", "line 1 .* not JSON"),
        ("[1]\n", "line 1 .* not a JSON object"),
        ('{"a": 1}\n', "none of the columns"),
        ("PAR1 and then nonsense", "not readable parquet"),
    ],
)
def test_says_what_is_wrong(run: Any, tmp_path: Path, content: str, message: str) -> None:  # noqa: ANN401
    path = tmp_path / "rows"
    path.write_text(content)
    with pytest.raises(FatalError, match=message):
        run(path)


def test_scores_are_what_their_docstring_says() -> None:
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
