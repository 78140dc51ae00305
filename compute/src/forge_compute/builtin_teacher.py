"""The rule-based teacher: always correct, deterministic for a seed, works offline."""

import re
from collections.abc import Iterator, Sequence

from . import builtin_tasks
from .checks import contains_answer, correct_answer
from .teachers import Answer, Brief, Pair, Unusable, Usage

_WORD_OR_SIGN = re.compile(r"\w+|[^\w\s]")
_WANTS_STEPS = re.compile(r"work|step|detail|explain|educat|reason|verbose", re.IGNORECASE)


def count_tokens(text: str) -> int:
    """Estimates a text's tokens without a tokenizer: counts its words, numbers and signs."""
    return len(_WORD_OR_SIGN.findall(text))


class BuiltinTeacher:
    """Answers instructions that checks.py can check, and no others.

    If `style` asks for steps, detail or an explanation, an answer is a full sentence. Otherwise, it
    is the bare value.

    If the `domain` or `task` of the Brief is the name of a builtin task, such as `dates`, the
    teacher `builtin:mixed` writes only instructions of this task. Other builtin teachers ignore
    both fields.
    """

    concurrency = 1
    pairs_per_call = 500

    def __init__(self, name: str, seed: int, style: str | None) -> None:
        builtin_tasks.instructions(name, seed)  # fail early for an unknown name
        self.usage = Usage(is_estimated=True)
        self._name = name
        self._seed = seed
        self._shows_steps = bool(style and _WANTS_STEPS.search(style))
        self._instructions: Iterator[str] | None = None

    async def pairs(self, brief: Brief, count: int, avoid: Sequence[str]) -> list[Pair]:
        if self._instructions is None:
            name = self._narrowed(brief)
            print(f"{name}, {'worked' if self._shows_steps else 'bare'} answers")
            self._instructions = builtin_tasks.instructions(name, self._seed)
        pairs = []
        for _ in range(count):
            instruction = next(self._instructions)
            answer = await self.answer(instruction)
            correct = correct_answer(instruction)
            if answer is None or correct is None:
                raise Unusable(f"no rule answers {instruction!r}")
            pairs.append(answer.paired(instruction, correct.topic))
        return pairs

    async def answer(self, instruction: str) -> Answer | None:
        correct = correct_answer(instruction)
        if correct is None:
            return None
        text = correct.worked if self._shows_steps else correct.answer
        answer = Answer(text, self._name, count_tokens(instruction), count_tokens(text))
        self.usage.prompt_tokens += answer.prompt_tokens
        self.usage.completion_tokens += answer.completion_tokens
        return answer

    async def judge(self, instruction: str, response: str) -> float | None:
        correct = contains_answer(instruction, response)
        return None if correct is None else float(correct)

    async def close(self) -> None:
        pass

    def _narrowed(self, brief: Brief) -> str:
        if self._name == f"{builtin_tasks.PREFIX}mixed":
            for topic in (brief.domain, brief.task):
                name = f"{builtin_tasks.PREFIX}{(topic or '').strip().lower()}"
                if name in builtin_tasks.NAMES:
                    return name
        return self._name
