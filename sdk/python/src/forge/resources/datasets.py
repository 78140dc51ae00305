"""Datasets of one's own."""

from __future__ import annotations

from asyncio import get_running_loop, to_thread
from pathlib import Path
from typing import BinaryIO

from ..async_transport import AsyncTransport
from ..models import Dataset
from ..operation import Async, Resource, Sync
from ..pull import OnProgress, Progress
from ..transport import Transport
from ..upload import DatasetFile

Source = Path | str | bytes | BinaryIO


class Datasets(Resource[Sync]):
    """`Forge.datasets`."""

    _transport: Transport

    def upload(
        self,
        source: Source,
        name: str | None = None,
        *,
        format: str | None = None,
        on_progress: OnProgress | None = None,
        idempotency_key: str | None = None,
    ) -> Dataset:
        """Uploads a table: JSON lines, CSV with a header, or parquet, of any size.

        `source` is a path, bytes, or a binary file that can be read from the beginning again.
        `format` is `jsonl`, `csv` or `parquet`, where the name of the file doesn't say. It is sent
        piece by piece, with its checksum. Raises BadRequestError where a row is wrong.
        """
        file = DatasetFile.of(source, name, format)
        return self._transport.run(file.request(idempotency_key, on_progress))


class AsyncDatasets(Resource[Async]):
    """`AsyncForge.datasets`. Files are read in threads."""

    _transport: AsyncTransport

    async def upload(
        self,
        source: Source,
        name: str | None = None,
        *,
        format: str | None = None,
        on_progress: OnProgress | None = None,
        idempotency_key: str | None = None,
    ) -> Dataset:
        """Uploads a table: JSON lines, CSV with a header, or parquet, of any size.

        `source` is a path, bytes, or a binary file that can be read from the beginning again.
        `format` is `jsonl`, `csv` or `parquet`, where the name of the file doesn't say. It is sent
        piece by piece, with its checksum. Raises BadRequestError where a row is wrong.
        """
        loop = get_running_loop()

        def tell(progress: Progress) -> None:
            # In the event loop, as everything else of the caller's.
            if on_progress:
                loop.call_soon_threadsafe(on_progress, progress)

        file = DatasetFile.of(source, name, format)
        request = await to_thread(file.request, idempotency_key, tell)
        return await self._transport.run(request)
