"""Reads datasets in batches, so that memory use does not depend on their size."""

import json
from collections.abc import Iterator
from functools import cached_property, reduce
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from .failures import FatalError

BATCH_ROWS = 2_000

INSTRUCTION_NAMES = ("instruction", "prompt", "question", "input")
RESPONSE_NAMES = ("response", "output", "answer", "completion")

_PREFERRED = ("sft.parquet", "scored.parquet", "raw.parquet", "heldout.parquet")
_SUFFIXES = (".parquet", ".jsonl", ".csv")


class Dataset:
    """The rows of a parquet, jsonl or csv file.

    In a folder, reads the first of the `_PREFERRED` files that exists. If none exists, reads the
    folder's only parquet file. Without parquet files, reads the only jsonl file, and without jsonl
    files the only csv file.
    """

    def __init__(self, path: Path) -> None:
        self.path = _choose(path) if path.is_dir() else path
        self._is_parquet = _starts_like_parquet(self.path)
        self._is_csv = self.path.suffix == ".csv"
        self.num_rows = self._count()

    def batches(self) -> Iterator[pa.Table]:
        """Tables of at most BATCH_ROWS rows, all with one schema."""
        if self._is_parquet:
            for batch in self._parquet().iter_batches(BATCH_ROWS):
                yield pa.Table.from_batches([batch])
        elif self._is_csv:
            yield from self._csv_batches()
        else:
            yield from self._jsonl_batches()

    def _count(self) -> int:
        if self._is_parquet:
            return int(self._parquet().metadata.num_rows)
        if self._is_csv:
            return sum(table.num_rows for table in self._csv_batches())
        with self.path.open("rb") as file:
            return sum(1 for line in file if line.strip())

    def _parquet(self) -> pq.ParquetFile:
        try:
            return pq.ParquetFile(self.path)
        except pa.ArrowInvalid as error:
            raise FatalError(f"the dataset is not readable parquet: {error}") from error

    def _csv_batches(self) -> Iterator[pa.Table]:
        quoted = pyarrow.csv.ParseOptions(newlines_in_values=True)
        try:
            with pyarrow.csv.open_csv(self.path, parse_options=quoted) as reader:
                for batch in reader:
                    for start in range(0, batch.num_rows, BATCH_ROWS):
                        yield pa.Table.from_batches([batch.slice(start, BATCH_ROWS)])
        except pa.ArrowInvalid as error:
            if self.path.stat().st_size > 0:
                raise FatalError(f"the dataset is not readable csv: {error}") from error

    def _jsonl_batches(self) -> Iterator[pa.Table]:
        for rows in self._jsonl_rows():
            yield _table(rows, self._jsonl_schema)

    @cached_property
    def _jsonl_schema(self) -> pa.Schema:
        """The schema of all rows. The first rows may lack columns that later ones have."""
        schemas = (_table(rows).schema for rows in self._jsonl_rows())
        try:
            return reduce(_merged_schema, schemas)
        except pa.ArrowTypeError as error:
            raise _different_types(error) from error

    def _jsonl_rows(self) -> Iterator[list[dict[str, object]]]:
        """The rows in lists of at most BATCH_ROWS rows."""
        rows: list[dict[str, object]] = []
        with self.path.open(encoding="utf-8", errors="strict") as lines:
            try:
                for number, line in enumerate(lines, start=1):
                    if line.strip():
                        rows.append(_row(line, number))
                    if len(rows) == BATCH_ROWS:
                        yield rows
                        rows = []
            except UnicodeDecodeError as error:
                raise FatalError(f"the dataset is not UTF-8: {error}") from error
        if rows:
            yield rows


def texts(table: pa.Table, names: tuple[str, ...]) -> list[str]:
    """A column's values as strings. Nulls become "".

    Uses the first of `names` that is a column of the table. Raises FatalError if none is.
    """
    for name in names:
        if name in table.column_names:
            return ["" if value is None else str(value) for value in table[name].to_pylist()]
    raise FatalError(f"the dataset has none of the columns {', '.join(names)}")


def describe_columns(schema: pa.Schema) -> list[dict[str, str]]:
    """The schema in the format of manifests."""
    return [{"name": column.name, "dtype": str(column.type)} for column in schema]


def _choose(folder: Path) -> Path:
    for name in _PREFERRED:
        if (folder / name).is_file():
            return folder / name
    for suffix in _SUFFIXES:
        files = sorted(folder.rglob(f"*{suffix}"))
        if len(files) > 1:
            raise FatalError(
                f"the dataset has {len(files)} {suffix} files; give one of them a name of "
                f"{', '.join(_PREFERRED)}"
            )
        if files:
            return files[0]
    raise FatalError(f"the dataset has no file of type {', '.join(_SUFFIXES)}")


def _row(line: str, number: int) -> dict[str, object]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise FatalError(f"line {number} of the dataset is not JSON: {error}") from error
    if not isinstance(row, dict):
        raise FatalError(f"line {number} of the dataset is not a JSON object")
    return row


def _table(rows: list[dict[str, object]], schema: pa.Schema | None = None) -> pa.Table:
    """Infers the schema from the rows if none is given. Columns that a row lacks become null."""
    try:
        names = dict.fromkeys(name for row in rows for name in row)
        inferred = schema or pa.schema(
            [(name, pa.infer_type([row.get(name) for row in rows])) for name in names]
        )
        return pa.Table.from_pylist(rows, schema=inferred)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise _different_types(error) from error
    except UnicodeEncodeError as error:  # JSON can contain an unpaired surrogate
        raise FatalError(f"the dataset has text that is not Unicode: {error}") from error


def _different_types(error: Exception) -> FatalError:
    return FatalError(f"the dataset's rows have different types: {error}")


def _merged_schema(one: pa.Schema, other: pa.Schema) -> pa.Schema:
    merged = _merged_type(pa.struct(list(one)), pa.struct(list(other)))
    return pa.schema(list(merged))


def _merged_type(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """The type for the values of both types. Raises pa.ArrowTypeError if there is none."""
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        fields = {field.name: field.type for field in one}
        for field in other:
            known = fields.get(field.name, pa.null())
            fields[field.name] = _merged_type(known, field.type)
        return pa.struct(list(fields.items()))
    if pa.types.is_list(one) and pa.types.is_list(other):
        return pa.list_(_merged_type(one.value_type, other.value_type))
    schemas = [pa.schema([("value", each)]) for each in (one, other)]
    return pa.unify_schemas(schemas, promote_options="permissive").field(0).type


def _starts_like_parquet(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"PAR1"
