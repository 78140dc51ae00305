"""How often a teacher may answer with something unusable before its job is given up."""

from collections import Counter

from .failures import FatalError
from .teachers import Answer, Teacher, Unusable

_TRIES = 3


class Patience:
    def __init__(self, limit: int) -> None:
        """limit: so many unusable answers are borne; the next one raises FatalError."""
        self._limit = limit
        self._reasons: Counter[str] = Counter()

    @property
    def unusable(self) -> int:
        """How many unusable answers there were."""
        return self._reasons.total()

    def bear(self, reason: str) -> None:
        self._reasons[reason] += 1
        if self.unusable > self._limit:
            raise FatalError(f"the teacher gave {self.unusable} unusable answers: {self}")

    def __str__(self) -> str:
        return ", ".join(f"{count} × {reason}" for reason, count in self._reasons.most_common(5))


async def ask_for_answer(teacher: Teacher, instruction: str, patience: Patience) -> Answer | None:
    """The teacher's answer, asked for up to three times; None if it has none to such instructions.

    Raises Unusable if none of the three was usable.
    """
    tries = 0
    while True:
        try:
            return await teacher.answer(instruction)
        except Unusable as error:
            patience.bear(str(error))
            tries += 1
            if tries == _TRIES:
                raise
