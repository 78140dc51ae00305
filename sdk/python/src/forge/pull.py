"""Downloads an artifact's files. A file gets its final name only after verification."""

import json
import secrets
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from . import paths
from .errors import IntegrityError
from .models import MANIFEST_FILE, ArtifactFile, files_of
from .verification import Outcome, check_content, check_local

Content = Callable[[str], Generator[bytes, None, None]]
"""Returns the bytes of a file by its path."""


@dataclass(frozen=True)
class Progress:
    path: str
    """The file that is being transferred, or that was already correct on the disk."""
    done_bytes: int
    total_bytes: int


OnProgress = Callable[[Progress], None]


@dataclass(frozen=True)
class Pulled:
    directory: Path
    fetched: tuple[str, ...]
    kept: tuple[str, ...]
    """Files that were already correct on the disk."""
    verified: bool
    """The manifest's `verified`. False: the control plane could not read some of the files."""


def pull(
    manifest: Mapping[str, Any], content: Content, root: Path, on_progress: OnProgress | None
) -> Pulled:
    """Downloads the files that are missing or incorrect, then writes the manifest.

    If the manifest has an unsafe path, raises UnsafePathError before it writes anything. If a path
    leads through a symbolic link on the disk, raises UnsafePathError when it reaches that file.
    Also raises IntegrityError, OSError, and the errors that `content` raises.
    """
    files = files_of(manifest)
    paths.require_distinct([MANIFEST_FILE, *(file.path for file in files)])
    root.mkdir(parents=True, exist_ok=True)
    total = sum(file.size_bytes for file in files)
    done = 0
    fetched, kept = [], []

    def advance(path: str, count: int) -> None:
        nonlocal done
        done += count
        if on_progress:
            on_progress(Progress(path, done, total))

    for file in files:
        if check_local(root, file).outcome is Outcome.OK:
            kept.append(file.path)
            advance(file.path, file.size_bytes)
            continue
        target = paths.prepare(root, file.path)
        with closing(content(file.path)) as chunks:
            save(file, counted(chunks, file.path, advance), target)
        fetched.append(file.path)
    text = json.dumps(manifest, indent=2) + "\n"
    with _replacing(paths.prepare(root, MANIFEST_FILE)) as output:
        output.write(text.encode())
    return Pulled(root, tuple(fetched), tuple(kept), manifest.get("verified") is True)


def save(file: ArtifactFile, chunks: Iterable[bytes], target: Path) -> None:
    """Writes and verifies a file.

    If the chunks do not match the manifest, removes the file and raises IntegrityError.
    """
    with _replacing(target) as output:
        check = check_content(file, _written(chunks, output))
        if check.outcome is not Outcome.OK:
            raise IntegrityError(f"{file.path} does not match its manifest: {check.detail}")


def save_unchecked(chunks: Iterable[bytes], target: Path) -> Path:
    """Writes a file without verification. The file gets its final name after its last chunk."""
    with _replacing(target) as output:
        for chunk in chunks:
            output.write(chunk)
    return target


@contextmanager
def _replacing(target: Path) -> Iterator[BinaryIO]:
    """Opens a temporary file. Renames it to the target, or removes it after an exception."""
    # A random name, so that concurrent pulls don't write to the same file.
    partial = target.with_name(f".forge-{secrets.token_hex(8)}.part")
    try:
        with partial.open("xb") as output:
            yield output
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def _written(chunks: Iterable[bytes], output: BinaryIO) -> Iterator[bytes]:
    for chunk in chunks:
        output.write(chunk)
        yield chunk


def counted(
    chunks: Iterable[bytes], path: str, advance: Callable[[str, int], None]
) -> Iterator[bytes]:
    """Yields the chunks. Calls `advance` for each chunk after the caller has consumed it."""
    for chunk in chunks:
        yield chunk
        advance(path, len(chunk))
