"""The agent's state folder. Each WORKER_ID has its own folder, which one agent at a time locks."""

import contextlib
import fcntl
import json
import os
import re
import socket
import uuid
from pathlib import Path
from typing import IO, Any

from .private_file import open_private
from .settings import ConfigError

_WORKER_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


class StateFolder:
    """The agent's state folder: a folder per slot, the agent's lock file and `status.json`."""

    def __init__(self, state_dir: Path, worker_id: str | None) -> None:
        """Raises ConfigError if the folder can't be used, or another agent has locked it."""
        try:
            state_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.worker_id = worker_id or _generate_once(state_dir / "worker-id")
            if not _WORKER_ID.fullmatch(self.worker_id):
                raise ConfigError("WORKER_ID must have at most 128 letters, digits and . _ -")
            self.path = state_dir / self.worker_id
            self.path.mkdir(exist_ok=True)
            self._lock = _lock(self.path / "lock")
        except OSError as error:
            raise ConfigError(f"FORGE_AGENT_STATE {state_dir}: {error.strerror}") from error
        if self._lock is None:
            raise ConfigError(
                f"an agent already runs here as {self.worker_id}; set another WORKER_ID"
            )

    def slot(self, number: int) -> Path:
        """The slot's folder: `work/` for its current job, `deployments/`, and an unsent result."""
        folder = self.path / f"slot-{number}"
        folder.mkdir(exist_ok=True)
        return folder

    def write_status(self, status: dict[str, Any]) -> None:
        """Writes the status for `forge-agent status`. Ignores errors."""
        partial = self.path / "status.json.part"
        try:
            with open(partial, "w", opener=open_private) as file:
                json.dump(status, file, indent=2)
            partial.replace(self.path / "status.json")
        except OSError:
            pass


def read_statuses(state_dir: Path) -> list[dict[str, Any]]:
    """The last status of each agent that has used `state_dir`, and whether the agent is running."""
    found = []
    for file in sorted(state_dir.glob("*/status.json")):
        try:
            status = json.loads(file.read_text())
        except (OSError, ValueError):
            continue
        lock = _lock(file.parent / "lock")
        if lock:
            lock.close()
        found.append({**status, "running": lock is None})
    return found


def _generate_once(file: Path) -> str:
    """Reads the worker's name from the file. If the file does not exist, generates a name.

    The file also has the machine's id. If that is another machine's id, because the disk was
    copied, generates a new name. Writes a generated name to the file.
    """
    machine = _machine_id()
    with contextlib.suppress(FileNotFoundError):
        name, _, made_on = file.read_text().strip().partition(" ")
        if name and made_on == machine:
            return name
    host = re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname()).strip("-.") or "worker"
    name = f"{host[:100]}-{uuid.uuid4().hex[:8]}"
    partial = file.with_suffix(".part")
    partial.write_text(f"{name} {machine}")
    partial.replace(file)
    return name


def _machine_id() -> str:
    try:
        return Path("/etc/machine-id").read_text().strip()
    except OSError:
        return ""


def _lock(file: Path) -> IO[str] | None:
    """Locks the file until it is closed. None if another process has locked it."""
    handle = os.fdopen(os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        handle.close()
        return None
    return handle
