"""File work for the async client: disks and checksums would hold up its event loop."""

import asyncio
import threading
from collections.abc import Callable, Generator
from typing import TypeVar

from .retries import Passing
from .transport import Transport
from .wire import Wire

R = TypeVar("R")
T = TypeVar("T")


class _Cancelled(BaseException):
    """Ends the work in a thread whose result nobody waits for any more."""


class _StoppableTransport(Transport):
    """Ends with the next piece of a file once it is told to."""

    def __init__(self, wire: Wire, stopped: threading.Event) -> None:
        super().__init__(wire)
        self._stopped = stopped

    def stream(self, path: str) -> Generator[bytes, None, None]:
        for chunk in super().stream(path):
            self.check()
            yield chunk

    def pause(self, seconds: float, passing: Passing | None = None) -> None:
        self.check()
        if self._stopped.wait(seconds):
            self.check()

    def check(self) -> None:
        if self._stopped.is_set():
            raise _Cancelled


class FileWork:
    """Runs blocking work with connections of its own, and lets a cancelled task end it."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    async def run(
        self,
        work: Callable[[Transport, Callable[[T], None]], R],
        tell: Callable[[T], None] | None,
    ) -> R:
        """`tell` is called in the event loop, as everything else of the caller's."""
        loop = asyncio.get_running_loop()
        stopped = threading.Event()

        def pass_on(news: T) -> None:
            if stopped.is_set():
                raise _Cancelled
            if tell:
                loop.call_soon_threadsafe(tell, news)

        def in_thread() -> R:
            transport = _StoppableTransport(self._wire, stopped)
            try:
                return work(transport, pass_on)
            finally:
                transport.close()

        task = asyncio.ensure_future(asyncio.to_thread(in_thread))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            stopped.set()
            # Not before its last file is closed: the caller may remove the directory.
            await asyncio.wait([task])
            if not task.cancelled():
                task.exception()  # it has been looked at
            raise
