"""Runs file operations in threads: disk access and checksums would block the event loop."""

import asyncio
import threading
from collections.abc import Callable, Generator
from typing import TypeVar

from .retry_policy import TransientFailure
from .transport import Transport
from .wire import Wire

R = TypeVar("R")
T = TypeVar("T")


class _Cancelled(BaseException):
    """Raised in the thread after the awaiting task was cancelled. Ends the work in the thread."""


class _StoppableTransport(Transport):
    """Raises _Cancelled after `stopped` is set: at the next chunk, or in a pause before a retry."""

    def __init__(self, wire: Wire, stopped: threading.Event) -> None:
        super().__init__(wire)
        self._stopped = stopped

    def stream(self, path: str) -> Generator[bytes, None, None]:
        for chunk in super().stream(path):
            self.check()
            yield chunk

    def pause(self, seconds: float, failure: TransientFailure | None = None) -> None:
        self.check()
        if self._stopped.wait(seconds):
            self.check()

    def check(self) -> None:
        if self._stopped.is_set():
            raise _Cancelled


async def run_in_thread(
    wire: Wire,
    work: Callable[[Transport, Callable[[T], None]], R],
    on_progress: Callable[[T], None] | None,
) -> R:
    """Runs blocking work in a thread, with its own connections.

    Cancelling the awaiting task ends the work. `on_progress` is called in the event loop, not in
    the thread.
    """
    loop = asyncio.get_running_loop()
    stopped = threading.Event()

    def pass_on(value: T) -> None:
        if stopped.is_set():
            raise _Cancelled
        if on_progress:
            loop.call_soon_threadsafe(on_progress, value)

    def in_thread() -> R:
        transport = _StoppableTransport(wire, stopped)
        try:
            return work(transport, pass_on)
        finally:
            transport.close()

    task = asyncio.ensure_future(asyncio.to_thread(in_thread))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        stopped.set()
        # Wait until the thread has closed its files: the caller may remove the directory.
        await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # marks the exception as retrieved, so that asyncio does not log it
        raise
