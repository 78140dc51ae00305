"""Paths of files come from outside, and are hostile until they have been through here."""

import re
import stat
import unicodedata
from collections.abc import Iterable
from pathlib import Path

from .errors import UnsafePathError


def segments_of(path: str) -> tuple[str, ...]:
    """The names on the way to a file. Raises UnsafePathError for what may lead out of a folder,

    here or on another system: a later reader of the folder may use one that knows drives.
    """
    segments = tuple(path.split("/"))
    reason = _unsafe_character(path) or next(filter(None, map(_unsafe_segment, segments)), None)
    if reason:
        raise UnsafePathError(f"{path!r} is not the path of a file: {reason}")
    return segments


def _unsafe_character(path: str) -> str | None:
    if "\\" in path:
        return "it has a backslash"
    # Lone surrogates, which JSON can carry, have no form on a disk.
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in path):
        return "it has a character that is none of a name"
    return None


def _unsafe_segment(segment: str) -> str | None:
    if not segment:
        return "it is absolute, or a name in it is empty"
    if not segment.strip(". "):  # Windows takes ".. " for ".."
        return "it has a name of dots"
    if re.match(r"[A-Za-z]:", segment):
        return "it names a drive"
    return None


def require_distinct(paths: Iterable[str]) -> None:
    """Raises UnsafePathError where not every disk could hold all of these files together."""
    files: set[str] = set()
    folders: set[str] = set()
    spelling: dict[str, str] = {}
    for path in paths:
        segments = segments_of(path)
        for length in range(1, len(segments) + 1):
            start = "/".join(segments[:length])
            folded = _folded(start)
            if spelling.setdefault(folded, start) != start:
                raise UnsafePathError(f"{start!r} and {spelling[folded]!r} may be the same file")
            is_file = length == len(segments)
            if folded in files or (is_file and folded in folders):
                raise UnsafePathError(f"{start!r} is there twice")
            (files if is_file else folders).add(folded)


def _folded(path: str) -> str:
    """The same for all names that some file system takes for one."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def prepare(root: Path, path: str) -> Path:
    """Where to write a file below a root; its folders are made.

    Raises UnsafePathError, also where a symbolic link is in the way: it may lead out of the root.
    """
    *folders, name = segments_of(path)
    place = root
    for folder in folders:
        place = place / folder
        place.mkdir(exist_ok=True)
        if not stat.S_ISDIR(place.lstat().st_mode):
            raise UnsafePathError(f"{place} is a symbolic link: nothing is written through it")
    target = place / name
    if target.is_symlink():
        raise UnsafePathError(f"{target} is a symbolic link: nothing is written in its place")
    return target


def find(root: Path, path: str) -> Path | None:
    """A file below a root, or None; what is reached by a symbolic link is not below it.

    Raises UnsafePathError.
    """
    place = root
    *folders, name = segments_of(path)
    try:
        for folder in folders:
            place = place / folder
            if not stat.S_ISDIR(place.lstat().st_mode):
                return None
        return place / name if stat.S_ISREG((place / name).lstat().st_mode) else None
    except (FileNotFoundError, NotADirectoryError):
        return None
