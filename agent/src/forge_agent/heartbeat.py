"""The heartbeat loop: a thread of its own, so that no job and no slow poll ever silences it."""

import logging
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from .control_plane import ControlPlane, ControlPlaneAway, KeyRefused, NotRegistered, Refused

logger = logging.getLogger(__name__)


class HeartbeatLoop:
    def __init__(
        self,
        control_plane: ControlPlane,
        interval_s: float,
        describe: Callable[[], dict[str, Any]],
        on_command: Callable[[dict[str, Any]], None],
        register: Callable[[], object],
        on_key_refused: Callable[[KeyRefused], None],
    ) -> None:
        """
        describe: the fields of the next heartbeat; its time is added here.
        on_command: called with each command of the control plane; must not block.
        register: called when the control plane does not know this worker.
        """
        self._control_plane = control_plane
        self._interval_s = interval_s
        self._describe = describe
        self._on_command = on_command
        self._register = register
        self._on_key_refused = on_key_refused
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()

    def _run(self) -> None:
        away = False
        while not self._stop.wait(self._interval_s):
            try:
                self._beat()
                if away:
                    logger.info("the control plane is back")
                away = False
            except KeyRefused as error:
                self._on_key_refused(error)
            except (ControlPlaneAway, Refused) as error:
                if not away:
                    logger.warning("heartbeat failed: %s", error)
                away = True
            except Exception:
                # Whatever it was: a silent worker loses its job.
                logger.exception("heartbeat failed")

    def _beat(self) -> None:
        beat = {"timestamp": datetime.now(UTC).isoformat(), **self._describe()}
        try:
            commands = self._control_plane.heartbeat(beat)
        except NotRegistered:
            self._register()
            return
        if beat.get("status") == "error" and self._describe().get("status") != "error":
            # It was well again while that was under way, and its registration may have come first.
            self._register()
        for command in commands:
            self._on_command(command)
