"""The heartbeat loop: a thread of its own, so that no job and no slow poll ever silences it."""

import logging
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from .control_plane import ControlPlane, ControlPlaneAway, NotRegistered, Refused
from .gpu import read_load

logger = logging.getLogger(__name__)


class HeartbeatLoop:
    def __init__(
        self,
        control_plane: ControlPlane,
        worker_id: str,
        interval_s: float,
        current_job: Callable[[], dict[str, Any]],
        on_command: Callable[[dict[str, Any]], None],
        register: Callable[[], object],
    ) -> None:
        """
        current_job: fields about the running job; empty when idle.
        on_command: called with each command of the control plane.
        register: called when the control plane does not know this worker.
        """
        self._control_plane = control_plane
        self._worker_id = worker_id
        self._interval_s = interval_s
        self._current_job = current_job
        self._on_command = on_command
        self._register = register
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        away = False
        while not self._stop.wait(self._interval_s):
            try:
                self._beat()
                if away:
                    logger.info("the control plane is back")
                away = False
            except (ControlPlaneAway, Refused) as error:
                if not away:
                    logger.warning("heartbeat failed: %s", error)
                away = True
            except Exception:
                # Whatever it was: a silent worker loses its job.
                logger.exception("heartbeat failed")

    def _beat(self) -> None:
        load = read_load()
        job = self._current_job()
        beat = {
            "worker_id": self._worker_id,
            "gpu": {"util": load.util, "mem_used": load.mem_used, "mem_total": load.mem_total},
            "status": "busy" if job else "idle",
            "timestamp": datetime.now(UTC).isoformat(),
            **job,
        }
        try:
            commands = self._control_plane.heartbeat(beat)
        except NotRegistered:
            self._register()
            return
        for command in commands:
            self._on_command(command)
