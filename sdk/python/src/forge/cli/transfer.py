"""A progress bar for file transfers."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, DownloadColumn, TextColumn, TransferSpeedColumn
from rich.progress import Progress as ProgressBar

from ..live import is_shown
from ..pull import OnProgress, Progress
from ..text import shown
from .output import console

_NARROW = 60


@contextmanager
def transfer(*, as_json: bool) -> Iterator[OnProgress]:
    """Shows the bar on stderr in a terminal. Shows nothing elsewhere, or with `as_json`."""
    err = console(stderr=True)
    columns = [
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=10 if err.width < _NARROW else 40),
        DownloadColumn(),
    ]
    if err.width >= _NARROW:
        columns.append(TransferSpeedColumn())
    bar = ProgressBar(*columns, console=err, transient=True, disable=not is_shown(True) or as_json)
    with bar:
        task = bar.add_task("", total=None)

        def on_progress(progress: Progress) -> None:
            name = shown(progress.path)
            longest = max(8, err.width - 40)
            bar.update(
                task,
                description=name if len(name) <= longest else f"…{name[1 - longest :]}",
                completed=progress.done_bytes,
                total=progress.total_bytes,
            )

        yield on_progress
