"""Renders a pipeline as a tree of steps, for any terminal width."""

from collections.abc import Iterator
from datetime import datetime, timezone
from time import monotonic

from rich.console import Console, ConsoleOptions
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ..drawing import STYLES
from ..models import Pipeline, PipelineStep
from ..text import duration, shown, usd

_MARKS = {
    "completed": ("✓", "+"),
    "running": ("●", "*"),
    "failed": ("✗", "x"),
    "cancelled": ("✗", "x"),
    "waiting_approval": ("?", "?"),
    "skipped": ("-", "-"),
}
_NOT_BEGUN = ("○", "o")
_BAR_WIDTH = 10
_MAX_NAME = 12
"""Names are padded to the width of the longest name, but at most to this width."""


class PipelineTree:
    """A pipeline as a tree.

    The library rich renders the tree repeatedly, so displayed times advance between updates.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._read_s = monotonic()

    def update(self, pipeline: Pipeline) -> None:
        self._pipeline, self._read_s = pipeline, monotonic()

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[Text | Table | Padding]:
        pipeline = self._pipeline
        is_ascii = not options.encoding.startswith("utf")
        head = Text(shown(pipeline.name or pipeline.template or "pipeline"), "bold")
        head.append(f" {shown(pipeline.pipeline_id)}", "not bold dim")
        yield head
        words = [
            (shown(pipeline.status), STYLES.get(pipeline.status, "")),
            (self._age(), ""),
            (usd(pipeline.cost_usd), ""),
        ]
        budget = pipeline.budget_usd
        if budget is not None:
            words.append(
                (f"of {usd(budget)}", STYLES["waiting_approval"] if self._warns else "dim")
            )
        if pipeline.expected_remaining_s is not None and not pipeline.is_final:
            words.append((f"{duration(pipeline.expected_remaining_s)} to go", "dim"))
        yield Text("  ").join(Text(text, style) for text, style in words if text)
        last = len(pipeline.steps) - 1
        longest = min(_MAX_NAME, max((len(step.name) for step in pipeline.steps), default=0))
        for index, step in enumerate(pipeline.steps):
            yield from _step_lines(step, longest, is_last=index == last, is_ascii=is_ascii)
        if pipeline.error and not any(step.error == pipeline.error for step in pipeline.steps):
            yield Text(shown(pipeline.error), "red")

    @property
    def _warns(self) -> bool:
        return self._pipeline.budget_state not in (None, "ok")

    def _age(self) -> str:
        begun, ended = self._pipeline.created_at, self._pipeline.completed_at
        if begun is None:
            return ""
        age_s = ((ended or datetime.now(timezone.utc)) - begun).total_seconds()
        return duration(max(0.0, age_s))


def _step_lines(
    step: PipelineStep, name_width: int, *, is_last: bool, is_ascii: bool
) -> Iterator[Text | Table | Padding]:
    fork, end, down = ("|-", "`-", "| ") if is_ascii else ("├─", "└─", "│ ")
    style = STYLES.get(step.status, "")
    mark = _MARKS.get(step.status, _NOT_BEGUN)[is_ascii]
    row = Table.grid(padding=(0, 1))
    line = Text(f"{end if is_last else fork} ", "dim", no_wrap=True)
    line.append(f"{mark} ", style or "not dim")
    line.append(
        shown(step.name).ljust(name_width),
        "not dim bold" if step.status == "running" else "not dim",
    )
    cells: list[Text | ProgressBar] = [line, Text(shown(step.status).replace("_", " "), style)]
    if step.status == "running" and step.progress is not None:
        cells += [
            ProgressBar(
                total=1.0, completed=step.progress, width=_BAR_WIDTH, complete_style="cyan"
            ),
            Text(f"{step.progress:.0%}"),
        ]
    elif step.reused:
        cells.append(Text("reused", "dim"))
    elif step.cost_usd:
        cells.append(Text(usd(step.cost_usd), "dim"))
    for _ in cells:
        row.add_column(no_wrap=True)
    row.add_row(*cells)
    yield row
    indent = "     " if is_last else f"{down}   "
    for note, note_style in _notes(step):
        detail = Table.grid()
        detail.add_column(no_wrap=True)
        detail.add_column(overflow="fold")
        detail.add_row(Text(indent, "dim"), Text(shown(note), note_style))
        yield detail


def _notes(step: PipelineStep) -> Iterator[tuple[str, str]]:
    gate, approval = step.gate, step.approval
    if gate:
        outcome = {True: "passed", False: "not passed", None: ""}[gate.passed]
        values = ", ".join(f"{name} = {value}" for name, value in gate.values.items())
        text = " ".join(filter(None, [f"gate {gate.condition}", outcome]))
        style = {True: "green", False: "red", None: "dim"}[gate.passed]
        yield (f"{text} ({values})" if values else text), style
    if approval and approval.approved is not None:
        word = "approved" if approval.approved else "rejected"
        by = f" by {approval.by}" if approval.by else ""
        note = f": {approval.note}" if approval.note else ""
        yield f"{word}{by}{note}", "green" if approval.approved else "red"
    if step.chosen:
        yield f"chosen: {step.chosen.get('step')}", "dim"
    if step.error:
        yield step.error, "red"
