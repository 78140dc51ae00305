"""Uploads a handler's checkpoints while it runs."""

import logging
import threading
from pathlib import Path
from urllib.parse import quote

from .control_plane import ControlPlane, Refused
from .file_transfer import TransferFailed, upload
from .job_files import move_file, open_file
from .job_listing import Entry, list_folder
from .lease import JobStopped, Lease

logger = logging.getLogger(__name__)

_INTERVAL_S = 1.0
FOLDER = "checkpoints"
"""Name of the checkpoint folder in the handler's folder."""
_MAX_ENTRIES = 10_000
"""Maximum number of files in the checkpoint folder, which is listed every second."""


def newest_checkpoint(root: Path) -> Entry | None:
    """Returns the most recently modified checkpoint file, or None. Skips links.

    Skips files whose names begin with a dot: the handler is still writing them. Raises UnsafeFile
    if the folder itself is a link, or has too many entries.
    """
    try:
        files = [each for each in list_folder(root, FOLDER, _MAX_ENTRIES) if _is_checkpoint(each)]
    except FileNotFoundError:
        return None
    return max(files, key=lambda each: each.modified_ns, default=None)


def move_newest_checkpoint(root: Path, target: Path) -> Path | None:
    """Moves the newest checkpoint of an ended handler into `target`. Returns its new path.

    Only the agent may write to `target`. Returns None if there is no usable checkpoint.
    """
    try:
        newest = newest_checkpoint(root)
        if newest is None:
            return None
        target.mkdir(parents=True, exist_ok=True)
        move_file(root, f"{FOLDER}/{newest.name}", target / newest.name)
        return target / newest.name
    except OSError as error:
        logger.warning("the last checkpoint can't be used: %s", error)
        return None


def _is_checkpoint(entry: Entry) -> bool:
    # `isprintable` is false for names that are not valid UTF-8. Such names can't be sent.
    return entry.is_regular and not entry.name.startswith(".") and entry.name.isprintable()


class CheckpointSender:
    """A thread that uploads each new checkpoint until `finish` is called."""

    def __init__(self, control_plane: ControlPlane, lease: Lease, root: Path) -> None:
        """`root`: the handler's folder."""
        self._control_plane = control_plane
        self._attempt_lease = lease
        self._lease = lease.child()
        self._root = root
        self._uploaded: Entry | None = None
        self._last_warning = ""
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="checkpoints", daemon=True)

    @property
    def _is_enabled(self) -> bool:
        return "checkpoints_url" in self._lease.job["uploads"]

    def start(self) -> None:
        if self._is_enabled:
            self._thread.start()

    def finish(self) -> None:
        """Ends the thread and aborts its upload.

        A completed job needs no checkpoint, and a retry on this machine uses the local file. For a
        retry by another worker, call `upload_last` afterwards.
        """
        self._is_over.set()
        self._lease.stop("the handler has ended")
        if self._thread.is_alive():
            self._thread.join()

    def upload_last(self) -> None:
        """Uploads the newest checkpoint, unless the thread has uploaded it.

        Call it after `finish`, if another worker may continue the job. Returns when the upload has
        ended. Raises JobStopped if the attempt's lease stops. Only logs other errors.
        """
        if self._is_enabled:
            self._upload_new(self._attempt_lease)

    def _run(self) -> None:
        while not self._is_over.wait(_INTERVAL_S):
            try:
                self._upload_new(self._lease)
            except JobStopped:
                return

    def _upload_new(self, lease: Lease) -> None:
        """Uploads the newest checkpoint if it is not uploaded yet."""
        found: Entry | None = None
        try:
            found = newest_checkpoint(self._root)
            if found is None or found == self._uploaded:
                return
            url = f"{lease.job['uploads']['checkpoints_url']}{quote(found.name)}"
            with open_file(self._root, f"{FOLDER}/{found.name}") as file:
                upload(self._control_plane, lease, url, file, found.name)
            self._uploaded = found
            logger.info("checkpoint %s uploaded", found.name)
        except FileNotFoundError:
            return  # the handler replaced the checkpoint with a newer one
        except (Refused, TransferFailed, OSError) as error:
            message = f"checkpoint {found and found.name} not uploaded: {error}"
            if message != self._last_warning:  # don't let a job flood the agent's log
                logger.warning("%s", message)
            self._last_warning = message
