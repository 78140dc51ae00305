"""Opens a job's files without following links.

A job may replace any file or folder that it can write with a link, a FIFO or a device, even while
the agent reads it. So each component of a path is opened relative to the descriptor of its parent,
with O_NOFOLLOW. Checks use the open descriptor, not the name.

`root` is always a folder that the agent created in its own folder: the path up to it is trusted.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path, PurePosixPath

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: otherwise, opening a FIFO blocks until it has a writer.
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


class UnsafeFile(OSError):
    """The path leads through a link, or the file is not a regular file."""


@contextmanager
def open_folder(root: Path, name: str = "") -> Iterator[int]:
    """Opens a folder below `root`. Raises UnsafeFile if a component of the path is a link."""
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
    """Opens a subfolder of an open folder. Raises UnsafeFile for a link.

    `shown`: the path in the error message. Default: the name.
    """
    return _open(name, _FOLDER, shown or name, folder)


def open_file(root: Path, name: str) -> BufferedReader:
    """Opens a regular file below `root` for reading. Raises UnsafeFile for anything else."""
    _require_inside(name)
    path = PurePosixPath(name)
    with open_folder(root, str(path.parent)) as folder:
        file = _open(path.name, _FILE, name, folder)
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            raise UnsafeFile(f"{name} is not a regular file")
        # Refuse a hard link to another user's file. Depending on its settings, the kernel lets a
        # job link a file that the job can't read. The agent would then read that file for the job.
        if found.st_nlink > 1 and found.st_uid != root.lstat().st_uid:
            raise UnsafeFile(f"{name} is a hard link to a file of another user")
        os.set_blocking(file, True)
        return os.fdopen(file, "rb")
    except BaseException:
        os.close(file)
        raise


def read_small(path: Path, limit: int) -> bytes:
    """Reads a file at the top of the job's folder. Raises ValueError above `limit` bytes."""
    with open_file(path.parent, path.name) as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise ValueError(f"{path.name} has more than {limit} bytes")
    return content


def move_file(root: Path, name: str, target: Path) -> None:
    """Moves a regular file out of the job's folder. The job's processes must have ended."""
    open_file(root, name).close()
    path = PurePosixPath(name)
    with open_folder(root, str(path.parent)) as folder:
        os.rename(path.name, target, src_dir_fd=folder)


def _require_inside(name: str) -> None:
    if name.startswith("/") or ".." in PurePosixPath(name).parts:
        raise UnsafeFile(f"{name} is outside of the job's folder")


def _open(name: str, flags: int, shown: str, folder: int | None = None) -> int:
    try:
        return os.open(name, flags, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            kind = "folder" if flags & os.O_DIRECTORY else "file"
            raise UnsafeFile(f"{shown} is a link or not a {kind}; links are not allowed") from error
        if error.errno == errno.ENXIO:  # a socket
            raise UnsafeFile(f"{shown} is not a regular file") from error
        raise
