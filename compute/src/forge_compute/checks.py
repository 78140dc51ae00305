"""Answers that a machine can check: arithmetic, unit conversion, date reckoning.

Each checker reads an instruction and returns the right answer, or None where it is not its kind.
"""

import re
from collections.abc import Callable
from datetime import date, timedelta
from fractions import Fraction

_NUMBER = r"(-?\d[\d,]*(?:\.\d+)?)"
_ARITHMETIC = re.compile(rf"{_NUMBER}\s*([-+*/x×÷])\s*{_NUMBER}")
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


def _arithmetic(text: str) -> str | None:
    match = _ARITHMETIC.search(text)
    if not match or re.search(_DATE, text):  # 2024-02-30 is no difference
        return None
    left, right = _fraction(match[1]), _fraction(match[3])
    match match[2]:
        case "+":
            return _decimal(left + right)
        case "-":
            return _decimal(left - right)
        case "*" | "x" | "×":
            return _decimal(left * right)
        case _:
            return _decimal(left / right) if right else None


def _conversion(text: str) -> str | None:
    match = _CONVERSION.search(text)
    if not match:
        return None
    source, target = _TO_BASE.get(match[2].lower()), _TO_BASE.get(match[3].lower())
    if source is None or target is None or source[0] != target[0]:
        return None
    return _decimal(_fraction(match[1]) * source[1] / target[1])


def _dates(text: str) -> str | None:
    try:
        if match := _DAYS_AFTER.search(text):
            days = int(match[1]) * (1 if match[2].lower() == "after" else -1)
            return (date.fromisoformat(match[3]) + timedelta(days=days)).isoformat()
        if match := _DAYS_BETWEEN.search(text):
            span = date.fromisoformat(match[2]) - date.fromisoformat(match[1])
            return str(abs(span.days))
    except (ValueError, OverflowError):  # 30 February, or beyond the calendar
        return None
    return None


_CHECKERS: tuple[Callable[[str], str | None], ...] = (_dates, _conversion, _arithmetic)


def is_right(instruction: str, response: str) -> bool | None:
    """Whether the response contains the right answer; None when it can't be checked."""
    for checker in _CHECKERS:
        answer = checker(instruction)
        if answer is not None:
            plain = response.replace(",", "")
            return re.search(rf"(?<![\d.-]){re.escape(answer)}(?!\d|\.\d)", plain) is not None
    return None


def _fraction(text: str) -> Fraction:
    return Fraction(text.replace(",", ""))


def _decimal(value: Fraction) -> str:
    """As people write it: at most four decimals, none that are zero."""
    if value.denominator == 1:
        return str(value.numerator)
    return f"{float(value):.4f}".rstrip("0").rstrip(".")
