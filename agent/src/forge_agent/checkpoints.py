"""Sends what a handler leaves to go on from, while it runs."""

import logging
import threading
from pathlib import Path
from urllib.parse import quote

from .control_plane import ControlPlane, Refused
from .lease import JobStopped, Lease
from .transfer import TransferFailed, upload

logger = logging.getLogger(__name__)

_EVERY_S = 1.0


def newest_checkpoint(folder: Path) -> Path | None:
    """The file that appeared last; names that begin with a dot are still being written."""
    try:
        files = [path for path in folder.iterdir() if path.is_file() and path.name[0] != "."]
        return max(files, key=lambda path: path.stat().st_mtime_ns, default=None)
    except OSError:  # it was removed while we looked
        return None


class CheckpointSender:
    """A thread that uploads each checkpoint that appears; `finish` ends it."""

    def __init__(self, control_plane: ControlPlane, lease: Lease, folder: Path) -> None:
        self._control_plane = control_plane
        self._lease = lease.part()
        self._folder = folder
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="checkpoints", daemon=True)

    def start(self) -> None:
        if "checkpoints_url" in self._lease.job["uploads"]:
            self._thread.start()

    def finish(self) -> None:
        """An upload under way is given up: the handler has ended, well or not."""
        self._is_over.set()
        self._lease.stop("the handler has ended")
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        seen: tuple[str, int] | None = None
        while not self._is_over.wait(_EVERY_S):
            path = newest_checkpoint(self._folder)
            if path is None:
                continue
            try:
                found = (path.name, path.stat().st_mtime_ns)
                if found == seen:
                    continue
                url = f"{self._lease.job['uploads']['checkpoints_url']}{quote(path.name)}"
                upload(self._control_plane, self._lease, url, path)
                logger.info("checkpoint %s is kept", path.name)
                seen = found
            except FileNotFoundError:
                continue  # a newer one took its place
            except (Refused, TransferFailed, OSError) as error:
                logger.warning("checkpoint %s is not kept: %s", path.name, error)
            except JobStopped:
                return
