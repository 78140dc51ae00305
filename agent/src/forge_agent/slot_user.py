"""A user of its own for the handlers of a slot, where the agent runs as root."""

import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .config import HandlerConfig
from .user_processes import end_processes_of

_GPU_NODES = ("nvidia*", "nvidia-caps/*", "dri/*", "kfd")


@dataclass(frozen=True)
class SlotUser:
    """A numeric user and group; /etc/passwd need not know them."""

    uid: int
    groups: tuple[int, ...] = ()
    """Further groups: those that open the GPU's devices."""

    def variables(self, home: Path) -> dict[str, str]:
        """Programs ask for both: the agent's home is closed to the user, and it has no name."""
        name = f"forge-{self.uid}"
        return {"HOME": str(home), "USER": name, "LOGNAME": name}


@dataclass(frozen=True)
class RunAs:
    """The user of handlers without a container, and of those in one. None: the agent's own."""

    bare: SlotUser | None = None
    contained: SlotUser | None = None

    def user_for(self, handler: HandlerConfig) -> SlotUser | None:
        return self.contained if handler.image else self.bare

    def prepare(self, folder: Path) -> None:
        """Makes a folder that only the agent can list and write, and only this user can enter."""
        folder.mkdir(parents=True, exist_ok=True)
        if user := self.bare or self.contained:
            os.chown(folder, os.geteuid(), user.uid)
            folder.chmod(0o710)

    def end_processes(self) -> str | None:
        """Ends what still runs as the user of its own, if there is one. Says what can't be ended.

        No job may start then: it could be traced, and its files read.
        """
        user = self.bare or self.contained
        left = end_processes_of(user.uid) if user else []
        if user and left:
            pids = ", ".join(map(str, left))
            return f"processes of an earlier job, of user {user.uid}, can't be ended: {pids}"
        return None


def gpu_groups(devices: Path = Path("/dev")) -> tuple[int, ...]:
    """Groups, such as video and render, that a user needs to open the GPU's device nodes."""
    nodes: Iterable[Path] = (node for pattern in _GPU_NODES for node in devices.glob(pattern))
    found = [node.stat() for node in nodes if not node.is_dir()]
    wanted = stat.S_IRGRP | stat.S_IWGRP
    return tuple(sorted({each.st_gid for each in found if each.st_mode & wanted == wanted} - {0}))
