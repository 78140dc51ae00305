"""Lists a job's files. Limits depth and number, because the job controls both."""

import os
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from .job_files import UnsafeFile, open_below, open_folder

_MAX_DEPTH = 64
"""Maximum depth of folders. Each level keeps a descriptor open."""


@dataclass(frozen=True)
class Entry:
    """A file, link or special file at the time of the listing."""

    name: str
    """Path relative to the listed folder, with slashes."""
    is_regular: bool
    modified_ns: int


def list_files(root: Path, name: str = "", max_entries: int = sys.maxsize - 1) -> list[Entry]:
    """Lists everything below a folder except folders, sorted by name.

    Raises UnsafeFile if the folder is a link, or has more than `max_entries` files and folders.
    """
    with open_folder(root, name) as folder:
        entries = _Listing(name, max_entries).walk(folder, "", 0)
        return sorted(entries, key=lambda entry: entry.name)


def list_folder(root: Path, name: str, max_entries: int) -> list[Entry]:
    """Lists the files, links and special files directly in a folder, unsorted.

    Raises UnsafeFile if the folder is a link, or has more than `max_entries` files and folders.
    """
    with open_folder(root, name) as folder:
        return list(_Listing(name, max_entries).walk(folder, "", 0, is_deep=False))


class _Listing:
    """Walks a folder. Limits the number of entries.

    A job may create more files than fit into the agent's memory.
    """

    def __init__(self, name: str, max_entries: int) -> None:
        self._name = name
        self._max_entries = max_entries
        self._remaining = max_entries

    def walk(self, folder: int, where: str, depth: int, *, is_deep: bool = True) -> Iterator[Entry]:
        if depth > _MAX_DEPTH:
            raise UnsafeFile(f"{where} is deeper than {_MAX_DEPTH} folders")
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
                continue  # removed in the meantime: a handler may still be running
            try:
                yield from self.walk(below, f"{where}{name}/", depth + 1)
            finally:
                os.close(below)

    def _names(self, folder: int) -> list[str]:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in islice(entries, self._remaining + 1)]
        self._remaining -= len(names)
        if self._remaining < 0:
            raise UnsafeFile(f"{self._name} has more than {self._max_entries} files and folders")
        return names
