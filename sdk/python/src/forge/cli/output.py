"""What goes to the terminal."""

import json
import os
import sys
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.text import Text


def shown(text: str) -> str:
    """Text from outside, without what a terminal would obey."""
    return "".join(
        character if character.isprintable() else ascii(character)[1:-1] for character in text
    )


def console(*, stderr: bool = False) -> Console:
    """Colours in a terminal only, and not where NO_COLOR is set."""
    if os.environ.get("NO_COLOR"):
        return Console(stderr=stderr, color_system=None)
    return Console(stderr=stderr)


def print_line(target: Console, text: str, style: str = "") -> None:
    """One line, however long it is."""
    target.print(Text(shown(text), style), soft_wrap=True)


def print_json(answer: Mapping[str, Any]) -> None:
    json.dump(answer, sys.stdout, indent=2)
    sys.stdout.write("\n")
