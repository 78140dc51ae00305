"""The evaluate handler: tests a checkpoint on rows that it was not trained on."""

import json
import time
from itertools import islice
from pathlib import Path
from typing import Any

from . import builtin_tasks
from .answers import is_correct, is_exact, is_refusal, similarity
from .checks import correct_answer
from .datasets import Dataset
from .decoding import Written, write_all
from .examples import encode, fitting
from .failures import FatalError
from .job import Job, report_progress
from .language_model import LanguageModel, load_model, parameter_count
from .loss import mean_loss, perplexity
from .rows import Row, read_rows

_BATCH = 256
_SHOWN = 10
_SPARE_TOKENS = 8
_BUILTIN_ROWS = 200
_BENCHMARK_SEED = 2**20 + 7
"""Differs from the default seed of `generate`, so that a benchmark differs from training data."""


def evaluate(job: Job) -> dict[str, Any]:
    """Writes report.json, with scores from 0 to 1 over the rows:

    overall      share of answers that equal the expected one (ignoring letter case, spacing and a
                 final full stop) and are not cut off
    correctness  share of answers that have the correct value and are not cut off; an answer that
                 checks.py can't check must equal the expected one
    helpfulness  share of real answers: not empty, not cut off, not a refusal
    style        mean similarity of the text to the expected answer; all digits count as equal

    Rows: `benchmark` (a dataset, or builtin:<name>), else the checkpoint's heldout.parquet.
    Params: limit (maximum number of rows, 1000).
    """
    started = time.monotonic()
    folder = job.input("checkpoint_id")
    model = load_model(folder)
    name, rows = _rows(job, folder)
    print(f"{model.name}, {parameter_count(model):,} parameters; {len(rows)} rows of {name}")
    tally = Tally(model)

    def metrics() -> dict[str, Any]:
        return {
            "samples_evaluated": len(tally.answers),
            "tokens_used": tally.read + tally.written,
            "input_tokens": tally.read,
            "output_tokens": tally.written,
            "duration_sec": round(time.monotonic() - started, 3),
        }

    for start in range(0, len(rows), _BATCH):
        tally.add(rows[start : start + _BATCH])
        report_progress(len(tally.answers) / len(rows), metrics())
    scores = tally.scores()
    loss = mean_loss(model, fitting(model, rows))
    report = {
        "eval_id": job.output_ids["eval_id"],
        "checkpoint_id": job.payload["checkpoint_id"],
        "datasets": [name],
        "scores": scores,
        "exact_match": scores["overall"],
        "loss": loss,
        "perplexity": perplexity(loss),
        "samples_evaluated": len(rows),
        "examples": tally.answers[:_SHOWN],
        "wrong_examples": [answer for answer in tally.answers if not answer["exact"]][:_SHOWN],
    }
    (job.output_dir / "report.json").write_text(json.dumps(report, indent=2, ensure_ascii=False))
    print(f"{scores}, perplexity {report['perplexity']}")
    return {
        "result": {
            "eval_id": job.output_ids["eval_id"],
            "report_uri": job.uri("report.json"),
            "scores": scores,
            "datasets": [name],
            "exact_match": scores["overall"],
            "perplexity": report["perplexity"],
            "samples_evaluated": len(rows),
        },
        "metrics": metrics(),
    }


class Tally:
    """Collects the answers and computes the scores."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self._helpful = 0
        self._correct = 0
        self._similarity = 0.0
        self.answers: list[dict[str, Any]] = []
        self.read = 0
        self.written = 0
        """`read` and `written`: tokens of all prompts, and of all answers."""

    def add(self, rows: list[Row]) -> None:
        examples = [encode(self._model, row) for row in rows]
        longest = max(len(example.response) for example in examples)
        prompts = [example.prompt for example in examples]
        written = write_all(self._model, prompts, longest + _SPARE_TOKENS)
        for row, prompt, answer in zip(rows, prompts, written, strict=True):
            self.read += len(prompt)
            self.written += len(answer.tokens)
            self._judge(row, answer)

    def scores(self) -> dict[str, float]:
        count = len(self.answers)
        exact = sum(answer["exact"] for answer in self.answers)
        return {
            "overall": round(exact / count, 4),
            "helpfulness": round(self._helpful / count, 4),
            "correctness": round(self._correct / count, 4),
            "style": round(self._similarity / count, 4),
        }

    def _judge(self, row: Row, written: Written) -> None:
        text = self._model.decode(written.tokens)
        self._helpful += written.is_finished and bool(text.strip()) and not is_refusal(text)
        self._correct += written.is_finished and is_correct(row.instruction, row.response, text)
        self._similarity += similarity(row.response, text)
        self.answers.append(
            {
                "instruction": row.instruction,
                "expected": row.response,
                "answer": text,
                "exact": written.is_finished and is_exact(row.response, text),
            }
        )


def _rows(job: Job, checkpoint: Path) -> tuple[str, list[Row]]:
    """Returns the dataset's name and its rows."""
    limit = job.params.integer("limit", 1_000, 1, 1_000_000)
    benchmark = job.payload.get("benchmark")
    if benchmark and benchmark.startswith(builtin_tasks.PREFIX):
        return benchmark, _builtin_rows(benchmark, min(limit, _BUILTIN_ROWS))
    path = job.input("benchmark") if benchmark else checkpoint / "heldout.parquet"
    if not path.exists():
        raise FatalError("the checkpoint has no heldout.parquet; set benchmark")
    name = benchmark or f"{job.payload['checkpoint_id']}/heldout.parquet"
    rows = list(islice(read_rows(Dataset(path)), limit))
    if not rows:
        raise FatalError(f"{name} has no rows to evaluate on")
    return name, rows


def _builtin_rows(name: str, count: int) -> list[Row]:
    """Rows of a builtin task. In a small task, some rows may also be in the training data."""
    rows = []
    for instruction in islice(builtin_tasks.instructions(name, _BENCHMARK_SEED), count):
        correct = correct_answer(instruction)
        if correct:
            rows.append(Row(instruction, correct.answer))
    return rows
