"""A job's local log file: masked, limited in size, and never blocking the handler."""

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
"""Maximum length of a line. A longer line is split."""
_TAIL_BYTES = 64 * 1024
"""If a log exceeds its limit, this many bytes of its end are kept."""
_READ_BYTES = 64 * 1024
_LINE_END = re.compile(rb"\r?\n|\r(?!\n)")
"""Includes a lone carriage return, so that each update of a progress bar becomes a line."""


class LogFile:
    """Writes lines to a file of at most `max_bytes`.

    When the file or the disk is full, keeps the most recent lines in memory. `close` then writes
    a line that says how many bytes are omitted, followed by the most recent lines. The file is
    opened only once, so a job that replaces the file with a link can't redirect reads or writes.
    """

    def __init__(self, path: Path, max_bytes: int, mask: Mask) -> None:
        self._mask = mask
        # Leaves space for the lines that `close` writes.
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
        # Close the descriptor when this object is garbage-collected, and not in `close`: the model
        # server that a deploy job started may still write a line after `close`.
        weakref.finalize(self, os.close, self._file)

    @property
    def last_line(self) -> str:
        with self._lock:
            return self._last_line.decode(errors="replace").strip()

    def note(self, text: str) -> None:
        """Writes a message of the agent, with the prefix `[forge]`."""
        self.write(f"[forge] {text}\n".encode())

    def pump(self, source: IO[bytes], is_report: Callable[[bytes], bool]) -> None:
        """Copies a handler's output to the log until the output ends.

        Skips lines for which `is_report` is true.
        """
        held = b""
        while chunk := source.read1(_READ_BYTES):  # type: ignore[attr-defined]
            *lines, held = _LINE_END.split(held + chunk)
            for line in lines:
                self._write_unless_report(line + b"\n", is_report)
            if len(held) > _LINE_BYTES:
                # Cut this long line, but not inside a secret. First mask the complete secrets. Then
                # keep the end of the line for later, because it may be the beginning of another
                # secret. This end is as long as the longest secret.
                held = self._mask.apply(held)
                cut = max(0, len(held) - self._mask.longest)
                self.write(held[:cut])
                held = held[cut:]
        if held:
            self._write_unless_report(held + b"\n", is_report)

    def write(self, line: bytes) -> None:
        line = self._mask.apply(line)
        with self._lock:
            if line.strip():
                self._last_line = line[-1024:]
            fits = self._why_short is None and self._written + len(line) <= self._head_bytes
            if fits and self._append(line):
                return
            self._why_short = self._why_short or "it exceeds its limit"
            self._left_out += len(line)
            self._tail.append(line)
            self._tail_bytes += len(line)
            while self._tail_bytes > _TAIL_BYTES and len(self._tail) > 1:
                self._tail_bytes -= len(self._tail.popleft())

    def read(self, start: int, size: int) -> bytes:
        """Reads up to `size` bytes of the file. Thread-safe."""
        return os.pread(self._file, size, start)

    def copy_to(self, target: Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as output:
            while chunk := self.read(output.tell(), _READ_BYTES):
                output.write(chunk)

    def close(self) -> None:
        """Writes how many bytes are omitted, then the last lines. Does not close the file."""
        with self._lock:
            if self._why_short is None:
                return
            kept = b"".join(self._tail)[-_TAIL_BYTES:]
            missing = self._left_out - len(kept)
            omission = f"[forge] {missing} bytes of the log are omitted here: {self._why_short}\n"
            self._append(omission.encode() + kept)
            self._why_short = None

    def _write_unless_report(self, line: bytes, is_report: Callable[[bytes], bool]) -> None:
        if not is_report(line):
            self.write(line)

    def _append(self, data: bytes) -> bool:
        try:
            left = memoryview(data)
            while left:
                left = left[os.write(self._file, left) :]
        except OSError as error:
            # The handler continues: a failed log must not fail the job.
            self._why_short = str(error.strerror)
            logger.error("the job's log can't be written: %s", error)
            return False
        self._written += len(data)
        return True
