"""Prints results: as tables, fields and lines, or as JSON."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from ..drawing import STYLES
from ..drawing import console as console
from ..models import Model
from ..text import legible, shown

_GAP = "  "
_MIN_WIDTH = 6
"""Minimum width of a truncated column, in cells."""


def print_line(target: Console, text: str, style: str = "") -> None:
    """Prints one line without wrapping."""
    target.print(Text(shown(text), style), soft_wrap=True)


def print_text(text: str) -> None:
    """Prints a program's or model's output. In a terminal, escapes control characters."""
    out = console()
    if not out.is_terminal:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
        return
    for line in text.split("\n"):
        out.print(Text(legible(line)), soft_wrap=True)


def print_json(answer: Mapping[str, Any], indent: int | None = 2) -> None:
    json.dump(answer, sys.stdout, indent=indent)
    sys.stdout.write("\n")
    sys.stdout.flush()


def print_one(found: Model, about: str | Mapping[str, object], *, as_json: bool) -> None:
    """With `as_json`, prints all fields of `found` as JSON. Otherwise, prints `about` as text."""
    if as_json:
        print_json(found.to_dict())
    elif isinstance(about, str):
        print_line(console(), about)
    else:
        print_fields(about)


def print_all(
    name: str,
    found: Iterable[Model],
    heads: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    nothing: str,
    as_json: bool,
) -> None:
    """With `as_json`, prints the objects as JSON. Otherwise, prints a table of the rows."""
    if as_json:
        print_json({name: [each.to_dict() for each in found]})
    else:
        print_table(heads, rows, nothing=nothing)


def print_table(heads: Sequence[str], rows: Iterable[Sequence[object]], *, nothing: str) -> None:
    """Prints a table. In a terminal, leaves out the last columns if the table is too wide.

    The second column is usually the status, so it is truncated instead if it does not fit. It is
    left out only if its width would be less than _MIN_WIDTH.
    """
    texts = [[_cell(value) for value in row] for row in rows]
    out = console()
    if not texts:
        print_line(console(stderr=True), nothing)
        return
    cells = [list(heads), *texts]
    widths = [max(cell_len(row[column]) for row in cells) for column in range(len(heads))]
    count, gap = len(heads), _GAP
    if out.is_terminal:
        while count > 1 and sum(widths[:count]) + len(_GAP) * (count - 1) > out.width:
            count -= 1
        room = out.width - widths[0] - 1
        if count == 1 < len(heads) and room >= _MIN_WIDTH:
            count, gap, widths[1] = 2, " ", room
    for number, row in enumerate(cells):
        line = Text(style="bold" if number == 0 else "")
        for column, text in enumerate(row[:count]):
            if column:
                line.append(gap)
            fitting = text if cell_len(text) <= widths[column] else _cut(text, widths[column])
            line.append(fitting, STYLES.get(text, "") if number else "")
            if column < count - 1:
                line.append(" " * (widths[column] - cell_len(fitting)))
        line.rstrip()
        out.print(line, soft_wrap=True)


def print_fields(fields: Mapping[str, object]) -> None:
    """Prints one field per line. Leaves out fields without a value."""
    known = [(shown(name), text) for name, value in fields.items() if (text := _cell(value))]
    width = max((cell_len(name) for name, _ in known), default=0)
    out = console()
    for name, text in known:
        line = Text(f"{name}{' ' * (width - cell_len(name))}{_GAP}", "dim")
        line.append(text, STYLES.get(text, "not dim") if name == "status" else "not dim")
        out.print(line, soft_wrap=True)


def _cut(text: str, width: int) -> str:
    return f"{set_cell_size(text, width - 1)}…"


def _cell(value: object) -> str:
    if value is None or value == [] or value == {}:
        return ""
    if isinstance(value, (list, tuple)):
        return shown(", ".join(map(str, value)))
    if isinstance(value, dict):
        return shown(json.dumps(value, ensure_ascii=False, default=str))
    return shown(str(value))
