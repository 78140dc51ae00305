"""Runs many calls concurrently and yields their results in order."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")


async def concurrently(
    calls: Iterable[Coroutine[Any, Any, T]], limit: int
) -> AsyncGenerator[T, None]:
    """Runs at most `limit` calls at a time. If one fails, cancels the others and starts no more."""
    running: deque[asyncio.Task[T]] = deque()
    try:
        for call in calls:
            running.append(asyncio.create_task(call))
            if len(running) == limit:
                yield await running.popleft()
        while running:
            yield await running.popleft()
    finally:
        for task in running:
            task.cancel()
