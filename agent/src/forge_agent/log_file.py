"""A job's log as it is written here: masked, bounded, and never in the handler's way."""

import logging
import os
import re
import threading
import weakref
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import IO

from .masking import Mask

logger = logging.getLogger(__name__)

_LINE_BYTES = 64 * 1024
"""A longer line is cut."""
_TAIL_BYTES = 64 * 1024
"""Of a log over its bound, so much of its end is kept."""
_READ_BYTES = 64 * 1024
_LINE_END = re.compile(rb"\r?\n|\r(?!\n)")
"""A progress bar that returns to the start of its line makes lines too."""


class LogFile:
    """Lines go to a file. Beyond `max_bytes`, or on a full disk, the last ones wait in memory.

    `close` writes them, after a mark that says how much is missing before them. The file is opened
    once: a job that puts a link in its place neither reads nor writes anything by it.
    """

    def __init__(self, path: Path, max_bytes: int, mask: Mask) -> None:
        self._mask = mask
        # Room for the mark and the last lines.
        self._head_bytes = max(0, max_bytes - _TAIL_BYTES - 1024)
        self._written = 0
        self._left_out = 0
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self._last_line = b""
        self._why_short: str | None = None
        self._lock = threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        self._file = os.open(path, flags, 0o600)
        # Not in `close`: a server that has just been deployed may still write a line.
        weakref.finalize(self, os.close, self._file)

    @property
    def last_line(self) -> str:
        with self._lock:
            return self._last_line.decode(errors="replace").strip()

    def say(self, text: str) -> None:
        """A line of the agent's own."""
        self.write(f"[forge] {text}\n".encode())

    def pump(self, source: IO[bytes], is_report: Callable[[bytes], bool]) -> None:
        """Reads a handler's output to its end, but for the lines that `is_report` takes."""
        held = b""
        while chunk := source.read1(_READ_BYTES):  # type: ignore[attr-defined]
            *lines, held = _LINE_END.split(held + chunk)
            for line in lines:
                self._hear(line + b"\n", is_report)
            if len(held) > _LINE_BYTES:
                # A secret may stand across the cut: so much waits for what follows.
                cut = len(held) - self._mask.longest
                self.write(held[:cut])
                held = held[cut:]
        if held:
            self._hear(held + b"\n", is_report)

    def write(self, line: bytes) -> None:
        line = self._mask.apply(line)
        with self._lock:
            if line.strip():
                self._last_line = line[-1024:]
            fits = self._why_short is None and self._written + len(line) <= self._head_bytes
            if fits and self._append(line):
                return
            self._why_short = self._why_short or "it is over its bound"
            self._left_out += len(line)
            self._tail.append(line)
            self._tail_bytes += len(line)
            while self._tail_bytes > _TAIL_BYTES and len(self._tail) > 1:
                self._tail_bytes -= len(self._tail.popleft())

    def read(self, start: int, size: int) -> bytes:
        """Up to `size` bytes of what is in the file; thread-safe."""
        return os.pread(self._file, size, start)

    def copy_to(self, target: Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as output:
            while chunk := self.read(output.tell(), _READ_BYTES):
                output.write(chunk)

    def close(self) -> None:
        """Writes what was kept of the end."""
        with self._lock:
            if self._why_short is None:
                return
            kept = b"".join(self._tail)[-_TAIL_BYTES:]
            missing = self._left_out - len(kept)
            mark = f"[forge] {missing} bytes of the log are left out here: {self._why_short}\n"
            self._append(mark.encode() + kept)
            self._why_short = None

    def _hear(self, line: bytes, is_report: Callable[[bytes], bool]) -> None:
        if not is_report(line):
            self.write(line)

    def _append(self, data: bytes) -> bool:
        try:
            left = memoryview(data)
            while left:
                left = left[os.write(self._file, left) :]
        except OSError as error:
            # The handler goes on: a job is worth more than its log.
            self._why_short = str(error.strerror)
            logger.error("the job's log can't be written: %s", error)
            return False
        self._written += len(data)
        return True
