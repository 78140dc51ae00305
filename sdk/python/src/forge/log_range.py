"""A part of a job's log."""

from __future__ import annotations

import re
from dataclasses import dataclass

import httpx2

from .errors import ForgeHTTPError

BEYOND = 416


@dataclass(frozen=True)
class LogRange:
    """Bytes of a log. A character may be cut in two at either end."""

    start: int
    """The offset of the first byte."""
    total: int
    """How long the log is, so far."""
    content: bytes

    @property
    def text(self) -> str:
        return self.content.decode(errors="replace")

    @classmethod
    def of(cls, response: httpx2.Response) -> LogRange:
        """Raises ForgeHTTPError where the answer does not say which part it is."""
        content = response.content
        if response.status_code == 200:  # who does not know Range, or of an empty log
            return cls(0, len(content), content)
        given = response.headers.get("content-range", "")
        found = re.fullmatch(r"bytes (?:\*|(\d+)-\d+)/(\d+)", given)
        if not found:
            raise ForgeHTTPError("a partial answer does not say which part it is")
        total = int(found[2])
        if response.status_code == BEYOND:
            return cls(total, total, b"")
        return cls(int(found[1] or 0), total, content)
