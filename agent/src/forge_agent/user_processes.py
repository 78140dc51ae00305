"""The processes of a slot's user: one job's may not meet the next one's."""

import logging
import subprocess
import time
from pathlib import Path

logger = logging.getLogger(__name__)

_PAUSE_S = 0.02


def end_processes_of(uid: int, within_s: float = 10.0) -> bool:
    """Ends all processes of a user, whatever group or parent they have. Whether none is left.

    Takes root's rights. One that waits for a device may stay until the device answers.
    """
    deadline = time.monotonic() + within_s
    while left := processes_of(uid):
        if time.monotonic() > deadline:
            logger.error("processes of user %s can't be ended: %s", uid, left)
            return False
        # As the user itself: the kernel signals all of them at once, faster than they can fork.
        subprocess.run(
            ["/bin/sh", "-c", "kill -KILL -1"],
            user=uid,
            group=uid,
            extra_groups=[],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        time.sleep(_PAUSE_S)
    return True


def processes_of(uid: int) -> list[int]:
    """Those that run as a user, by their ids."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            status = (folder / "status").read_text()
        except OSError:
            continue  # it has ended
        values = dict(line.partition(":")[::2] for line in status.splitlines())
        has_ended = values["State"].strip().startswith(("Z", "X"))
        if not has_ended and str(uid) in values["Uid"].split():
            found.append(int(folder.name))
    return found
