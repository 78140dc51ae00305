"""Progress and metrics that a running handler reports."""

import contextlib
import json
import math
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .job_files import read_small

PREFIX = b"::forge "
"""An output line with this prefix is a report. It is not written to the log."""

_MAX_BYTES = 64 * 1024


@dataclass(frozen=True)
class Report:
    progress: float | None = None
    metrics: dict[str, Any] = field(default_factory=dict)


class Reports:
    """The latest report of a handler, from its progress file and its output. Thread-safe."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._current = Report()

    def read_line(self, line: bytes) -> bool:
        """Records a line of output if it is a report. Returns whether it is one."""
        if not line.startswith(PREFIX):
            return False
        self._record(line[len(PREFIX) :])
        return True

    def latest(self) -> Report:
        with contextlib.suppress(OSError, ValueError):
            self._record(read_small(self._file, _MAX_BYTES))
        with self._lock:
            return self._current

    def _record(self, text: bytes) -> None:
        """Accepts a number (the progress) or {"progress", "metrics"}. Ignores anything else.

        Limits the progress to the range from 0 to 1.
        """
        try:
            content = json.loads(text)
        except (ValueError, RecursionError):
            return
        fields = content if isinstance(content, dict) else {"progress": content}
        progress, metrics = fields.get("progress"), fields.get("metrics")
        with self._lock:
            self._current = Report(
                _fraction(progress) if _is_number(progress) else self._current.progress,
                {**self._current.metrics, **_numbers(metrics)},
            )


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer of hundreds of digits
        return False


def _fraction(value: Any) -> float:  # noqa: ANN401 - a checked number
    return min(1.0, max(0.0, float(value)))


def _numbers(metrics: object) -> dict[str, Any]:
    if not isinstance(metrics, dict):
        return {}
    return {name: value for name, value in metrics.items() if _is_number(value)}
