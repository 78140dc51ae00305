"""Splits a streamed log into lines."""

from collections.abc import Iterator

from .sse import ServerSentEvent


class LogLines:
    def __init__(self) -> None:
        self._rest = ""
        self.is_over = False

    def take(self, event: ServerSentEvent) -> Iterator[str]:
        """Yields the lines that an event completes, without newlines. Raises ForgeHTTPError."""
        if event.event == "end":
            self.is_over = True
        if event.event != "log":
            return
        data = event.json()
        if data.get("offset") == 0:  # another attempt's log begins: end the last line
            yield from self.rest()
        # Not splitlines: it would also split at characters other than a newline.
        *lines, self._rest = (self._rest + str(data.get("text", ""))).split("\n")
        yield from lines

    def rest(self) -> Iterator[str]:
        """Yields the incomplete last line, if there is one."""
        if self._rest:
            yield self._rest
        self._rest = ""
