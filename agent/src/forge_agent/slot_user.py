"""A separate user for the handlers of a slot, if the agent runs as root."""

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
    """A Unix user that handlers run as. Its group has the same id. Needs no /etc/passwd entry."""

    uid: int
    groups: tuple[int, ...] = ()
    """Supplementary groups, which can open the GPU's devices."""

    def variables(self, home: Path) -> dict[str, str]:
        """Variables that replace the agent's home and user name.

        The slot's user can't read the agent's home, and has no name in /etc/passwd.
        """
        name = f"forge-{self.uid}"
        return {"HOME": str(home), "USER": name, "LOGNAME": name}


@dataclass(frozen=True)
class RunAs:
    """The users that handlers run as. None means the agent's user.

    `bare` is for handlers without a container, `contained` for handlers in a container.
    """

    bare: SlotUser | None = None
    contained: SlotUser | None = None

    def user_for(self, handler: HandlerConfig) -> SlotUser | None:
        return self.contained if handler.image else self.bare

    def prepare(self, folder: Path) -> None:
        """Creates a folder.

        If there is a separate user, it can enter the folder, but only the agent can list the folder
        and create files in it. Other users have no access.
        """
        folder.mkdir(parents=True, exist_ok=True)
        if user := self.bare or self.contained:
            os.chown(folder, os.geteuid(), user.uid)
            folder.chmod(0o710)

    def end_processes(self) -> str | None:
        """Ends all processes of the separate user, if any. Returns an error if some remain.

        In that case no job may start: these processes could trace it and read its files.
        """
        user = self.bare or self.contained
        left = end_processes_of(user.uid) if user else []
        if user and left:
            pids = ", ".join(map(str, left))
            return f"processes of an earlier job, of user {user.uid}, can't be ended: {pids}"
        return None


def gpu_groups(devices: Path = Path("/dev")) -> tuple[int, ...]:
    """The groups (such as video and render) that can open the GPU's device nodes."""
    nodes: Iterable[Path] = (node for pattern in _GPU_NODES for node in devices.glob(pattern))
    found = [node.stat() for node in nodes if not node.is_dir()]
    wanted = stat.S_IRGRP | stat.S_IWGRP
    return tuple(sorted({each.st_gid for each in found if each.st_mode & wanted == wanted} - {0}))
