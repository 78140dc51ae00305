"""Compares a model's answer with the expected one."""

import difflib
import re

from .checks import contains_answer

_SPACE = re.compile(r"\s+")
_VALUE = re.compile(r"\d")
_REFUSAL = re.compile(
    r"\b(?:as an ai|i can(?:no|')t (?:help|answer)|i'm sorry, but)\b", re.IGNORECASE
)


def normalise(text: str) -> str:
    """Removes differences in letter case and spacing, and a final full stop."""
    return _SPACE.sub(" ", text).strip().rstrip(".").casefold()


def is_exact(expected: str, given: str) -> bool:
    return normalise(expected) == normalise(given)


def is_correct(instruction: str, expected: str, given: str) -> bool:
    """Whether the answer is correct.

    If checks.py can check the instruction, the answer must have the correct value. Otherwise, it
    must equal the expected answer.
    """
    correct = contains_answer(instruction, given)
    return is_exact(expected, given) if correct is None else correct


def is_refusal(text: str) -> bool:
    return _REFUSAL.search(text) is not None


def similarity(expected: str, given: str) -> float:
    """The similarity of two texts, from 0 to 1. All digits count as equal."""
    one, other = (_VALUE.sub("0", normalise(text)) for text in (expected, given))
    return difflib.SequenceMatcher(None, one, other, autojunk=False).ratio()
