"""Sends a job's log while it grows."""

import contextlib
import logging
import threading
from collections.abc import Callable

from .control_plane import ControlPlane, ControlPlaneAway, Refused
from .lease import JobStopped, Lease

logger = logging.getLogger(__name__)

_EVERY_S = 1.0
_MAX_PAUSE_S = 30.0
_PART_BYTES = 512 * 1024
_MAX_REWINDS = 3


class LogSender:
    """A thread that appends what is new; `finish` sends the rest."""

    def __init__(
        self, control_plane: ControlPlane, lease: Lease, read: Callable[[int, int], bytes]
    ) -> None:
        """`read`: bytes of the log from an offset, at most so many."""
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
        """Sends what is left. A job that is still ours waits for it, however long that takes."""
        if not self._url:
            return
        self._is_over = True
        self._wake.set()
        self._thread.join()
        with contextlib.suppress(JobStopped, Refused):
            self._lease.persist(self._send_all, lambda error: logger.warning("log: %s", error))
            return
        with contextlib.suppress(ControlPlaneAway, Refused):
            self._send_all()

    def _run(self) -> None:
        pause_s = _EVERY_S
        while not self._is_over:
            self._wake.wait(pause_s)
            try:
                self._send_all()
                pause_s = _EVERY_S
            except ControlPlaneAway:
                pause_s = min(2 * pause_s, _MAX_PAUSE_S)
            except Refused as error:
                # It may be that the job is not ours any more: the heartbeat hears that.
                logger.warning("the log is refused: %s", error)
                return

    def _send_all(self) -> None:
        rewinds = 0
        while data := self._read(self._sent, _PART_BYTES):
            answer = self._control_plane.append_log(
                str(self._url), self._lease.claim, self._sent, data
            )
            rewinds = rewinds + 1 if answer.length <= self._sent else 0
            self._sent = min(answer.length, self._sent + len(data))
            if rewinds == _MAX_REWINDS:
                raise ControlPlaneAway(f"the log stays at {answer.length} bytes there")
            if answer.cancelled:
                self._lease.stop("cancelled")
