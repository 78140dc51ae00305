"""Scores per row, from 0 to 1, by simple heuristics.

clarity      starts at 1; -0.5 for an instruction under 3 words, -0.3 for sentences over 40 words on
             average, -0.2 without closing punctuation, -0.5 for non-printable characters.
correctness  1 or 0 if the answer can be checked (checks.py); else 0.6, but 0.2 for a refusal and
             0.3 if the response only repeats the instruction.
educational  0.2 for any answer, up to 0.4 for its length (maximum at 40 words), 0.2 for a word that
             gives a reason, 0.2 for a sign of a step, such as `=`, "then" or a list item.
With an empty instruction or response, all scores are 0.
"""

import re
from dataclasses import dataclass

from .answers import is_refusal
from .checks import contains_answer

_SENTENCE_END = re.compile(r"[.!?]+(?:\s|$)")
_REASON = re.compile(r"\b(?:because|so|since|therefore|thus|hence|as there are)\b", re.IGNORECASE)
_STEP = re.compile(r"=|\bfirst\b|\bthen\b|\bstep\b|\n\s*[-*\d]", re.IGNORECASE)

_ENOUGH_WORDS = 40
_LONG_SENTENCE_WORDS = 40


@dataclass(frozen=True, slots=True)
class Scores:
    clarity: float
    correctness: float
    educational: float


_NOTHING = Scores(0.0, 0.0, 0.0)


def score(instruction: str, response: str) -> Scores:
    instruction, response = instruction.strip(), response.strip()
    if not instruction or not response:
        return _NOTHING
    return Scores(
        clarity=_clarity(instruction, response),
        correctness=_correctness(instruction, response),
        educational=_educational(response),
    )


def quality_tier(mean: float) -> str:
    """Returns gold from 0.8, silver from 0.6, bronze from 0.4, else reject."""
    for tier, minimum in (("gold", 0.8), ("silver", 0.6), ("bronze", 0.4)):
        if mean >= minimum:
            return tier
    return "reject"


def _clarity(instruction: str, response: str) -> float:
    value = 1.0
    if len(instruction.split()) < 3:
        value -= 0.5
    sentences = max(1, len(_SENTENCE_END.findall(response)))
    if len(response.split()) / sentences > _LONG_SENTENCE_WORDS:
        value -= 0.3
    if response[-1] not in ".!?:;)\"'`" and not response[-1].isdigit():
        value -= 0.2
    if not (instruction + response).replace("\n", "").replace("\t", "").isprintable():
        value -= 0.5
    return round(max(0.0, value), 4)


def _correctness(instruction: str, response: str) -> float:
    correct = contains_answer(instruction, response)
    if correct is not None:
        return 1.0 if correct else 0.0
    if is_refusal(response):
        return 0.2
    if response.lower() == instruction.lower():
        return 0.3
    return 0.6


def _educational(response: str) -> float:
    words = len(response.split())
    value = 0.2 + 0.4 * min(1.0, words / _ENOUGH_WORDS)
    if _REASON.search(response):
        value += 0.2
    if _STEP.search(response):
        value += 0.2
    return round(min(1.0, value), 4)
