"""What goes to the terminal: tables, fields, lines; or JSON, and then nothing else."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from ..drawing import STYLES, console
from ..text import shown

__all__ = ["console", "print_fields", "print_json", "print_line", "print_table", "shown"]

_GAP = "  "


def print_line(target: Console, text: str, style: str = "") -> None:
    """One line, however long it is."""
    target.print(Text(shown(text), style), soft_wrap=True)


def print_json(answer: Mapping[str, Any], indent: int | None = 2) -> None:
    json.dump(answer, sys.stdout, indent=indent)
    sys.stdout.write("\n")
    sys.stdout.flush()


def print_table(heads: Sequence[str], rows: Iterable[Sequence[object]], *, nothing: str) -> None:
    """Columns by their weight: in a terminal, those on the right that don't fit are left out."""
    texts = [[_cell(value) for value in row] for row in rows]
    out = console()
    if not texts:
        print_line(console(stderr=True), nothing)
        return
    cells = [list(heads), *texts]
    widths = [max(cell_len(row[column]) for row in cells) for column in range(len(heads))]
    count = len(heads)
    if out.is_terminal:
        while count > 1 and sum(widths[:count]) + len(_GAP) * (count - 1) > out.width:
            count -= 1
    for number, row in enumerate(cells):
        line = Text(style="bold" if number == 0 else "")
        for column, text in enumerate(row[:count]):
            if column:
                line.append(_GAP)
            line.append(text, STYLES.get(text, "") if number else "")
            if column < count - 1:
                line.append(" " * (widths[column] - cell_len(text)))
        line.rstrip()
        out.print(line, soft_wrap=True)


def print_fields(fields: Mapping[str, object]) -> None:
    """One a line; those without a value are left out."""
    known = {name: text for name, value in fields.items() if (text := _cell(value))}
    width = max(map(len, known), default=0)
    out = console()
    for name, text in known.items():
        line = Text(f"{name:<{width}}{_GAP}", "dim")
        line.append(text, STYLES.get(text, "not dim") if name == "status" else "not dim")
        out.print(line, soft_wrap=True)


def _cell(value: object) -> str:
    if value is None or value == [] or value == {}:
        return ""
    if isinstance(value, (list, tuple)):
        return shown(", ".join(map(str, value)))
    if isinstance(value, dict):
        return shown(json.dumps(value, ensure_ascii=False, default=str))
    return shown(str(value))
