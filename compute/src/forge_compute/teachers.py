"""Teachers: what answers instructions, makes instruction/response pairs, and judges them.

A name is resolved in this order: `builtin:<name>`, rule-based and offline; an entry of the job's
`teachers`; its entry `*`, an endpoint that knows many models by their names.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from . import builtin_tasks
from .failures import FatalError
from .job import Job


@dataclass(frozen=True)
class Brief:
    """What the job's owner asked the pairs to be."""

    task: str
    domain: str | None
    style: str | None


@dataclass
class Usage:
    """Tokens of all a teacher's answers, unusable ones included: they had to be paid for too."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    is_estimated: bool = False
    """True if any answer came without numbers, so that its words and signs were counted."""


@dataclass(frozen=True)
class Pair:
    instruction: str
    response: str
    topic: str | None
    model: str
    prompt_tokens: int
    """Of the call that gave this pair: its share, if the call gave several; so with completion."""
    completion_tokens: int


@dataclass(frozen=True)
class Answer:
    text: str
    model: str
    prompt_tokens: int
    completion_tokens: int


class Unusable(Exception):
    """The teacher answered, but not what was asked for; it may do better if asked again."""


class Teacher(Protocol):
    usage: Usage
    pairs_per_call: int
    """How many pairs are best asked for at once."""
    concurrency: int
    """How many calls may be under way at once."""

    async def pairs(self, brief: Brief, count: int, avoid: Sequence[str]) -> list[Pair]:
        """At most `count` pairs, none with an instruction of `avoid`. Raises Unusable."""

    async def answer(self, instruction: str) -> Answer | None:
        """None where this teacher has no answer to such instructions. Raises Unusable."""

    async def judge(self, instruction: str, response: str) -> float | None:
        """How good the response is, 0 to 1; None where this teacher can't tell. Raises Unusable."""

    async def close(self) -> None: ...


def find_teacher(job: Job, name: str) -> Teacher:
    """Raises FatalError, naming what there is, for a name that stands for no teacher."""
    if name.startswith(builtin_tasks.PREFIX):
        from .builtin_teacher import BuiltinTeacher

        seed = job.params.integer("seed", 0, 0, 2**63 - 1)
        return BuiltinTeacher(name, seed, job.payload.get("style") or job.params.text("style"))
    entry = job.teachers.get(name)
    model = name
    if entry is None:
        entry = job.teachers.get("*")
    elif entry.get("model"):
        model = str(entry["model"])
    if entry is None:
        known = ", ".join([*sorted(job.teachers), *builtin_tasks.NAMES])
        raise FatalError(f"there is no teacher {name}; there are {known}")
    from .endpoint_teacher import EndpointTeacher

    return EndpointTeacher(str(entry["base_url"]), model, _key_of(name, entry), job.params)


def _key_of(name: str, entry: dict[str, object]) -> str | None:
    if entry.get("api_key"):
        return str(entry["api_key"])
    variable = entry.get("api_key_env")
    if not variable:
        return None
    key = os.environ.get(str(variable))
    if not key:
        raise FatalError(f"teacher {name} needs a key, and {variable} is not set on this worker")
    return key
