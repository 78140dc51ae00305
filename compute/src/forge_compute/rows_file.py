"""Writes rows to a parquet file in batches."""

from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from .datasets import BATCH_ROWS


class RowsFile:
    """A parquet file with one schema. Buffers at most BATCH_ROWS rows in memory."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._schema = schema
        self._writer = pq.ParquetWriter(path, schema)
        self._buffer: list[dict[str, Any]] = []
        self.num_rows = 0

    def add(self, row: dict[str, Any]) -> None:
        self._buffer.append(row)
        self.num_rows += 1
        if len(self._buffer) == BATCH_ROWS:
            self._flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None and self._buffer:
            self._flush()
        self._writer.close()

    def _flush(self) -> None:
        self._writer.write_table(pa.Table.from_pylist(self._buffer, schema=self._schema))
        self._buffer = []
