"""A byte range of a job's log."""

from __future__ import annotations

import re
from dataclasses import dataclass
from http import HTTPStatus

import httpx2

from .errors import ForgeHTTPError


@dataclass(frozen=True)
class LogRange:
    """Bytes of a log. May begin or end inside a multi-byte character."""

    start: int
    """The offset of the first byte."""
    total: int
    """The current length of the log."""
    content: bytes

    @property
    def text(self) -> str:
        return self.content.decode(errors="replace")

    @classmethod
    def of(cls, response: httpx2.Response) -> LogRange:
        """Reads the bytes and their range from a response.

        Raises ForgeHTTPError if the response is partial and has no valid Content-Range.
        """
        content = response.content
        if response.status_code == 200:  # Range is unsupported, or the log is empty
            return cls(0, len(content), content)
        given = response.headers.get("content-range", "")
        found = re.fullmatch(r"bytes (?:\*|(\d+)-\d+)/(\d+)", given)
        if not found:
            raise ForgeHTTPError("a partial response has no valid Content-Range")
        total = int(found[2])
        if response.status_code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            return cls(total, total, b"")
        return cls(int(found[1] or 0), total, content)
