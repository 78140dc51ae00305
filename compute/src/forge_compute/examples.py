"""Encodes a dataset's rows for training, and holds some of them out."""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from .failures import FatalError
from .language_model import LanguageModel
from .rows import Row

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Example:
    prompt: list[int]
    response: list[int]


@dataclass(frozen=True)
class Split:
    train: list[Row]
    held_out: list[Row]


def split(rows: Iterator[Row], share: float) -> Split:
    """Selects some instructions, and holds out all rows that have one of them.

    `share`: the approximate fraction of the instructions to select, from 0 to 1. Every call with
    the same share selects the same instructions.
    """
    parts = Split([], [])
    for row in rows:
        (parts.held_out if _position(row.instruction) < share else parts.train).append(row)
    if not parts.train:
        raise FatalError("the dataset has no row to train on")
    return parts


def encode(model: LanguageModel, row: Row) -> Example:
    prompt = model.prompt([{"role": "user", "content": row.instruction}])
    return Example(prompt, model.response(row.response))


def fitting(model: LanguageModel, rows: list[Row]) -> list[Example]:
    """Encodes the rows. Skips rows that are longer than the model's context."""
    examples = (encode(model, row) for row in rows)
    return [
        example
        for example in examples
        if len(example.prompt) + len(example.response) <= model.context + 1
    ]


def _position(instruction: str) -> float:
    """A hash of the instruction's words, from 0 to 1. Ignores the order of the words.

    So 2 + 3 and 3 + 2 are on the same side of the split: training never sees a held-out sum with
    swapped terms.
    """
    words = " ".join(sorted(_WORD.findall(instruction.lower())))
    digest = hashlib.blake2b(words.encode(), digest_size=8).digest()
    return int.from_bytes(digest) / 2**64
