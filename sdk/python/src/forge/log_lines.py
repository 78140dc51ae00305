"""Lines out of a log that comes in pieces."""

from collections.abc import Iterator

from .sse import ServerSentEvent


class LogLines:
    def __init__(self) -> None:
        self._rest = ""
        self.is_over = False

    def take(self, event: ServerSentEvent) -> Iterator[str]:
        """The lines that an event ends, without their end. Raises ForgeHTTPError."""
        if event.event == "end":
            self.is_over = True
        if event.event != "log":
            return
        data = event.json()
        if data.get("offset") == 0:  # another attempt's log begins
            yield from self.rest()
        # Not splitlines: what a program writes has only this end of a line.
        *lines, self._rest = (self._rest + str(data.get("text", ""))).split("\n")
        yield from lines

    def rest(self) -> Iterator[str]:
        """What had no end of a line."""
        if self._rest:
            yield self._rest
        self._rest = ""
