"""Decodes server-sent events."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .errors import ForgeHTTPError
from .retry_policy import parse_json

_MAX_EVENT_BYTES = 16 * 1024 * 1024
"""The longest line in bytes, and the longest data of an event in characters."""


@dataclass(frozen=True)
class ServerSentEvent:
    event: str
    data: str
    id: str | None = None

    def json(self) -> dict[str, Any]:
        """Parses the data. Raises ForgeHTTPError if it is not a JSON object."""
        data = parse_json(self.data)
        if not isinstance(data, dict):
            raise ForgeHTTPError(f"the data of an event {self.event!r} is not a JSON object")
        return data


class EventDecoder:
    """Decodes events by the WHATWG rules. Lines end with \\r, \\n or both.

    Differences from these rules: a byte order mark is not skipped, `retry` is ignored, and an
    event without an `id` line has no id.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._event = ""
        self._data: list[str] = []
        self._data_size = 0
        self._id: str | None = None

    def feed(self, chunk: bytes) -> Iterator[ServerSentEvent]:
        content = self._rest + chunk
        # A \r at the end may be the first half of \r\n, so keep it until the next chunk.
        held = b"\r" if content.endswith(b"\r") else b""
        *lines, rest = re.split(rb"\r\n|\n|\r", content[: len(content) - len(held)])
        self._rest = rest + held
        if len(self._rest) > _MAX_EVENT_BYTES:
            raise ForgeHTTPError("a line of an event stream is too long")
        for line in lines:
            event = self._take(line.decode("utf-8", "replace"))
            if event:
                yield event

    def _take(self, line: str) -> ServerSentEvent | None:
        if not line:
            data, event, self._data = self._data, self._event or "message", []
            self._event, self._data_size = "", 0
            found = ServerSentEvent(event, "\n".join(data), self._id) if data else None
            self._id = None
            return found
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self._event = value
        elif name == "data":
            self._data.append(value)
            self._data_size += len(value) + 1
            if self._data_size > _MAX_EVENT_BYTES:
                raise ForgeHTTPError("an event of an event stream is too long")
        elif name == "id" and "\0" not in value:
            self._id = value
        return None
