"""Validates paths of files, because they come from a server and must not be trusted."""

import re
import stat
import unicodedata
from collections.abc import Iterable
from pathlib import Path

from .errors import UnsafePathError


def segments_of(path: str) -> tuple[str, ...]:
    """Splits a path into names. Raises UnsafePathError if it could lead out of a folder.

    Also applies the rules of other operating systems, such as drive names: the folder may later be
    copied to a machine with another operating system.
    """
    segments = tuple(path.split("/"))
    reason = _unsafe_character(path) or next(filter(None, map(_unsafe_segment, segments)), None)
    if reason:
        raise UnsafePathError(f"{path!r} is not a valid file path: {reason}")
    return segments


def _unsafe_character(path: str) -> str | None:
    if "\\" in path:
        return "it has a backslash"
    # JSON can contain lone surrogates, which file systems can't represent.
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in path):
        return "it has an invalid character"
    return None


def _unsafe_segment(segment: str) -> str | None:
    if not segment:
        return "it is absolute, or has an empty name"
    if not segment.strip(". "):  # Windows treats ".. " as ".."
        return "it has a name of dots"
    if re.match(r"[A-Za-z]:", segment):
        return "it has a drive name"
    return None


def require_distinct(paths: Iterable[str]) -> None:
    """Raises UnsafePathError if two of the files conflict on at least one kind of file system.

    For example, their paths differ only in case, or one file is a folder in the other's path.
    """
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
                raise UnsafePathError(f"{start!r} is listed twice")
            (files if is_file else folders).add(folded)


def _folded(path: str) -> str:
    """Returns the same key for paths that a file system may treat as the same file."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def prepare(root: Path, path: str) -> Path:
    """Returns where to write a file below a root. Creates the file's folders.

    Raises UnsafePathError for an unsafe path, and if the file or one of its folders is a symbolic
    link, which may lead out of the root.
    """
    *folders, name = segments_of(path)
    place = root
    for folder in folders:
        place = place / folder
        place.mkdir(exist_ok=True)
        if not stat.S_ISDIR(place.lstat().st_mode):
            raise UnsafePathError(f"{place} is a symbolic link; not writing through it")
    target = place / name
    if target.is_symlink():
        raise UnsafePathError(f"{target} is a symbolic link; not replacing it")
    return target


def find(root: Path, path: str) -> Path | None:
    """Returns the path of a file below a root, or None if the file does not exist.

    Also returns None if the file or one of its folders is a symbolic link. Raises UnsafePathError
    for an unsafe path.
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
