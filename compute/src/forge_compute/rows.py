"""A dataset's rows as pairs of an instruction and a response."""

from collections.abc import Iterator
from dataclasses import dataclass

from .datasets import INSTRUCTION_NAMES, RESPONSE_NAMES, Dataset, texts


@dataclass(frozen=True, slots=True)
class Row:
    instruction: str
    response: str


def read_rows(dataset: Dataset) -> Iterator[Row]:
    """Yields the rows with both an instruction and a response, stripped of whitespace."""
    for table in dataset.batches():
        instructions, responses = texts(table, INSTRUCTION_NAMES), texts(table, RESPONSE_NAMES)
        for instruction, response in zip(instructions, responses, strict=True):
            if instruction.strip() and response.strip():
                yield Row(instruction.strip(), response.strip())
