"""Reading datasets batch by batch, so that their size does not matter."""

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from .job import FatalError

BATCH_ROWS = 2_000


class Dataset:
    """A parquet or jsonl file of rows."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._is_parquet = _starts_like_parquet(path)
        self.num_rows = (
            self._parquet().metadata.num_rows if self._is_parquet else _count_lines(path)
        )

    def batches(self) -> Iterator[pa.Table]:
        """Tables of at most BATCH_ROWS rows, all with one schema."""
        if self._is_parquet:
            for batch in self._parquet().iter_batches(BATCH_ROWS):
                yield pa.Table.from_batches([batch])
        else:
            yield from self._jsonl_batches()

    def _parquet(self) -> pq.ParquetFile:
        try:
            return pq.ParquetFile(self._path)
        except pa.ArrowInvalid as error:
            raise FatalError(f"the dataset is not readable parquet: {error}") from error

    def _jsonl_batches(self) -> Iterator[pa.Table]:
        schema: pa.Schema | None = None
        rows: list[dict[str, object]] = []
        with self._path.open(encoding="utf-8", errors="strict") as lines:
            try:
                for number, line in enumerate(lines, start=1):
                    if line.strip():
                        rows.append(_row(line, number))
                    if len(rows) == BATCH_ROWS:
                        table = _table(rows, schema)
                        schema, rows = table.schema, []
                        yield table
            except UnicodeDecodeError as error:
                raise FatalError(f"the dataset is not UTF-8: {error}") from error
        if rows:
            yield _table(rows, schema)


def _row(line: str, number: int) -> dict[str, object]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise FatalError(f"line {number} of the dataset is not JSON: {error}") from error
    if not isinstance(row, dict):
        raise FatalError(f"line {number} of the dataset is not a JSON object")
    return row


def _table(rows: list[dict[str, object]], schema: pa.Schema | None) -> pa.Table:
    try:
        return pa.Table.from_pylist(rows, schema=schema)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise FatalError(f"the dataset's rows differ in type: {error}") from error


def _starts_like_parquet(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"PAR1"


def _count_lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for line in file if line.strip())
