"""An artifact's files onto this machine's disk: under their name only when they are right."""

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
"""The bytes of a file, by its path."""


@dataclass(frozen=True)
class Progress:
    path: str
    """The file that is on its way, or has just been found to be here."""
    done_bytes: int
    total_bytes: int


OnProgress = Callable[[Progress], None]


@dataclass(frozen=True)
class Pulled:
    directory: Path
    fetched: tuple[str, ...]
    kept: tuple[str, ...]
    """Files that were right already."""
    verified: bool
    """As the manifest has it; False: there are files that the control plane never saw."""


def pull(
    manifest: Mapping[str, Any], content: Content, root: Path, on_progress: OnProgress | None
) -> Pulled:
    """Fetches what is not there yet, and the manifest last.

    Raises IntegrityError, UnsafePathError (before anything is written, but for links that are in
    the way), OSError, and what `content` raises.
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
    """Writes a file as it arrives. Raises IntegrityError, and then leaves nothing behind."""
    with _replacing(target) as output:
        check = check_content(file, _written(chunks, output))
        if check.outcome is not Outcome.OK:
            raise IntegrityError(f"{file.path} is not what its manifest says: {check.detail}")


def save_unchecked(chunks: Iterable[bytes], target: Path) -> Path:
    """Writes what no manifest names, under its name only when all has arrived."""
    with _replacing(target) as output:
        for chunk in chunks:
            output.write(chunk)
    return target


@contextmanager
def _replacing(target: Path) -> Iterator[BinaryIO]:
    """A file to write to, which then takes its name; nothing of it stays after an exception."""
    # Made anew, and by a name that nobody knows: two pulls side by side don't write into one file.
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
    """Tells of each piece once it has been taken."""
    for chunk in chunks:
        yield chunk
        advance(path, len(chunk))
