"""An audit's findings for each row, and their totals."""

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import py3langid
from datasketch import MinHash

from .near_duplicates import NearDuplicates
from .rows import Row
from .scores import Scores, quality_tier, score
from .seen_rows import SeenRows

OVERLONG_CHARACTERS = 8_192
MIN_LEAKED_CHARACTERS = 4
"""A response of at least this length counts as leaked if it occurs in its own instruction. Shorter
ones often occur there by chance."""


@dataclass(frozen=True)
class Scope:
    """The number of the dataset's rows, and how many of them each expensive check examines."""

    rows: int
    near_duplicate_rows: int
    """Number of rows, from the start, that are compared with each other."""
    language_rows: int
    """Approximate number of rows, evenly spread, whose language is detected."""
    judged_rows: int


@dataclass(frozen=True, slots=True)
class Finding:
    scores: Scores
    is_duplicate: bool
    is_near_duplicate: bool | None
    """Similar to an earlier row, but not a duplicate. None if it was not compared."""
    language: str | None
    """ISO 639-1. None if it was not detected."""


@dataclass
class Tally:
    scope: Scope
    rows: int = 0
    duplicates: int = 0
    near_duplicates: int = 0
    empty_fields: int = 0
    overlong_fields: int = 0
    across_splits: int = 0
    response_in_instruction: int = 0
    clarity: float = 0.0
    correctness: float = 0.0
    educational: float = 0.0
    has_splits: bool = False
    languages: Counter[str] = field(default_factory=Counter)
    to_judge: list[Row] = field(default_factory=list)
    _seen: SeenRows = field(default_factory=SeenRows)

    def __post_init__(self) -> None:
        self._whole_rows = NearDuplicates(self.scope.near_duplicate_rows)
        self._instructions = NearDuplicates(self.scope.near_duplicate_rows)

    @property
    def compares(self) -> bool:
        """Whether `add` still looks for near-duplicates. If so, `add` needs the row's signature."""
        return not self._whole_rows.is_full

    def add(self, row: Row, signature: MinHash | None) -> Finding:
        """Adds a row to the totals and returns its finding.

        `signature`: the MinHash of the whole row's text. May be None if the property
        `compares` is false.
        """
        scores = score(row.instruction, row.response)
        self._count_fields(row)
        self.clarity += scores.clarity
        self.correctness += scores.correctness
        self.educational += scores.educational
        is_duplicate = self._seen.is_repeat(row)
        is_near_duplicate = None
        if is_duplicate:
            self.duplicates += 1
            is_near_duplicate = False
        elif signature and self.compares:
            is_near_duplicate = bool(self._whole_rows.add(signature))
            self.near_duplicates += is_near_duplicate
        finding = Finding(scores, is_duplicate, is_near_duplicate, self._language_of(row))
        if self._is_sampled(self.scope.judged_rows) and len(self.to_judge) < self.scope.judged_rows:
            self.to_judge.append(row)
        self.rows += 1
        return finding

    def add_split(self, split: str, signature: MinHash) -> None:
        """Counts the row if its instruction is similar to an earlier instruction of another split.

        `split`: the row's value of the column `split`. `signature`: the MinHash of the instruction
        alone.
        """
        self.has_splits = True
        if not self._instructions.is_full:
            self.across_splits += bool(self._instructions.add(signature, split) - {split})

    def quality(self) -> dict[str, Any]:
        means = {
            f"{name}_mean": round(getattr(self, name) / self.rows, 4)
            for name in ("clarity", "correctness", "educational")
        }
        return {**means, "quality_tier": quality_tier(sum(means.values()) / len(means))}

    def counts(self) -> dict[str, Any]:
        """The counts in the format of the audit's result."""
        checked = self.languages.total()
        main, main_rows = (self.languages.most_common(1) or [("", 0)])[0]
        return {
            "duplicate_rows": self.duplicates,
            "near_duplicate_rows": self.near_duplicates,
            "near_duplicate_rows_compared": self._whole_rows.compared,
            "empty_fields": self.empty_fields,
            "overlong_fields": self.overlong_fields,
            "languages": dict(self.languages.most_common()),
            "language_rows_checked": checked,
            "main_language": main or None,
            "main_language_share": round(main_rows / checked, 4) if checked else None,
            "leakage": {
                "across_splits": self.across_splits if self.has_splits else None,
                "across_splits_compared": self._instructions.compared if self.has_splits else None,
                "response_in_instruction": self.response_in_instruction,
            },
        }

    def _count_fields(self, row: Row) -> None:
        for text in (row.instruction, row.response):
            self.empty_fields += not text.strip()
            self.overlong_fields += len(text) > OVERLONG_CHARACTERS
        response = row.response.strip()
        is_long_enough = len(response) >= MIN_LEAKED_CHARACTERS
        self.response_in_instruction += is_long_enough and response in row.instruction

    def _language_of(self, row: Row) -> str | None:
        text = f"{row.instruction} {row.response}"
        if not self._is_sampled(self.scope.language_rows) or not text.strip():
            return None
        language = str(py3langid.classify(text)[0])
        self.languages[language] += 1
        return language

    def _is_sampled(self, wanted: int) -> bool:
        """Whether the current row belongs to an evenly spread sample of about `wanted` rows."""
        return wanted > 0 and self.rows % math.ceil(self.scope.rows / wanted) == 0
