"""Limits the number of unusable answers that a job accepts from a teacher."""

from collections import Counter

from .failures import FatalError
from .teachers import Answer, Teacher, Unusable

_TRIES = 3


class UnusableAnswers:
    def __init__(self, limit: int) -> None:
        """limit: number of accepted unusable answers. The next one raises FatalError."""
        self._limit = limit
        self._reasons: Counter[str] = Counter()

    @property
    def count(self) -> int:
        """Number of unusable answers so far."""
        return self._reasons.total()

    def record(self, reason: str) -> None:
        self._reasons[reason] += 1
        if self.count > self._limit:
            raise FatalError(f"the teacher gave {self.count} unusable answers: {self}")

    def __str__(self) -> str:
        return ", ".join(f"{count} × {reason}" for reason, count in self._reasons.most_common(5))


async def request_answer(
    teacher: Teacher, instruction: str, unusable_answers: UnusableAnswers
) -> Answer | None:
    """Requests the teacher's answer, up to three times.

    None if the teacher can't answer this kind of instruction. Raises Unusable if all three answers
    were unusable.
    """
    tries = 0
    while True:
        try:
            return await teacher.answer(instruction)
        except Unusable as error:
            unusable_answers.record(str(error))
            tries += 1
            if tries == _TRIES:
                raise
