"""Lets a teacher judge a sample of rows."""

import asyncio
from dataclasses import dataclass

from .concurrently import concurrently
from .failures import FatalError
from .rows import Row
from .teachers import Teacher, Unusable


@dataclass(frozen=True)
class Verdicts:
    mean: float | None
    """From 0 to 1. None if the teacher can't judge any row."""
    judged: int
    unusable: int
    """Number of rows for which the teacher's answer was not a verdict."""
    read: int
    written: int
    """`read` and `written`: tokens of all prompts, and of all answers."""


def judge(teacher: Teacher, rows: list[Row]) -> Verdicts:
    """Lets the teacher judge the rows. Raises FatalError if all its answers are unusable."""
    return asyncio.run(_judge(teacher, rows))


async def _judge(teacher: Teacher, rows: list[Row]) -> Verdicts:
    unusable = 0
    verdicts: list[float] = []

    async def call(row: Row) -> float | None:
        nonlocal unusable
        try:
            return await teacher.judge(row.instruction, row.response)
        except Unusable:
            unusable += 1
            return None

    try:
        async for verdict in concurrently(map(call, rows), teacher.concurrency):
            if verdict is not None:
                verdicts.append(verdict)
    finally:
        await teacher.close()
    if rows and unusable == len(rows):
        raise FatalError(f"the judge gave no usable verdict for any of {unusable} rows")
    mean = round(sum(verdicts) / len(verdicts), 4) if verdicts else None
    usage = teacher.usage
    return Verdicts(mean, len(verdicts), unusable, usage.prompt_tokens, usage.completion_tokens)
