"""Generates the sample dataset: instruction/response rows of tasks with verifiable answers.

    python generate.py --rows 2000 --out sample.parquet   (or .jsonl)
    python generate.py --rows 4000 --topic sums --out sums.parquet

The same arguments always produce the same rows. About one answer in twenty is wrong and one row in
fifty is a duplicate, so that an audit finds something. The topic `sums`, which a tiny model learns
in half a minute, is not part of the default mix.
"""

import argparse
import json
import random
from collections.abc import Callable
from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path

Row = dict[str, str]

_UNITS = (
    ("metres", "centimetres", 100),
    ("kilometres", "metres", 1000),
    ("feet", "inches", 12),
    ("kilograms", "grams", 1000),
    ("tonnes", "kilograms", 1000),
    ("hours", "minutes", 60),
    ("minutes", "seconds", 60),
    ("days", "hours", 24),
)


def two_digit_sum(rng: random.Random, slip: int) -> Row:
    left, right = rng.randint(10, 99), rng.randint(10, 99)
    return {
        "instruction": f"What is {left} + {right}?",
        "response": f"{left + right + slip}",
        "topic": "sums",
    }


def arithmetic(rng: random.Random, slip: int) -> Row:
    left, right = rng.randint(2, 9_999), rng.randint(2, 999)
    sign = rng.choice("+-*")
    value = {"+": left + right, "-": left - right, "*": left * right}[sign]
    return {
        "instruction": f"What is {left} {sign} {right}?",
        "response": f"{left} {sign} {right} = {value + slip}, so the answer is {value + slip}.",
        "topic": "arithmetic",
    }


def conversion(rng: random.Random, slip: int) -> Row:
    large, small, factor = rng.choice(_UNITS)
    amount = rng.randint(1, 5_000)
    if rng.random() < 0.5:
        source, target, value = large, small, Fraction(amount * factor)
    else:
        source, target, value = small, large, Fraction(amount, factor)
    shown = (
        str(value + slip) if value.denominator == 1 else f"{float(value + slip):.4f}".rstrip("0")
    )
    reason = f"because there are {factor} {small} to each of the {large}"
    return {
        "instruction": f"Convert {amount} {source} to {target}.",
        "response": f"{amount} {source} = {shown} {target}, {reason}.",
        "topic": "units",
    }


def days_between(rng: random.Random, slip: int) -> Row:
    first = date(1990, 1, 1) + timedelta(days=rng.randint(0, 15_000))
    days = rng.randint(1, 2_000)
    second = first + timedelta(days=days)
    return {
        "instruction": f"How many days lie between {first} and {second}?",
        "response": f"Counting from {first} to {second} gives {days + slip} days.",
        "topic": "dates",
    }


def days_after(rng: random.Random, slip: int) -> Row:
    start = date(1990, 1, 1) + timedelta(days=rng.randint(0, 15_000))
    days = rng.randint(1, 400)
    reached = start + timedelta(days=days + slip)
    return {
        "instruction": f"Which date is {days} days after {start}?",
        "response": f"First note the start, {start}; then go {days} days on, so it is {reached}.",
        "topic": "dates",
    }


_Maker = Callable[[random.Random, int], Row]

_MIX: tuple[_Maker, ...] = (arithmetic, conversion, days_between, days_after)

_TOPICS: dict[str, tuple[_Maker, ...]] = {
    "mix": _MIX,
    "sums": (two_digit_sum,),
    "arithmetic": (arithmetic,),
    "units": (conversion,),
    "dates": (days_between, days_after),
}


def rows(count: int, seed: int = 7, topic: str = "mix", wrong: float = 0.05) -> list[Row]:
    """Generates rows. `wrong` is the approximate share of wrong answers.

    `sums` has 8,100 different questions. Except for the intended duplicates, no question repeats
    until all of them were used.
    """
    rng = random.Random(seed)
    asked: set[str] = set()
    made: list[Row] = []
    for _ in range(count):
        if made and rng.random() < 0.02:
            made.append(rng.choice(made[-500:]))
            continue
        slip = rng.randint(1, 9) if rng.random() < wrong else 0
        row = rng.choice(_TOPICS[topic])(rng, slip)
        while topic == "sums" and row["instruction"] in asked and len(asked) % 8_100:
            row = two_digit_sum(rng, slip)
        asked.add(row["instruction"])
        made.append(row)
    return made


def write(made: list[Row], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".jsonl":
        path.write_text("".join(f"{json.dumps(row)}\n" for row in made), encoding="utf-8")
        return
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pylist(made), path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--topic", choices=sorted(_TOPICS), default="mix")
    parser.add_argument("--wrong", type=float, default=0.05, help="share of wrong answers")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    made = rows(arguments.rows, arguments.seed, arguments.topic, arguments.wrong)
    write(made, arguments.out)


if __name__ == "__main__":
    main()
