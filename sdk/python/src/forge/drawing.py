"""Renders progress lines.

Import this module only to draw in a terminal, because it loads the library rich.
"""

from __future__ import annotations

import os

from rich.console import Console, Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from .text import duration, shown

STYLES = {
    "completed": "green",
    "running": "cyan",
    "failed": "red",
    "cancelled": "red",
    "waiting_approval": "yellow",
    "pending": "dim",
    "skipped": "dim",
}
_BAR_WIDTH = 20


def console(*, stderr: bool = False) -> Console:
    """Creates a console. It uses colours only in a terminal, and not if NO_COLOR is set."""
    if os.environ.get("NO_COLOR"):
        return Console(stderr=stderr, color_system=None)
    return Console(stderr=stderr)


def job_line(
    name: str, status: str, progress: float | None, elapsed_s: float, reason: str | None
) -> RenderableType:
    """Renders the name, then status, bar and time, then the reason. Truncates a long name."""
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, justify="right")
    bar = ProgressBar(
        total=1.0,
        completed=progress or 0.0,
        width=_BAR_WIDTH,
        pulse=progress is None,
        complete_style="cyan",
    )
    state = Text(shown(status), STYLES.get(status, ""))
    if status == "running":
        percent = "" if progress is None else f"{progress:4.0%}"
        table.add_row(state, bar, Text(f"{percent} {duration(elapsed_s)}".strip()))
    else:
        table.add_row(state, Text(duration(elapsed_s)))
    lines: list[RenderableType] = [
        Text(shown(name), "bold", no_wrap=True, overflow="ellipsis"),
        table,
    ]
    if reason:
        lines.append(Text(shown(reason), "dim"))
    return Group(*lines)
