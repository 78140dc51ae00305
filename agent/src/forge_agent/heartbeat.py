"""The heartbeat loop. Has its own thread, so that neither a job nor a slow poll can delay it."""

import logging
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from .control_plane import ControlPlane, ControlPlaneUnavailable, KeyRefused, NotRegistered, Refused
from .gpu import GpuLoad
from .job_runner import JobRunner
from .lease import Lease

logger = logging.getLogger(__name__)

_MAX_METRICS = 32
"""Maximum number of metrics per heartbeat. The control plane drops any further ones."""


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
        describe: returns the fields of the next heartbeat, without its timestamp.
        on_command: called with each command of the control plane. Must not block.
        register: called if the control plane does not know this worker.
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
        is_failing = False
        while not self._stop.wait(self._interval_s):
            try:
                self._send_heartbeat()
                if is_failing:
                    logger.info("heartbeats succeed again")
                is_failing = False
            except KeyRefused as error:
                self._on_key_refused(error)
            except (ControlPlaneUnavailable, Refused) as error:
                if not is_failing:
                    logger.warning("heartbeat failed: %s", error)
                is_failing = True
            except Exception:
                # The loop must go on: a worker without heartbeats loses its job.
                logger.exception("heartbeat failed")

    def _send_heartbeat(self) -> None:
        payload = {"timestamp": datetime.now(UTC).isoformat(), **self._describe()}
        try:
            commands = self._control_plane.heartbeat(payload)
        except NotRegistered:
            self._register()
            return
        if payload.get("status") == "error" and self._describe().get("status") != "error":
            # The worker recovered and registered while this heartbeat with status `error` was sent.
            # If the heartbeat arrived after the registration, it set the worker back to `error`.
            # Another registration ends this state.
            self._register()
        for command in commands:
            self._on_command(command)


def describe_heartbeat(
    worker_id: str,
    load: GpuLoad,
    fault: str | None,
    job: dict[str, Any],
    deployments: list[dict[str, Any]],
) -> dict[str, Any]:
    """The fields of a heartbeat, without its timestamp."""
    return {
        "worker_id": worker_id,
        "gpu": {"util": load.util, "mem_used": load.mem_used, "mem_total": load.mem_total},
        "status": "error" if fault else "busy" if job["job_id"] else "idle",
        **({"reason": fault} if fault else {}),
        "deployments": [each["deployment_id"] for each in deployments],
        "unhealthy_deployments": [
            each["deployment_id"] for each in deployments if not each["healthy"]
        ],
        **job,
    }


def describe_job(
    lease: Lease | None, unsent: dict[str, Any] | None, runner: JobRunner
) -> dict[str, Any]:
    """The heartbeat's fields about the job that runs, or whose result is not delivered yet."""
    if lease is None:
        # The explicit null says that no job runs here. If the control plane has dispatched an
        # attempt to this worker, it marks the attempt as lost after several such heartbeats in a
        # row.
        return (
            {name: unsent[name] for name in ("job_id", "attempt")} if unsent else {"job_id": None}
        )
    described: dict[str, Any] = {"job_id": lease.job_id, "attempt": lease.attempt}
    report = runner.report
    if report.progress is not None:
        described["progress"] = report.progress
    if report.metrics:
        described["metrics"] = dict(islice(report.metrics.items(), _MAX_METRICS))
    return described
