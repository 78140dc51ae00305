"""Reserves user ids for an agent, on a machine with several agents."""

import fcntl
import logging
import os
from pathlib import Path

logger = logging.getLogger(__name__)

SIZE = 256
"""Number of ids per agent. Each slot uses two."""
_TRIES = 64
_held: list[int] = []
"""Descriptors of the locks. The locks are released at the end of this process."""


def claim_user_range(base: int, folder: Path = Path("/run/forge-agents")) -> int | None:
    """Reserves a range of `SIZE` user ids for this agent.

    Returns the first id of the range, or None if all ranges are in use. Tries the range from
    `base` first. Agents must not share ids, because each agent ends all processes of its users.

    If the lock file can't be created, returns `base` without a reservation. Does not return None in
    this case, because the agent might then run jobs as root.
    """
    for first in range(base, base + _TRIES * SIZE, SIZE):
        path = folder / f"users-{first}.lock"
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            logger.warning("can't lock %s; no other agent may use these ids: %s", path, error)
            return base
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            continue
        _held.append(lock)
        if first != base:
            logger.warning("another agent uses the ids from %s; using ids from %s", base, first)
        return first
    return None
