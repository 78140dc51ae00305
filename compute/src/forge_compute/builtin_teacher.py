"""The rule-based teacher: right by construction, the same for the same seed, needs no network."""

import re
from collections.abc import Iterator, Sequence

from . import builtin_tasks
from .checks import is_right, right_answer
from .teachers import Answer, Brief, Pair, Unusable, Usage

_WORD_OR_SIGN = re.compile(r"\w+|[^\w\s]")
_WANTS_STEPS = re.compile(r"work|step|detail|explain|educat|reason|verbose", re.IGNORECASE)


def count_tokens(text: str) -> int:
    """The tokens of a text for teachers that have no tokenizer: its words, numbers and signs."""
    return len(_WORD_OR_SIGN.findall(text))


class BuiltinTeacher:
    """Answers what checks.py can check, and has no answer to anything else.

    A `style` that asks for steps, detail or explanation gets a worked sentence, any other the
    bare answer. Where the name is `builtin:mixed`, a `domain` or `task` that is one of the other
    builtin names (`dates`) picks that one. Nothing else of a brief has an effect.
    """

    concurrency = 1
    pairs_per_call = 500

    def __init__(self, name: str, seed: int, style: str | None) -> None:
        builtin_tasks.instructions(name, seed)  # refuses an unknown name before any work
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
            right = right_answer(instruction)
            if answer is None or right is None:
                raise Unusable(f"no rule answers {instruction!r}")
            pairs.append(
                Pair(
                    instruction,
                    answer.text,
                    right.topic,
                    answer.model,
                    answer.prompt_tokens,
                    answer.completion_tokens,
                )
            )
        return pairs

    async def answer(self, instruction: str) -> Answer | None:
        right = right_answer(instruction)
        if right is None:
            return None
        text = right.worked if self._shows_steps else right.answer
        answer = Answer(text, self._name, count_tokens(instruction), count_tokens(text))
        self.usage.prompt_tokens += answer.prompt_tokens
        self.usage.completion_tokens += answer.completion_tokens
        return answer

    async def judge(self, instruction: str, response: str) -> float | None:
        right = is_right(instruction, response)
        return None if right is None else float(right)

    async def close(self) -> None:
        pass

    def _narrowed(self, brief: Brief) -> str:
        if self._name == f"{builtin_tasks.PREFIX}mixed":
            for wish in (brief.domain, brief.task):
                name = f"{builtin_tasks.PREFIX}{(wish or '').strip().lower()}"
                if name in builtin_tasks.NAMES:
                    return name
        return self._name
