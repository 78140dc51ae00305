"""Uploads a job's log while it grows."""

import contextlib
import logging
import threading
from collections.abc import Callable

from .control_plane import ControlPlane, ControlPlaneUnavailable, Refused
from .lease import JobStopped, Lease

logger = logging.getLogger(__name__)

_INTERVAL_S = 1.0
_MAX_PAUSE_S = 30.0
_PART_BYTES = 512 * 1024
_MAX_REWINDS = 3


class LogSender:
    """A thread that uploads new bytes of the log. `finish` uploads the rest."""

    def __init__(
        self, control_plane: ControlPlane, lease: Lease, read: Callable[[int, int], bytes]
    ) -> None:
        """`read(offset, size)`: returns up to `size` bytes of the log from the offset."""
        self._control_plane = control_plane
        self._lease = lease
        self._url = lease.job["uploads"].get("log_url")
        self._read = read
        self._sent = 0
        self._is_over = False
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)

    def start(self) -> None:
        if self._url:
            self._thread.start()

    def finish(self) -> None:
        """Uploads the rest of the log. Retries while the control plane is unavailable.

        If the job's lease stops, or the control plane refuses the upload, tries only once more.
        """
        if not self._url:
            return
        self._is_over = True
        self._wake.set()
        self._thread.join()
        with contextlib.suppress(JobStopped, Refused):
            self._lease.retry(self._send_all, lambda error: logger.warning("log: %s", error))
            return
        with contextlib.suppress(ControlPlaneUnavailable, Refused):
            self._send_all()

    def _run(self) -> None:
        pause_s = _INTERVAL_S
        while not self._is_over:
            self._wake.wait(pause_s)
            try:
                self._send_all()
                pause_s = _INTERVAL_S
            except ControlPlaneUnavailable:
                pause_s = min(2 * pause_s, _MAX_PAUSE_S)
            except Refused as error:
                # Stop only the upload, not the job. If the worker has lost the job, the response to
                # the next heartbeat stops the job.
                logger.warning("log refused: %s", error)
                return

    def _send_all(self) -> None:
        rewinds = 0
        while data := self._read(self._sent, _PART_BYTES):
            answer = self._control_plane.append_log(
                str(self._url), self._lease.proof, self._sent, data
            )
            rewinds = rewinds + 1 if answer.length <= self._sent else 0
            self._sent = min(answer.length, self._sent + len(data))
            if rewinds == _MAX_REWINDS:
                raise ControlPlaneUnavailable(f"the stored log stays at {answer.length} bytes")
            if answer.cancelled:
                self._lease.stop("cancelled")
