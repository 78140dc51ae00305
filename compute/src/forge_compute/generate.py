"""The generate handler: writes instruction/response pairs of a teacher to raw.parquet.

By default, the teacher writes both the instructions and the responses. If `params.prompts` is set
(a dataset, or builtin:<name>), the teacher only answers the instructions from there. Even a small
model can do this.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import asdict
from itertools import islice
from typing import Any

import pyarrow as pa

from . import builtin_tasks
from .concurrently import concurrently
from .datasets import INSTRUCTION_NAMES, Dataset, describe_columns, texts
from .failures import FatalError
from .job import Job, report_progress
from .rows_file import RowsFile
from .teachers import Brief, Pair, Teacher, Unusable, find_teacher
from .unusable_answers import UnusableAnswers, request_answer

SCHEMA = pa.schema(
    {
        "instruction": pa.string(),
        "response": pa.string(),
        "topic": pa.string(),
        "teacher": pa.string(),
        "model": pa.string(),
        "prompt_tokens": pa.int64(),
        "completion_tokens": pa.int64(),
    }
)
_PROMPTS_AT_ONCE = 1_000
_AVOIDED_INSTRUCTIONS = 20
"""How many of the latest instructions are shown to the teacher, to avoid repetition."""


def generate(job: Job) -> dict[str, Any]:
    """Writes exactly `size` rows.

    Instructions that an endpoint writes are unique. Instructions from `prompts` or a builtin
    teacher may repeat.

    Params: prompts, seed, max_unusable, and the params of EndpointTeacher.
    """
    return asyncio.run(_generate(job))


async def _generate(job: Job) -> dict[str, Any]:
    started = time.monotonic()
    size = int(job.payload["size"])
    name = str(job.payload["teacher"])
    unusable_answers = UnusableAnswers(job.params.integer("max_unusable", max(20, size), 0, 10**9))
    teacher = find_teacher(job, name)

    def metrics() -> dict[str, Any]:
        return {
            "tokens_generated": teacher.usage.completion_tokens,
            "input_tokens": teacher.usage.prompt_tokens,
            "teacher_model": name,
            "unusable_answers": unusable_answers.count,
            "duration_sec": round(time.monotonic() - started, 3),
        }

    source = _answered(job, teacher, unusable_answers) if "prompts" in job.params else None
    batches = source or _written(job, teacher, unusable_answers)
    try:
        with RowsFile(job.output_dir / "raw.parquet", SCHEMA) as file:
            async with aclosing(batches):
                async for pairs in batches:
                    for pair in pairs[: size - file.num_rows]:
                        file.add({**asdict(pair), "teacher": name})
                    report_progress(file.num_rows / size, metrics())
                    if file.num_rows == size:
                        break
    finally:
        await teacher.close()
    print(f"{size} rows by {name}, {teacher.usage.completion_tokens} tokens")
    if unusable_answers.count:
        print(f"retried {unusable_answers.count} unusable answers: {unusable_answers}")
    return {
        "result": {
            "dataset_id": job.output_ids["dataset_id"],
            "dataset_uri": job.uri("raw.parquet"),
            "num_rows": size,
            "schema": {"columns": describe_columns(SCHEMA)},
            "tokens_estimated": teacher.usage.is_estimated,
        },
        "metrics": metrics(),
    }


async def _written(
    job: Job, teacher: Teacher, unusable_answers: UnusableAnswers
) -> AsyncGenerator[list[Pair], None]:
    """Yields `size` pairs that the teacher writes.

    Skips pairs that repeat an instruction, except those of a builtin teacher.
    """
    payload = job.payload
    brief = Brief(payload["task"], payload.get("domain"), payload.get("style"))
    wanted = int(payload["size"])
    newest: deque[str] = deque(maxlen=_AVOIDED_INSTRUCTIONS)
    seen: set[str] = set()

    async def call(count: int) -> list[Pair]:
        try:
            return await teacher.pairs(brief, count, list(newest))
        except Unusable as error:
            unusable_answers.record(str(error))
            return []

    may_repeat = payload["teacher"].startswith(builtin_tasks.PREFIX)
    while wanted > 0:
        calls = (call(count) for count in _portions(wanted, teacher.pairs_per_call))
        async with aclosing(concurrently(calls, teacher.concurrency)) as answers:
            async for pairs in answers:
                fresh = []
                for pair in pairs:
                    if pair.instruction in seen and not may_repeat:
                        unusable_answers.record("it repeated an instruction")
                        continue
                    if not may_repeat:
                        seen.add(pair.instruction)
                    newest.append(pair.instruction)
                    fresh.append(pair)
                wanted -= len(fresh)
                yield fresh


async def _answered(
    job: Job, teacher: Teacher, unusable_answers: UnusableAnswers
) -> AsyncGenerator[list[Pair], None]:
    """Yields the teacher's answers to the given instructions.

    Raises FatalError if the instructions run out before there are `size` answers.
    """
    size = wanted = int(job.payload["size"])
    prompts = _prompts(job)

    async def call(instruction: str) -> Pair | None:
        try:
            answer = await request_answer(teacher, instruction, unusable_answers)
        except Unusable:
            return None
        return answer.paired(instruction) if answer else None

    # Never request more answers than the number of missing rows, because each answer costs money.
    while wanted > 0 and (next_ones := list(islice(prompts, min(wanted, _PROMPTS_AT_ONCE)))):
        async with aclosing(concurrently(map(call, next_ones), teacher.concurrency)) as pairs:
            async for pair in pairs:
                if pair:
                    wanted -= 1
                    yield [pair]
    if wanted > 0:
        raise FatalError(f"the prompts ran out after {size - wanted} of {size} rows")


def _prompts(job: Job) -> Iterator[str]:
    name = job.params.text("prompts") or ""
    if name.startswith(builtin_tasks.PREFIX):
        # A builtin task generates instructions without end, so limit them. Take more than `size`,
        # because some instructions may get no usable answer.
        seed = job.params.integer("seed", 0, 0, 2**63 - 1)
        return islice(builtin_tasks.instructions(name, seed), 2 * int(job.payload["size"]) + 20)
    return (
        text
        for table in Dataset(job.input("prompts")).batches()
        for text in texts(table, INSTRUCTION_NAMES)
        if text.strip()
    )


def _portions(total: int, maximum: int) -> Iterator[int]:
    while total > 0:
        yield min(total, maximum)
        total -= maximum
