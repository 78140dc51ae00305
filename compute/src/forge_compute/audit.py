"""The audit handler: describes a dataset's content and scores each row."""

import time
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from datasketch import MinHash

from .audit_tally import Finding, Scope, Tally
from .datasets import INSTRUCTION_NAMES, RESPONSE_NAMES, Dataset, describe_columns, texts
from .failures import FatalError
from .job import Job, report_progress
from .judge import Verdicts, judge
from .near_duplicates import signatures
from .rows import Row
from .teachers import find_teacher

_SPLIT = "split"


def audit(job: Job) -> dict[str, Any]:
    """Writes a score for every row to scored.parquet. Reports counts, schema and quality.

    Counts exact duplicates, empty fields and overlong fields over all rows. Looks for
    near-duplicates among the first `near_duplicate_rows` rows that are not exact duplicates, and
    detects languages on a sample. The result has the number of rows that each count is based on.

    Params: near_duplicate_rows (50000), language_rows (2000), judge (a teacher's name),
    judge_rows (50).
    """
    started = time.monotonic()
    dataset = Dataset(job.input("dataset_uri"))
    if dataset.num_rows == 0:
        raise FatalError("the dataset has no rows")
    judge_name = job.params.text("judge")
    judge_rows = job.params.integer("judge_rows", 50, 1, 100_000) if judge_name else 0
    teacher = find_teacher(job, judge_name) if judge_name else None
    tally = Tally(
        Scope(
            rows=dataset.num_rows,
            near_duplicate_rows=job.params.integer("near_duplicate_rows", 50_000, 0, 10**7),
            language_rows=job.params.integer("language_rows", 2_000, 0, 10**9),
            judged_rows=judge_rows,
        )
    )
    schema = _score_rows(job, dataset, tally)
    quality = tally.quality()
    verdicts = judge(teacher, tally.to_judge) if teacher else None
    if verdicts and verdicts.mean is not None:
        quality["judge_mean"] = verdicts.mean
    print(
        f"{tally.rows} rows, {tally.duplicates} duplicates, {tally.near_duplicates} near-duplicates"
    )
    return {
        "result": {
            "dataset_id": job.output_ids["dataset_id"],
            "dataset_uri": job.uri("scored.parquet"),
            "num_rows": tally.rows,
            "schema": {"columns": describe_columns(schema)},
            "quality": quality,
            **tally.counts(),
            **(_judged(judge_name, verdicts) if verdicts else {}),
        },
        "metrics": {
            "rows_processed": tally.rows,
            "duration_sec": round(time.monotonic() - started, 3),
            **(_tokens(verdicts) if verdicts else {}),
        },
    }


def _tokens(verdicts: Verdicts) -> dict[str, int]:
    return {
        "tokens_used": verdicts.read + verdicts.written,
        "input_tokens": verdicts.read,
        "output_tokens": verdicts.written,
    }


def _score_rows(job: Job, dataset: Dataset, tally: Tally) -> pa.Schema:
    """Writes scored.parquet. Returns its schema: the dataset's columns, then the findings."""
    schema: pa.Schema | None = None
    writer: pq.ParquetWriter | None = None
    try:
        for table in dataset.batches():
            scored = _with_findings(table, _examine(table, tally))
            if writer is None:
                schema = scored.schema
                writer = pq.ParquetWriter(job.output_dir / "scored.parquet", schema)
            writer.write_table(scored)
            report_progress(tally.rows / dataset.num_rows, {"rows_processed": tally.rows})
    finally:
        if writer is not None:
            writer.close()
    return schema


def _examine(table: pa.Table, tally: Tally) -> list[Finding]:
    instructions = texts(table, INSTRUCTION_NAMES)
    responses = texts(table, RESPONSE_NAMES)
    rows = [Row(*pair) for pair in zip(instructions, responses, strict=True)]
    row_signatures: list[MinHash] | list[None] = [None] * len(rows)
    if tally.compares:
        row_signatures = signatures([f"{row.instruction} {row.response}" for row in rows])
    findings = [tally.add(*pair) for pair in zip(rows, row_signatures, strict=True)]
    if _SPLIT in table.column_names:
        splits = texts(table, (_SPLIT,))
        for split, signature in zip(splits, signatures(instructions), strict=True):
            tally.add_split(split, signature)
    return findings


def _with_findings(table: pa.Table, findings: list[Finding]) -> pa.Table:
    """Adds the columns of the findings.

    The language is in the column `detected_language` if the dataset has its own column `language`.
    """
    names = table.column_names
    has_own_language = "language" in names and (
        "detected_language" in names or "clarity_score" not in names
    )
    for name in ("clarity", "correctness", "educational"):
        values = [getattr(finding.scores, name) for finding in findings]
        table = _with_column(table, f"{name}_score", pa.array(values, pa.float32()))
    for name in ("is_duplicate", "is_near_duplicate"):
        values = [getattr(finding, name) for finding in findings]
        table = _with_column(table, name, pa.array(values, pa.bool_()))
    languages = pa.array([finding.language for finding in findings], pa.string())
    name = "detected_language" if has_own_language else "language"
    return _with_column(table, name, languages)


def _with_column(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    """Adds the column, or replaces it: a dataset that was audited before already has it."""
    if name in table.column_names:
        return table.set_column(table.column_names.index(name), name, values)
    return table.append_column(name, values)


def _judged(name: str | None, verdicts: Verdicts) -> dict[str, Any]:
    return {"judge": name, "judge_rows": verdicts.judged, "judge_unusable": verdicts.unusable}
