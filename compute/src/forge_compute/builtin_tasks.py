"""The builtin tasks: generated instructions whose answers can be checked (checks.py)."""

import random
from collections.abc import Callable, Iterator
from datetime import date, timedelta

from .failures import FatalError

PREFIX = "builtin:"

_CONVERSIONS = (
    ("metres", "centimetres"),
    ("kilometres", "metres"),
    ("feet", "inches"),
    ("kilograms", "grams"),
    ("tonnes", "kilograms"),
    ("hours", "minutes"),
    ("minutes", "seconds"),
    ("days", "hours"),
)

_TRIES = 50
_MAX_REMEMBERED = 1_000_000
"""Limit on the instructions that are kept in memory to avoid repetition."""


def _sums(rng: random.Random) -> str:
    return f"What is {rng.randint(10, 99)} + {rng.randint(10, 99)}?"


def _arithmetic(rng: random.Random) -> str:
    left, right = rng.randint(2, 9_999), rng.randint(2, 999)
    return f"What is {left} {rng.choice('+-*')} {right}?"


def _units(rng: random.Random) -> str:
    pair = rng.choice(_CONVERSIONS)
    source, target = pair if rng.random() < 0.5 else pair[::-1]
    return f"Convert {rng.randint(1, 5_000)} {source} to {target}."


def _dates(rng: random.Random) -> str:
    start = date(1990, 1, 1) + timedelta(days=rng.randint(0, 15_000))
    days = rng.randint(1, 400)
    if rng.random() < 0.5:
        return f"How many days lie between {start} and {start + timedelta(days=days)}?"
    return f"Which date is {days} days after {start}?"


_MAKERS: dict[str, tuple[Callable[[random.Random], str], ...]] = {
    "sums": (_sums,),
    "arithmetic": (_arithmetic,),
    "units": (_units,),
    "dates": (_dates,),
    "mixed": (_sums, _arithmetic, _units, _dates),
}

NAMES = tuple(f"{PREFIX}{name}" for name in _MAKERS)


def instructions(name: str, seed: int) -> Iterator[str]:
    """Yields instructions without end. The same seed gives the same instructions.

    Repeats an instruction only if few new ones are left (`builtin:sums`, for example, has only
    8,100), or after the first million. Raises FatalError for a name that is not in NAMES.
    """
    makers = _MAKERS.get(name.removeprefix(PREFIX)) if name.startswith(PREFIX) else None
    if makers is None:
        raise FatalError(f"unknown task {name}; use one of {', '.join(NAMES)}")
    return _make(makers, random.Random(seed))


def _make(makers: tuple[Callable[[random.Random], str], ...], rng: random.Random) -> Iterator[str]:
    seen: set[str] = set()
    while True:
        for _ in range(_TRIES):
            instruction = rng.choice(makers)(rng)
            if instruction not in seen:
                break
        if len(seen) < _MAX_REMEMBERED:
            seen.add(instruction)
        yield instruction
