"""Files that only the agent's user can read, regardless of the umask."""

import os


def open_private(path: str, flags: int) -> int:
    """An opener for `open`. An existing file keeps its mode."""
    return os.open(path, flags, 0o600)
