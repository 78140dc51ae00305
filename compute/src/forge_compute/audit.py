"""The audit handler: what is in a dataset, and how good each row is."""

import hashlib
import time
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from .datasets import Dataset
from .job import FatalError, Job, report_progress
from .scores import Scores, quality_tier, score

_INSTRUCTION_NAMES = ("instruction", "prompt", "question", "input")
_RESPONSE_NAMES = ("response", "output", "answer", "completion")

OVERLONG_CHARACTERS = 8_192


@dataclass
class Tally:
    """What is counted over all rows."""

    rows: int = 0
    duplicates: int = 0
    empty_fields: int = 0
    overlong_fields: int = 0
    clarity: float = 0.0
    correctness: float = 0.0
    educational: float = 0.0
    seen: set[bytes] = field(default_factory=set)

    def add(self, instruction: str, response: str, scores: Scores) -> bool:
        """Counts one row; whether it repeats an earlier one, letter case and spacing aside."""
        self.rows += 1
        for text in (instruction, response):
            self.empty_fields += not text.strip()
            self.overlong_fields += len(text) > OVERLONG_CHARACTERS
        self.clarity += scores.clarity
        self.correctness += scores.correctness
        self.educational += scores.educational
        normal = "\0".join(" ".join(text.lower().split()) for text in (instruction, response))
        digest = hashlib.blake2b(normal.encode(), digest_size=12).digest()
        is_duplicate = digest in self.seen
        self.seen.add(digest)
        self.duplicates += is_duplicate
        return is_duplicate

    def quality(self) -> dict[str, Any]:
        means = {
            f"{name}_mean": round(getattr(self, name) / self.rows, 4)
            for name in ("clarity", "correctness", "educational")
        }
        return {**means, "quality_tier": quality_tier(sum(means.values()) / len(means))}


def audit(job: Job) -> dict[str, Any]:
    """Scores every row into scored.parquet and reports counts, schema and quality."""
    started = time.monotonic()
    dataset = Dataset(job.input_files["dataset_uri"])
    if dataset.num_rows == 0:
        raise FatalError("the dataset has no rows")
    tally = Tally()
    schema: pa.Schema | None = None
    writer: pq.ParquetWriter | None = None
    try:
        for table in dataset.batches():
            scored = _score(table, tally)
            if writer is None:
                schema = table.schema
                writer = pq.ParquetWriter(job.output_dir / "scored.parquet", scored.schema)
            writer.write_table(scored)
            report_progress(tally.rows / dataset.num_rows)
    finally:
        if writer is not None:
            writer.close()
    print(f"{tally.rows} rows, {tally.duplicates} duplicates")
    return {
        "result": {
            "dataset_id": job.output_ids["dataset_id"],
            "dataset_uri": f"{job.artifacts_uri}scored.parquet",
            "num_rows": tally.rows,
            "schema": {"columns": _columns(schema)},
            "quality": tally.quality(),
            "duplicate_rows": tally.duplicates,
            "empty_fields": tally.empty_fields,
            "overlong_fields": tally.overlong_fields,
        },
        "metrics": {
            "rows_processed": tally.rows,
            "duration_sec": round(time.monotonic() - started, 3),
        },
    }


def _score(table: pa.Table, tally: Tally) -> pa.Table:
    instructions = _texts(table, _INSTRUCTION_NAMES)
    responses = _texts(table, _RESPONSE_NAMES)
    scores: list[Scores] = []
    duplicates: list[bool] = []
    for instruction, response in zip(instructions, responses, strict=True):
        row = score(instruction, response)
        scores.append(row)
        duplicates.append(tally.add(instruction, response, row))
    for name in ("clarity", "correctness", "educational"):
        column = pa.array([getattr(row, name) for row in scores], pa.float32())
        table = table.append_column(f"{name}_score", column)
    return table.append_column("is_duplicate", pa.array(duplicates, pa.bool_()))


def _texts(table: pa.Table, names: tuple[str, ...]) -> list[str]:
    """The first column that has one of the names, as text; empty where it is null."""
    for name in names:
        if name in table.column_names:
            return ["" if value is None else str(value) for value in table[name].to_pylist()]
    raise FatalError(f"the dataset has none of the columns {', '.join(names)}")


def _columns(schema: pa.Schema | None) -> list[dict[str, str]]:
    return [{"name": column.name, "dtype": str(column.type)} for column in schema or ()]
