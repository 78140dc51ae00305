"""Files that a handler writes for us: small, regular, and never waited for."""

import os
import stat
from pathlib import Path


def read_small(path: Path, limit: int) -> bytes:
    """Its bytes. Raises OSError for what is no regular file, ValueError for one over the limit."""
    # A FIFO by that name would be waited for, by the thread that should heartbeat.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(f"{path.name} is no regular file")
        content = file.read(limit + 1)
    if len(content) > limit:
        raise ValueError(f"{path.name} has over {limit} bytes")
    return content
