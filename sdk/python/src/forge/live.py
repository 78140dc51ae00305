"""Progress lines for waits in a terminal: status, progress and duration."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from time import monotonic
from typing import TYPE_CHECKING

from .errors import ForgeError

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

    from .models import BaseJob, JobEvent

_POLL_INTERVAL_S = 2.0
"""Interval between polls for the pending reason, which events don't contain."""


def is_shown(wanted: bool) -> bool:
    """Whether to show progress lines.

    True if the caller wants them, stderr is a capable terminal, and `FORGE_PROGRESS` is not 0.
    """
    return (
        wanted
        and os.environ.get("FORGE_PROGRESS") != "0"
        and os.environ.get("TERM") not in ("dumb", "unknown")
        and sys.stderr is not None
        and sys.stderr.isatty()
    )


class JobLine:
    """The progress line of one awaited job."""

    def __init__(self, job_id: str) -> None:
        self.job_id = job_id
        self._job: BaseJob | None = None
        self._status = "pending"
        self._progress: float | None = None
        self._since_s = monotonic()

    def update(self, job: BaseJob) -> None:
        """Updates the line from a snapshot of the job."""
        if self._job is None and job.created_at:
            age_s = (datetime.now(timezone.utc) - job.created_at).total_seconds()
            self._since_s = monotonic() - max(0.0, age_s)
        self._job = job
        self._status, self._progress = job.raw_status, job.progress

    def record(self, event: JobEvent) -> None:
        self._status = event.raw_status or self._status
        if event.status or event.progress is not None:
            self._progress = event.progress

    @property
    def waits(self) -> bool:
        """Whether the job is pending.

        A pending job must be polled, because its pending reason changes without an event.
        """
        return self._status in ("pending", "provisioning_worker")

    def __rich__(self) -> RenderableType:
        from . import drawing

        reason = self._job.pending_reason if self._job and self.waits else None
        kind = self._job.job_type if self._job else ""
        return drawing.job_line(
            f"{kind} {self.job_id}".strip(),
            self._status,
            self._progress,
            monotonic() - self._since_s,
            reason.message or reason.code if reason else None,
        )


class _Board:
    """Draws all progress lines of this process in one area.

    The library rich can update only one area at a time.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lines: list[RenderableType] = []
        self._live: Live | None = None

    def __rich__(self) -> RenderableType:
        from rich.console import Group

        return Group(*self._lines)

    @contextmanager
    def show(self, line: RenderableType) -> Iterator[None]:
        from rich.live import Live

        from . import drawing

        with self._lock:
            self._lines.append(line)
            if self._live is None:
                self._live = Live(
                    self, console=drawing.console(stderr=True), refresh_per_second=8, transient=True
                )
                self._live.start()
        try:
            yield
        finally:
            with self._lock:
                self._lines.remove(line)
                if not self._lines and self._live:
                    self._live.stop()
                    self._live = None


board = _Board()


@contextmanager
def job_line(job_id: str, read: Callable[[], BaseJob], *, progress: bool) -> Iterator[JobLine]:
    """Shows a progress line while the `with` block runs, if `is_shown(progress)`.

    While the job is pending, another thread polls the job with `read`, and ignores errors of
    `read`.
    """
    line = JobLine(job_id)
    if not is_shown(progress):
        yield line
        return
    ended = threading.Event()

    def ask() -> None:
        while not ended.wait(_POLL_INTERVAL_S):
            if line.waits:
                try:
                    job = read()
                except (ForgeError, RuntimeError):
                    continue  # the waiting thread reports the error, or has closed the client
                if line.waits:
                    line.update(job)

    asking = threading.Thread(target=ask, name=f"forge-{job_id}", daemon=True)
    with board.show(line):
        asking.start()
        try:
            yield line
        finally:
            ended.set()


def say(text: str) -> None:
    """Prints a permanent line to the terminal."""
    from . import drawing

    drawing.console(stderr=True).print(text, markup=False, highlight=False, soft_wrap=True)
