"""What makes an answer count as the expected one."""

import difflib
import re

from .checks import is_right

_SPACE = re.compile(r"\s+")
_VALUE = re.compile(r"\d")
_REFUSAL = re.compile(
    r"\b(?:as an ai|i can(?:no|')t (?:help|answer)|i'm sorry, but)\b", re.IGNORECASE
)


def normalise(text: str) -> str:
    """Letter case, spacing, and a full stop at the end don't matter."""
    return _SPACE.sub(" ", text).strip().rstrip(".").casefold()


def is_exact(expected: str, given: str) -> bool:
    return normalise(expected) == normalise(given)


def is_correct(instruction: str, expected: str, given: str) -> bool:
    """Whether it holds the right value where that can be checked; else whether it is exact."""
    right = is_right(instruction, given)
    return is_exact(expected, given) if right is None else right


def is_refusal(text: str) -> bool:
    return _REFUSAL.search(text) is not None


def likeness(expected: str, given: str) -> float:
    """How alike two texts are in form, 0 to 1: their characters, with every digit a zero."""
    one, other = (_VALUE.sub("0", normalise(text)) for text in (expected, given))
    return difflib.SequenceMatcher(None, one, other, autojunk=False).ratio()
