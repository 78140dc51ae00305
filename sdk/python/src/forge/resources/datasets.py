"""Uploads of datasets."""

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
        """Uploads a table of any size: JSON lines, CSV with a header, or parquet.

        `source` is a path, bytes, or a seekable binary file. `format` is `jsonl`, `csv` or
        `parquet`, and is required if the file name has none of these suffixes. The file is
        streamed, with a checksum. Raises BadRequestError if a row is invalid.
        """
        file = DatasetFile.of(source, name, format)
        return self._transport.run(file.request(idempotency_key, on_progress))


class AsyncDatasets(Resource[Async]):
    """`AsyncForge.datasets`. Reads files in threads."""

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
        """Uploads a table of any size: JSON lines, CSV with a header, or parquet.

        `source` is a path, bytes, or a seekable binary file. `format` is `jsonl`, `csv` or
        `parquet`, and is required if the file name has none of these suffixes. The file is
        streamed, with a checksum. Raises BadRequestError if a row is invalid.
        """
        loop = get_running_loop()

        def report(progress: Progress) -> None:
            # `report` runs in a thread, but `on_progress` must run in the event loop.
            if on_progress:
                loop.call_soon_threadsafe(on_progress, progress)

        file = DatasetFile.of(source, name, format)
        request = await to_thread(file.request, idempotency_key, report)
        return await self._transport.run(request)
