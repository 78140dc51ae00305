"""Teachers answer instructions, write instruction/response pairs, and judge responses.

A teacher's name is resolved in this order:
1. `builtin:<name>`: a rule-based teacher, which works offline.
2. The entry with this name in the job's `teachers`: an endpoint.
3. The entry `*` in `teachers`: an endpoint with many models. The teacher's name selects the model.
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
    """The job owner's description of the pairs to write."""

    task: str
    domain: str | None
    style: str | None


@dataclass
class Usage:
    """Tokens of all answers of a teacher, including unusable ones, which also cost money."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    is_estimated: bool = False
    """True if an answer had no usage data, so that its tokens were estimated from the text."""


@dataclass(frozen=True)
class Pair:
    instruction: str
    response: str
    topic: str | None
    model: str
    prompt_tokens: int
    """Tokens of the call that returned this pair, divided by the number of pairs."""
    completion_tokens: int


@dataclass(frozen=True)
class Answer:
    text: str
    model: str
    prompt_tokens: int
    completion_tokens: int

    def paired(self, instruction: str, topic: str | None = None) -> Pair:
        usage = (self.prompt_tokens, self.completion_tokens)
        return Pair(instruction, self.text, topic, self.model, *usage)


class Unusable(Exception):
    """The teacher's answer is empty, cut off or malformed. A retry may succeed."""


class Teacher(Protocol):
    usage: Usage
    pairs_per_call: int
    """The best number of pairs per call."""
    concurrency: int
    """Maximum number of concurrent calls."""

    async def pairs(self, brief: Brief, count: int, avoid: Sequence[str]) -> list[Pair]:
        """Returns at most `count` pairs. Raises Unusable.

        `avoid`: instructions that an endpoint is asked not to repeat. Builtin teachers ignore it.
        """

    async def answer(self, instruction: str) -> Answer | None:
        """Returns None if this teacher can't answer this kind of instruction. Raises Unusable."""

    async def judge(self, instruction: str, response: str) -> float | None:
        """Rates a response from 0 to 1. None if the teacher can't rate it. Raises Unusable."""

    async def close(self) -> None: ...


def find_teacher(job: Job, name: str) -> Teacher:
    """Returns the teacher with this name.

    Raises FatalError for an unknown name, and if the environment variable that should hold the
    teacher's API key is not set.
    """
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
        raise FatalError(f"unknown teacher {name}; use one of {known}")
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
        raise FatalError(f"teacher {name} needs a key, but {variable} is not set on this worker")
    return key
