"""A real terminal for one command: screen content, key presses and screenshots."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import monotonic

import pyte
from rich.color import Color
from rich.console import Console
from rich.style import Style
from rich.text import Text

CTRL_C = b"\x03"
_COLOURS = {"brown": "yellow"}
"""Colours with different names in pyte and rich."""


class Terminal:
    """Runs a command in a pseudo-terminal. Use it as a context manager."""

    def __init__(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        *,
        columns: int = 80,
        lines: int = 24,
    ) -> None:
        self.raw = b""
        """All output so far."""
        self._screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self._screen)
        self._code: int | None = None
        self._pid, self._descriptor = pty.fork()
        if self._pid == 0:
            size = struct.pack("HHHH", lines, columns, 0, 0)
            fcntl.ioctl(0, termios.TIOCSWINSZ, size)
            os.execvpe(command[0], list(command), {**env, "TERM": "xterm-256color"})

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        if self._code is None:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
        os.close(self._descriptor)

    @property
    def text(self) -> str:
        """The visible text, without trailing spaces and trailing blank lines."""
        return "\n".join(line.rstrip() for line in self._screen.display).rstrip()

    def until(self, wanted: str | Callable[[str], bool], timeout_s: float = 20.0) -> str:
        """Waits for a text or condition on the screen. Returns the screen."""
        end_s = monotonic() + timeout_s
        while not (wanted in self.text if isinstance(wanted, str) else wanted(self.text)):
            left_s = end_s - monotonic()
            if left_s <= 0 or not self._read(left_s):
                raise AssertionError(f"{wanted!r} is not on the screen:\n{self.text}")
        return self.text

    def press(self, keys: bytes) -> None:
        os.write(self._descriptor, keys)

    def ended(self, timeout_s: float = 20.0) -> int:
        """Waits for the end of the command. Returns its exit code."""
        end_s = monotonic() + timeout_s
        while monotonic() <= end_s and self._read(end_s - monotonic()):
            pass
        if monotonic() > end_s:
            raise AssertionError(f"it has not ended:\n{self.text}")
        _, status = os.waitpid(self._pid, 0)
        self._code = os.waitstatus_to_exitcode(status)
        return self._code

    def _read(self, timeout_s: float) -> bool:
        """Reads available output. False: the output has ended, or nothing arrived in time."""
        ready, _, _ = select.select([self._descriptor], [], [], max(0.0, timeout_s))
        if not ready:
            return False
        try:
            chunk = os.read(self._descriptor, 65536)
        except OSError:  # Linux: the other end is closed
            chunk = b""
        self.raw += chunk
        self._stream.feed(chunk)
        return bool(chunk)

    def picture(self, path: Path, command: str) -> None:
        """Writes the command and the screen as SVG."""
        console = Console(record=True, width=self._screen.columns, file=open(os.devnull, "w"))  # noqa: PTH123, SIM115
        console.print(Text("$ ", "bold green").append(command, "not bold default"), end="\n")
        for number in range(len(self.text.split("\n"))):
            console.print(self._line(number), no_wrap=True)
        svg = console.export_svg(title="forge", unique_id="forge")
        # Removes the web font: a page with the picture should load nothing from other servers.
        svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
        path.write_text(svg.replace("Fira Code", "ui-monospace, Menlo, Consolas"))

    def _line(self, number: int) -> Text:
        row = self._screen.buffer[number]
        line = Text()
        for column in range(self._screen.columns):
            cell = row[column]
            line.append(cell.data, Style(color=_colour(cell.fg), bold=cell.bold))
        line.rstrip()
        return line


def _colour(name: str) -> Color | None:
    if name == "default":
        return None
    if re.fullmatch("[0-9a-f]{6}", name):
        return Color.parse(f"#{name}")
    return Color.parse(_COLOURS.get(name, name).replace("bright", "bright_"))
