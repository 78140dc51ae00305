"""Uploads a dataset's file."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from .errors import ForgeError
from .models import Dataset
from .pull import OnProgress, Progress
from .request import Request

_PIECE_BYTES = 256 * 1024
_ANSWER_S = 300.0
"""Time-out for the response: after the last byte, the server counts and stores the rows."""

_TYPES = {
    "parquet": "application/vnd.apache.parquet",
    "jsonl": "application/x-ndjson",
    "ndjson": "application/x-ndjson",
    "csv": "text/csv",
}


@dataclass(frozen=True)
class Upload:
    """A request body that is read again for each try."""

    file: DatasetFile
    on_progress: OnProgress | None

    def pieces(self) -> Iterator[bytes]:
        done = 0
        with self.file.open() as content:
            while piece := content.read(_PIECE_BYTES):
                yield piece
                done += len(piece)
                if self.on_progress:
                    self.on_progress(Progress(self.file.name, done, self.file.size_bytes))


@dataclass(frozen=True)
class DatasetFile:
    source: Path | bytes | BinaryIO
    name: str
    content_type: str
    size_bytes: int
    start: int = 0

    @classmethod
    def of(
        cls, source: Path | str | bytes | BinaryIO, name: str | None, format: str | None
    ) -> DatasetFile:
        """Determines the name, type and size of a source.

        Raises ForgeError if the format is unknown or the source is not seekable, and OSError if the
        file can't be accessed.
        """
        if isinstance(source, (str, os.PathLike)):
            source = Path(source)
            filename, size, start = source.name, source.stat().st_size, 0
        elif isinstance(source, bytes):
            filename, size, start = "", len(source), 0
        else:
            filename = str(getattr(source, "name", ""))
            size, start = _extent_of(source)
        suffix = (format or Path(filename).suffix.removeprefix(".")).lower()
        if suffix not in _TYPES:
            raise ForgeError(f"format must be jsonl, csv or parquet, not {suffix!r}")
        return cls(source, name or Path(filename).stem or "dataset", _TYPES[suffix], size, start)

    def request(
        self, idempotency_key: str | None, on_progress: OnProgress | None
    ) -> Request[Dataset]:
        return Request(
            "POST",
            "/api/datasets",
            Dataset,
            {"name": self.name},
            Upload(self, on_progress),
            {
                "Content-Type": self.content_type,
                "Content-Length": str(self.size_bytes),
                "X-Checksum-Sha256": self._sha256(),
            },
            creates=True,
            idempotency_key=idempotency_key,
            read_timeout_s=_ANSWER_S,
        )

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        if isinstance(self.source, bytes):
            yield io.BytesIO(self.source)
        elif isinstance(self.source, Path):
            with self.source.open("rb") as content:
                yield content
        else:
            self.source.seek(self.start)
            yield self.source

    def _sha256(self) -> str:
        digest = hashlib.sha256()
        with self.open() as content:
            while piece := content.read(_PIECE_BYTES):
                digest.update(piece)
        return digest.hexdigest()


def _extent_of(file: BinaryIO) -> tuple[int, int]:
    """Returns the number of remaining bytes of a file, and its current position."""
    try:
        start = file.tell()
        end = file.seek(0, os.SEEK_END)
        file.seek(start)
    except (OSError, AttributeError, ValueError):
        raise ForgeError(
            "source must be a path, bytes, or a file that can be read again from the beginning"
        ) from None
    return end - start, start
