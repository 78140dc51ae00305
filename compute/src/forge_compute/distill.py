"""The distill handler: lets a teacher answer a dataset's good rows, and writes sft.parquet."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from .concurrently import concurrently
from .datasets import INSTRUCTION_NAMES, RESPONSE_NAMES, Dataset, describe_columns, texts
from .failures import FatalError
from .job import Job, report_progress
from .rows import Row
from .rows_file import RowsFile
from .scores import score
from .seen_rows import SeenRows
from .teachers import Teacher, Unusable, find_teacher
from .unusable_answers import UnusableAnswers, request_answer

SCHEMA = pa.schema(
    {
        "instruction": pa.string(),
        "response": pa.string(),
        "source_dataset": pa.string(),
        "source_row": pa.int64(),
        "original_response": pa.string(),
        "score": pa.float32(),
        "teacher": pa.string(),
        "model": pa.string(),
        "prompt_tokens": pa.int64(),
        "completion_tokens": pa.int64(),
    }
)
_SCORE_COLUMNS = ("clarity_score", "correctness_score", "educational_score")


CanRead = Callable[[str, str], bool]
"""Whether an instruction and a response fit into the context of the student, the model to train."""


@dataclass(frozen=True, slots=True)
class SelectedRow:
    row: Row
    index: int
    """Index of the row in its dataset, from 0."""
    score: float


class Selection:
    """Selects the rows for the teacher. Counts the rows that it leaves out, by reason."""

    def __init__(self, dataset: Dataset, min_score: float, can_read: CanRead) -> None:
        self._dataset = dataset
        self._min_score = min_score
        self._can_read = can_read
        self.read = 0
        self.low = 0
        self.duplicates = 0
        self.too_long = 0

    def rows(self) -> Iterator[SelectedRow]:
        seen = SeenRows()
        for table in self._dataset.batches():
            instructions = texts(table, INSTRUCTION_NAMES)
            responses = texts(table, RESPONSE_NAMES)
            rows = [Row(*pair) for pair in zip(instructions, responses, strict=True)]
            for row, mean in zip(rows, _means(table, rows), strict=True):
                index = self.read
                self.read += 1
                if mean < self._min_score:
                    self.low += 1
                elif seen.is_repeat(Row(row.instruction, "")):
                    # Compares only instructions, because the teacher writes new responses.
                    self.duplicates += 1
                elif not self._can_read(row.instruction, ""):
                    self.too_long += 1
                else:
                    yield SelectedRow(row, index, mean)


def distill(job: Job) -> dict[str, Any]:
    """Selects rows of the dataset, and writes them with the teacher's answers, in the same order.

    Selects rows with a mean score of at least `min_score`. Of rows with the same instruction,
    selects only the first. If a builtin teacher can't answer a row's instruction, the row keeps its
    original response, and its `teacher` is null. Skips and counts rows for which the teacher gave
    only unusable answers. If `student_model` is given (a model name as for `train`), also skips and
    counts rows that are too long for this model.

    Params: min_score (0.6), max_unusable, style and seed for builtin teachers, and the params of
    EndpointTeacher.
    """
    return asyncio.run(_distill(job))


async def _distill(job: Job) -> dict[str, Any]:
    started = time.monotonic()
    name = str(job.payload["teacher"])
    source = str(job.payload.get("dataset_id") or job.payload["dataset_uri"])
    dataset = Dataset(job.input("dataset_id", "dataset_uri"))
    can_read = _reader(job.payload.get("student_model"))
    selection = Selection(dataset, job.params.number("min_score", 0.6, 0, 1), can_read)
    limit = max(20, dataset.num_rows)
    unusable_answers = UnusableAnswers(job.params.integer("max_unusable", limit, 0, 10**9))
    teacher = find_teacher(job, name)
    kept_originals = unanswered = 0

    def metrics(pairs: int) -> dict[str, Any]:
        return {
            "tokens_generated": teacher.usage.completion_tokens,
            "input_tokens": teacher.usage.prompt_tokens,
            "num_pairs": pairs,
            "teacher_model": name,
            "duration_sec": round(time.monotonic() - started, 3),
        }

    async def call(selected: SelectedRow) -> dict[str, Any] | None:
        return await _answered(teacher, name, selected, source, unusable_answers)

    try:
        with RowsFile(job.output_dir / "sft.parquet", SCHEMA) as file:
            calls = map(call, selection.rows())
            async with aclosing(concurrently(calls, teacher.concurrency)) as rows:
                async for row in rows:
                    if row is None:
                        unanswered += 1
                        continue
                    if not can_read(row["instruction"], row["response"]):
                        selection.too_long += 1
                        continue
                    kept_originals += row["teacher"] is None
                    file.add(row)
                    if file.num_rows % 100 == 0:
                        report_progress(selection.read / dataset.num_rows, metrics(file.num_rows))
    finally:
        await teacher.close()
    pairs = file.num_rows
    print(
        f"{pairs} pairs of {selection.read} rows: {selection.low} scored too low, "
        f"{selection.duplicates} duplicates, {selection.too_long} too long for the student, "
        f"{unanswered} without a usable answer"
    )
    if pairs == 0:
        raise FatalError(
            f"none of {selection.read} rows can be used: {selection.low} scored too low, "
            f"{selection.too_long} were too long for the student, "
            f"{unanswered} got no usable answer ({unusable_answers})"
        )
    return {
        "result": {
            "distilled_dataset_id": job.output_ids["distilled_dataset_id"],
            "dataset_uri": job.uri("sft.parquet"),
            "num_pairs": pairs,
            "num_rows": pairs,
            "schema": {"columns": describe_columns(SCHEMA)},
            "low_score_rows": selection.low,
            "duplicate_rows": selection.duplicates,
            "too_long_rows": selection.too_long,
            "unanswered_rows": unanswered,
            "kept_original_rows": kept_originals,
            "tokens_estimated": teacher.usage.is_estimated,
        },
        "metrics": metrics(pairs),
    }


def _reader(student: str | None) -> CanRead:
    """Returns a function that tells whether a row fits into the student's context.

    Without a student, all rows fit. Raises FatalError for an unknown model.
    """
    if student is None:
        return lambda *_: True
    # Import here, because these modules need PyTorch.
    from .examples import fitting
    from .language_model import create_model

    model = create_model(student, weights=False)
    return lambda instruction, response: bool(fitting(model, [Row(instruction, response)]))


async def _answered(
    teacher: Teacher,
    name: str,
    selected: SelectedRow,
    source: str,
    unusable_answers: UnusableAnswers,
) -> dict[str, Any] | None:
    """Returns the row of sft.parquet. None if all the teacher's answers were unusable."""
    try:
        answer = await request_answer(teacher, selected.row.instruction, unusable_answers)
    except Unusable:
        return None
    return {
        "instruction": selected.row.instruction,
        "response": answer.text if answer else selected.row.response,
        "source_dataset": source,
        "source_row": selected.index,
        "original_response": selected.row.response,
        "score": selected.score,
        "teacher": name if answer else None,
        "model": answer.model if answer else None,
        "prompt_tokens": answer.prompt_tokens if answer else None,
        "completion_tokens": answer.completion_tokens if answer else None,
    }


def _means(table: pa.Table, rows: list[Row]) -> list[float]:
    """Returns each row's mean score.

    Uses the scores of the audit if the dataset was audited. Otherwise, computes the scores.
    """
    if all(name in table.column_names for name in _SCORE_COLUMNS):
        columns = [table[name].to_pylist() for name in _SCORE_COLUMNS]
        return [sum(value or 0.0 for value in values) / 3 for values in zip(*columns, strict=True)]
    scores = (score(row.instruction, row.response) for row in rows)
    return [(one.clarity + one.correctness + one.educational) / 3 for one in scores]
