"""Files that only the agent's user reads, whatever its umask is."""

import os


def open_private(path: str, flags: int) -> int:
    """An opener for `open`; a file that exists keeps its mode."""
    return os.open(path, flags, 0o600)
