"""Opens what a job has left, without following links.

A job may put a link, a FIFO or a device where a file is expected, also while it is opened: the
agent must not read, send or write what is not the job's.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without waiting for the other end of a FIFO.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def open_inside(root: Path, path: Path) -> int:
    """A descriptor of a regular file below `root`, which is a folder itself.

    Raises OSError where any step from `root` on is a link, or the file is no regular one.
    """
    *folders, name = path.relative_to(root).parts
    here = os.open(root, _FOLDER)
    try:
        for folder in folders:
            inner = os.open(folder, _FOLDER, dir_fd=here)
            os.close(here)
            here = inner
        handle = os.open(name, _FILE, dir_fd=here)
    finally:
        os.close(here)
    if stat.S_ISREG(os.fstat(handle).st_mode):
        return handle
    os.close(handle)
    raise OSError(f"{path.name} is no regular file")


@contextmanager
def opened_inside(root: Path, path: Path) -> Iterator[Path]:
    """A path by which the file may be opened as often as needed, whatever becomes of its name."""
    handle = open_inside(root, path)
    try:
        yield path_of(handle)
    finally:
        os.close(handle)


def path_of(handle: int) -> Path:
    """By this path the file of a descriptor is opened anew, and no other."""
    return Path(f"/proc/self/fd/{handle}")


def read_small(path: Path, limit: int) -> bytes:
    """Its bytes. Raises OSError for what is no regular file, ValueError for one over the limit."""
    with os.fdopen(open_inside(path.parent, path), "rb") as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise ValueError(f"{path.name} has over {limit} bytes")
    return content
