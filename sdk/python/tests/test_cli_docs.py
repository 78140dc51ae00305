"""Checks that all commands in docs/cli.md exist. `npm run test:slow` runs the commands."""

import re
import shlex
import sys
from pathlib import Path

import pytest
import typer.core

from forge.cli import main

PAGE = Path(__file__).parents[3] / "docs" / "cli.md"


def commands_of(script: str) -> list[list[str]]:
    """The arguments of each `forge …` in a shell script, also in pipes and `$(…)`."""
    found: list[list[str]] = []
    words = shlex.shlex(script.replace("\\\n", " ").replace("\n", " ; "), punctuation_chars=True)
    words.whitespace_split = True
    words.commenters = ""
    is_open = False
    for word in words:
        if set(word) <= set("();<>|&"):
            is_open = False
        elif word == "forge":
            is_open = True
            found.append([])
        elif is_open:
            found[-1].append(shlex.split(word)[0])
    return found


def without_comments(script: str) -> str:
    return re.sub(r"(?m)\s#.*$", "", script)


BLOCKS = re.findall(r"(?ms)^```sh\n(.*?)^```$", PAGE.read_text())
COMMANDS = [command for block in BLOCKS for command in commands_of(without_comments(block))]


def test_the_page_has_all_kinds_of_commands() -> None:
    assert len(COMMANDS) > 40
    assert ["billing", "budget", "500", "--warn-at", "400"] in COMMANDS
    assert any("evaluate:scores.overall >= 0.7" in command for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_command_exists(command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    # Parses the command, but does not run it.
    monkeypatch.setattr(typer.core.TyperCommand, "invoke", lambda _self, _context: None)
    monkeypatch.setattr(sys, "argv", ["forge", *command])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code in (0, None)
