"""What a running handler tells: how far it is, and what it has used so far."""

import contextlib
import json
import math
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .job_files import read_small

PREFIX = b"::forge "
"""A line of output that begins so is a report, and no part of the log."""

_MAX_BYTES = 64 * 1024


@dataclass(frozen=True)
class Report:
    progress: float | None = None
    metrics: dict[str, Any] = field(default_factory=dict)


class Reports:
    """The newest report of a handler, from its file and from lines of its output."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._told = Report()

    def hear(self, line: bytes) -> bool:
        """Takes a line of output if it is a report."""
        if not line.startswith(PREFIX):
            return False
        self._take(line[len(PREFIX) :])
        return True

    def latest(self) -> Report:
        with contextlib.suppress(OSError, ValueError):
            self._take(read_small(self._file, _MAX_BYTES))
        with self._lock:
            return self._told

    def _take(self, text: bytes) -> None:
        """A number from 0 to 1, or {"progress", "metrics"}; anything else is nobody's loss."""
        try:
            given = json.loads(text)
        except (ValueError, RecursionError):
            return
        told = given if isinstance(given, dict) else {"progress": given}
        progress, metrics = told.get("progress"), told.get("metrics")
        with self._lock:
            self._told = Report(
                _fraction(progress) if _is_number(progress) else self._told.progress,
                {**self._told.metrics, **_numbers(metrics)},
            )


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer of hundreds of digits
        return False


def _fraction(value: Any) -> float:  # noqa: ANN401 - a number, as was just seen
    return min(1.0, max(0.0, float(value)))


def _numbers(metrics: object) -> dict[str, Any]:
    if not isinstance(metrics, dict):
        return {}
    return {name: value for name, value in metrics.items() if _is_number(value)}
