"""Choosing a folder's dataset file, and the supported formats."""

import json
from pathlib import Path

import pytest
from compute_support import write_rows

from forge_compute.datasets import BATCH_ROWS, Dataset
from forge_compute.failures import FatalError
from forge_compute.rows import read_rows

ROWS = [{"instruction": "What is 1 + 1?", "response": "2"}]


def test_prefers_the_most_processed_file(tmp_path: Path) -> None:
    for name in ("raw", "other", "scored", "sft"):
        write_rows(tmp_path / f"{name}.parquet", ROWS)
    for name in ("sft", "scored", "raw", "other"):
        assert Dataset(tmp_path).path.name == f"{name}.parquet"
        (tmp_path / f"{name}.parquet").unlink()
    with pytest.raises(FatalError, match="no file of type"):
        Dataset(tmp_path)


def test_refuses_an_ambiguous_folder(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_rows(tmp_path / f"{name}.parquet", ROWS)
    with pytest.raises(FatalError, match=r"2 \.parquet files"):
        Dataset(tmp_path)


def test_reads_jsonl_whose_later_rows_have_more_columns(tmp_path: Path) -> None:
    first = {"instruction": "Why?", "response": None, "meta": {"a": 1}, "tags": [], "n": 1}
    last = {"instruction": "How?", "response": "So.", "meta": {"b": "x"}, "tags": ["t"], "n": 0.5}
    path = tmp_path / "rows.jsonl"
    rows = [first] * BATCH_ROWS + [{**last, "score": 2}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    tables = list(Dataset(path).batches())
    assert [table.num_rows for table in tables] == [BATCH_ROWS, 1]
    assert tables[0].schema == tables[1].schema
    assert tables[1].to_pylist() == [{**last, "meta": {"a": None, "b": "x"}, "score": 2}]
    assert tables[0].slice(0, 1).to_pylist() == [
        {**first, "meta": {"a": 1, "b": None}, "score": None}
    ]
    path.write_text(
        "".join(json.dumps(row) + "\n" for row in [first] * BATCH_ROWS + [{"n": "many"}])
    )
    with pytest.raises(FatalError, match="rows have different types"):
        list(Dataset(path).batches())


def test_reads_csv_with_quoted_lines(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text('instruction,response\n"Say\nhello, please.",hello\nWhat is 1 + 1?,2\n')
    assert Dataset(path).num_rows == 2
    assert [row.response for row in read_rows(Dataset(path))] == ["hello", "2"]
    path.write_text("")
    assert Dataset(path).num_rows == 0
    path.write_text("a,b\n1,2\n1,2,3\n")
    with pytest.raises(FatalError, match="not readable csv"):
        Dataset(path)
