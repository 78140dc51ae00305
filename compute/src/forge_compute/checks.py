"""Answers that can be checked by rule: arithmetic, unit conversion and dates.

Each checker reads an instruction, and returns the correct answer, or None if it does not know this
kind of instruction.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction

_NUMBER = r"(-?\d[\d,]*(?:\.\d+)?)"
_ARITHMETIC = re.compile(rf"{_NUMBER}(\s*)([-+*/x×÷])(\s*){_NUMBER}")
_CONTEXT = 40
"""Number of characters around a calculation that are examined."""
_ASKED_FOR = re.compile(
    r"\b(?:what is|what's|how much is|calculate|compute|evaluate|solve)[\s:]+$", re.IGNORECASE
)
_EARLIER_TERM = re.compile(r"[\d)]\s*[-+*/x×÷^]\s*\(*\s*$")
_LATER_TERM = re.compile(r"\s*\)*\s*(?:[-+*/x×÷^]\s*\(*\s*-?\d|%)")
_CONVERSION = re.compile(rf"{_NUMBER}\s+(\w+)\s+(?:to|in|into)\s+(\w+)", re.IGNORECASE)
_DATE = r"(\d{4}-\d{2}-\d{2})"
_DAYS_BETWEEN = re.compile(rf"days?\b.*?{_DATE}.*?{_DATE}", re.IGNORECASE)
_DAYS_AFTER = re.compile(rf"(\d+) days? (after|before) {_DATE}", re.IGNORECASE)

_TO_BASE: dict[str, tuple[str, Fraction]] = {
    "millimetres": ("length", Fraction(1, 1000)),
    "centimetres": ("length", Fraction(1, 100)),
    "metres": ("length", Fraction(1)),
    "kilometres": ("length", Fraction(1000)),
    "inches": ("length", Fraction(254, 10_000)),
    "feet": ("length", Fraction(3048, 10_000)),
    "grams": ("mass", Fraction(1, 1000)),
    "kilograms": ("mass", Fraction(1)),
    "tonnes": ("mass", Fraction(1000)),
    "seconds": ("time", Fraction(1)),
    "minutes": ("time", Fraction(60)),
    "hours": ("time", Fraction(3600)),
    "days": ("time", Fraction(86_400)),
}


@dataclass(frozen=True, slots=True)
class CorrectAnswer:
    answer: str
    """The bare value: 42, 1.5, 2024-03-01."""
    worked: str
    """A sentence that shows how to get the value."""
    topic: str


def _arithmetic(text: str) -> CorrectAnswer | None:
    match = next(filter(_is_question, _ARITHMETIC.finditer(text)), None)
    if not match or re.search(_DATE, text):  # 2024-02-30 is a date, not a subtraction
        return None
    left, right, operator = _fraction(match[1]), _fraction(match[5]), match[3]
    match operator:
        case "+":
            value = left + right
        case "-":
            value = left - right
        case "*" | "x" | "×":
            value = left * right
        case _:
            if right == 0:
                return None
            value = left / right
    answer = _decimal(value)
    worked = f"{match[1]} {operator} {match[5]} = {answer}, so the answer is {answer}."
    return CorrectAnswer(answer, worked, "arithmetic")


def _is_question(match: re.Match[str]) -> bool:
    """Whether two numbers and an operator are a whole calculation.

    Excludes a part of a longer calculation, because the whole calculation has another value. Also
    excludes ranges and the like, such as "1-2 sentences", "24/7" or "a 3x4 matrix". So if `-`, `/`
    or `x` does not have spaces on both sides, the calculation must directly follow words that ask
    for its value, such as "what is".
    """
    start, end = match.span()
    before = match.string[max(0, start - _CONTEXT) : start]
    after = match.string[end : end + _CONTEXT]
    if _EARLIER_TERM.search(before) or _LATER_TERM.match(after):
        return False
    has_spaces = bool(match[2]) and bool(match[4])
    return has_spaces or match[3] in "+*×÷" or bool(_ASKED_FOR.search(before))


def _conversion(text: str) -> CorrectAnswer | None:
    match = _CONVERSION.search(text)
    if not match:
        return None
    source, target = _TO_BASE.get(match[2].lower()), _TO_BASE.get(match[3].lower())
    if source is None or target is None or source[0] != target[0]:
        return None
    answer = _decimal(_fraction(match[1]) * source[1] / target[1])
    return CorrectAnswer(answer, f"{match[1]} {match[2]} = {answer} {match[3]}.", "units")


def _dates(text: str) -> CorrectAnswer | None:
    try:
        if match := _DAYS_AFTER.search(text):
            days = int(match[1]) * (1 if match[2].lower() == "after" else -1)
            answer = (date.fromisoformat(match[3]) + timedelta(days=days)).isoformat()
            worked = f"First note the date {match[3]}; {match[1]} days {match[2]} it is {answer}."
            return CorrectAnswer(answer, worked, "dates")
        if match := _DAYS_BETWEEN.search(text):
            span = date.fromisoformat(match[2]) - date.fromisoformat(match[1])
            answer = str(abs(span.days))
            worked = f"Counting from {match[1]} to {match[2]} gives {answer} days."
            return CorrectAnswer(answer, worked, "dates")
    except (ValueError, OverflowError):  # 30 February, or outside of the calendar
        return None
    return None


_CHECKERS: tuple[Callable[[str], CorrectAnswer | None], ...] = (_dates, _conversion, _arithmetic)


def correct_answer(instruction: str) -> CorrectAnswer | None:
    """The correct answer. None if the instruction is not of a kind that can be checked."""
    for checker in _CHECKERS:
        if correct := checker(instruction):
            return correct
    return None


def contains_answer(instruction: str, response: str) -> bool | None:
    """Whether the response contains the correct answer. None if it can't be checked."""
    correct = correct_answer(instruction)
    if correct is None:
        return None
    return _contains_value(correct.answer, response.replace(",", ""))


def _contains_value(value: str, text: str) -> bool:
    """Whether the text contains the value, and not only as a part of a longer number.

    Does not use a regular expression, which would have to be compiled for each row.
    """
    start = text.find(value)
    while start >= 0:
        end = start + len(value)
        before, after = text[max(0, start - 1) : start], text[end : end + 2]
        continues = after[:1].isdecimal() or (after[:1] == "." and after[1:].isdecimal())
        if not continues and not before.isdecimal() and before not in (".", "-"):
            return True
        start = text.find(value, start + 1)
    return False


def _fraction(text: str) -> Fraction:
    return Fraction(text.replace(",", ""))


def _decimal(value: Fraction) -> str:
    """Formats with at most four decimals, without trailing zeros."""
    if value.denominator == 1:
        return str(value.numerator)
    return f"{float(value):.4f}".rstrip("0").rstrip(".")
