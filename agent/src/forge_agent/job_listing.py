"""Lists what a job left, in bounds: how deep and how much is up to the job."""

import os
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from .job_files import UnsafeFile, open_below, open_folder

_MAX_DEPTH = 64
"""Each level holds a descriptor open."""


@dataclass(frozen=True)
class Entry:
    """A file, or whatever else is no folder, as it was when its folder was listed."""

    name: str
    """Path below the folder that was listed, with slashes."""
    is_regular: bool
    modified_ns: int


def list_files(root: Path, name: str = "", at_most: int = sys.maxsize - 1) -> list[Entry]:
    """Everything below a folder that is no folder, sorted.

    Raises UnsafeFile where it is a link, or more than `at_most` files and folders are in it.
    """
    with open_folder(root, name) as folder:
        entries = _Listing(name, at_most).walk(folder, "", 0)
        return sorted(entries, key=lambda entry: entry.name)


def list_folder(root: Path, name: str, at_most: int) -> list[Entry]:
    """As list_files, without what its folders hold, in no order."""
    with open_folder(root, name) as folder:
        return list(_Listing(name, at_most).walk(folder, "", 0, is_deep=False))


class _Listing:
    """Bounded: a job may make more files than the agent has memory for."""

    def __init__(self, name: str, at_most: int) -> None:
        self._name = name
        self._at_most = at_most
        self._left = at_most

    def walk(self, folder: int, where: str, depth: int, *, is_deep: bool = True) -> Iterator[Entry]:
        if depth > _MAX_DEPTH:
            raise UnsafeFile(f"{where} lies deeper than {_MAX_DEPTH} folders")
        for name in self._names(folder):
            try:
                found = os.lstat(name, dir_fd=folder)
                if not stat.S_ISDIR(found.st_mode):
                    yield Entry(f"{where}{name}", stat.S_ISREG(found.st_mode), found.st_mtime_ns)
                    continue
                if not is_deep:
                    continue
                below = open_below(folder, name, f"{where}{name}")
            except FileNotFoundError:
                continue  # removed since: a handler may still be running
            try:
                yield from self.walk(below, f"{where}{name}/", depth + 1)
            finally:
                os.close(below)

    def _names(self, folder: int) -> list[str]:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in islice(entries, self._left + 1)]
        self._left -= len(names)
        if self._left < 0:
            raise UnsafeFile(f"{self._name} has over {self._at_most} files and folders")
        return names
