"""Which users' ids an agent has to itself on a machine of several agents."""

import fcntl
import logging
import os
from pathlib import Path

logger = logging.getLogger(__name__)

SIZE = 256
"""Two for each slot."""
_TRIES = 64
_held: list[int] = []
"""Descriptors of the locks, which end with this process."""


def claim_user_range(base: int, folder: Path = Path("/run/forge-agents")) -> int | None:
    """The first of `SIZE` ids that no other agent of this machine has: `base`, or the next free.

    An agent ends whatever runs as one of its users. `base` where nothing can be locked: jobs must
    not run as root for that. None if all are taken.
    """
    for first in range(base, base + _TRIES * SIZE, SIZE):
        path = folder / f"users-{first}.lock"
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            logger.warning("%s can't be locked, no other agent may use these ids: %s", path, error)
            return base
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            continue
        _held.append(lock)
        if first != base:
            logger.warning("users from %s on are another agent's: ours begin at %s", base, first)
        return first
    return None
