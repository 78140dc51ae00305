"""Opens what a job left without following its links.

A job may put a link, a FIFO or a device in place of any file or folder that it can write, also
while the agent looks. So each component of a path is opened by the descriptor of the folder before
it, with O_NOFOLLOW, and the checks look at what was opened, not at what has the name now.

`root` is always a folder that the agent made in a folder of its own: the path up to it is trusted.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path, PurePosixPath

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: opening a FIFO that has no writer would wait for one.
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


class UnsafeFile(OSError):
    """Something that the agent does not read, or a path that leads through a link."""


@contextmanager
def open_folder(root: Path, name: str = "") -> Iterator[int]:
    """The descriptor of a folder below `root`. Raises UnsafeFile where a component is a link."""
    _require_inside(name)
    folder = _open(str(root), _FOLDER, root.name)
    try:
        seen = ""
        for part in PurePosixPath(name).parts:
            seen = f"{seen}{part}"
            below = _open(part, _FOLDER, seen, folder)
            os.close(folder)
            folder, seen = below, f"{seen}/"
        yield folder
    finally:
        os.close(folder)


def open_below(folder: int, name: str, shown: str = "") -> int:
    """The descriptor of a folder in an open one. Raises UnsafeFile, by its path, for a link."""
    return _open(name, _FOLDER, shown or name, folder)


def open_file(root: Path, name: str) -> BufferedReader:
    """A regular file below `root`, for reading. Raises UnsafeFile for anything else."""
    _require_inside(name)
    path = PurePosixPath(name)
    with open_folder(root, str(path.parent)) as folder:
        file = _open(path.name, _FILE, name, folder)
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            raise UnsafeFile(f"{name} is no regular file")
        # The kernel may let a user make a hard link to a file that he can't read.
        if found.st_nlink > 1 and found.st_uid != root.lstat().st_uid:
            raise UnsafeFile(f"{name} is a hard link to a file of another user")
        os.set_blocking(file, True)
        return os.fdopen(file, "rb")
    except BaseException:
        os.close(file)
        raise


def read_small(path: Path, limit: int) -> bytes:
    """The bytes of a file right in the job's folder. Raises ValueError for more than `limit`."""
    with open_file(path.parent, path.name) as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise ValueError(f"{path.name} has over {limit} bytes")
    return content


def move_file(root: Path, name: str, target: Path) -> None:
    """Takes a regular file out of the job's folder, whose processes must have ended."""
    open_file(root, name).close()
    path = PurePosixPath(name)
    with open_folder(root, str(path.parent)) as folder:
        os.rename(path.name, target, src_dir_fd=folder)


def _require_inside(name: str) -> None:
    if name.startswith("/") or ".." in PurePosixPath(name).parts:
        raise UnsafeFile(f"{name} leads out of the job's folder")


def _open(name: str, flags: int, shown: str, folder: int | None = None) -> int:
    try:
        return os.open(name, flags, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            kind = "folder" if flags & os.O_DIRECTORY else "file"
            raise UnsafeFile(f"{shown} is a link or no {kind}: links are not followed") from error
        if error.errno == errno.ENXIO:  # a socket
            raise UnsafeFile(f"{shown} is no regular file") from error
        raise
