"""The local artifact store: forge:// and file:// URIs below one directory."""

import os
import shutil
import uuid
from pathlib import Path
from urllib.parse import unquote, urlsplit


class NoSuchInput(Exception):
    """A URI that this worker can't read; trying again is of no use."""


class ArtifactStore:
    def __init__(self, root: Path) -> None:
        self._root = root.resolve()

    def path_of(self, uri: str) -> Path:
        """The file or directory behind forge://artifacts/<key> or file://<path below the root>.

        Raises NoSuchInput for another scheme and for a path that leaves the store.
        """
        parts = urlsplit(uri)
        if parts.scheme == "forge" and parts.netloc == "artifacts":
            path = self._root / unquote(parts.path).lstrip("/")
        elif parts.scheme == "file" and parts.netloc == "":
            path = Path(unquote(parts.path))
        else:
            raise NoSuchInput(f"this worker has no store for {parts.scheme}://{parts.netloc}")
        path = path.resolve()
        if not path.is_relative_to(self._root):
            raise NoSuchInput(f"{uri} is not below the artifacts directory")
        return path

    def fetch(self, uri: str) -> Path:
        """A local file with the input's bytes."""
        path = self.path_of(uri)
        if not path.is_file():
            raise NoSuchInput(f"{uri} does not exist")
        return path

    def upload(self, directory: Path, uri: str) -> None:
        """Copies every file of a directory below the URI; each appears whole or not at all."""
        target = self.path_of(uri)
        for source in sorted(path for path in directory.rglob("*") if path.is_file()):
            destination = target / source.relative_to(directory)
            destination.parent.mkdir(parents=True, exist_ok=True)
            partial = destination.with_name(f".{uuid.uuid4().hex}.part")
            with source.open("rb") as reader, partial.open("wb") as writer:
                shutil.copyfileobj(reader, writer)
                os.fsync(writer.fileno())
            partial.replace(destination)
