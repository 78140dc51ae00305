"""The agent: register, then poll, run, report, for ever."""

import logging
import shutil
import tempfile
import threading
import time
import uuid
from pathlib import Path
from typing import Any

from . import __version__
from .artifact_store import ArtifactStore, NoSuchInput
from .config import AgentConfig
from .control_plane import ControlPlane, ControlPlaneAway, KeyRefused, NotRegistered, Refused
from .gpu import find_gpu
from .handler import Handler, HandlerFailed, HandlerStopped, Outcome
from .heartbeat import HeartbeatLoop

logger = logging.getLogger(__name__)

_MAX_BACKOFF_S = 30.0
_REFUSED = "the control plane refused the worker's report; the agent's log says why"


class Interrupted(Exception):
    """Raised into an idle poll by the signal that stops the agent."""


class Agent:
    def __init__(self, config: AgentConfig) -> None:
        self._config = config
        self._control_plane = ControlPlane(config)
        self._store = ArtifactStore(config.artifacts_dir)
        self._boot_id = uuid.uuid4().hex
        self._gpu = find_gpu()
        self._lock = threading.Lock()
        self._job: dict[str, Any] | None = None
        self._handler: Handler | None = None
        self._cancelled = False
        self._stopping = False
        self._idle = False

    def run(self) -> None:
        """Works until `request_stop`; then finishes its job, if it has one, and returns."""
        heartbeat: HeartbeatLoop | None = None
        try:
            heartbeat = self._start_heartbeat()
            while not self._stopping:
                job = self._poll()
                if job:
                    self._work(job)
        except Interrupted:
            pass
        finally:
            if heartbeat:
                heartbeat.stop()
            self._control_plane.close()
            logger.info("stopped")

    def request_stop(self) -> None:
        """Called by a signal handler, in the main thread: the first drains, the second gives up."""
        if self._stopping and self._handler:
            logger.warning("giving up the running job")
            self._handler.stop(grace_s=0)
        self._stopping = True
        if self._idle:
            raise Interrupted

    # Registration and heartbeat

    def _start_heartbeat(self) -> HeartbeatLoop:
        interval_s = self._register_until_accepted()
        loop = HeartbeatLoop(
            self._control_plane,
            self._config.worker_id,
            self._config.heartbeat_interval_s or interval_s,
            self._describe_job,
            self._obey,
            self._register,
        )
        loop.start()
        return loop

    def _register_until_accepted(self) -> float:
        backoff_s = 1.0
        self._idle = True
        while True:
            try:
                return self._register()
            except ControlPlaneAway as error:
                logger.warning("cannot register yet: %s", error)
            time.sleep(backoff_s)
            backoff_s = min(2 * backoff_s, _MAX_BACKOFF_S)

    def _register(self) -> float:
        registered = self._control_plane.register(
            {
                "worker_id": self._config.worker_id,
                "gpu": {
                    "name": self._gpu.name,
                    "memory_gb": self._gpu.memory_gb,
                    "count": self._gpu.count,
                },
                "tags": list(self._config.tags),
                "version": __version__,
                "boot_id": self._boot_id,
                **self._describe_job(),
            }
        )
        logger.info("registered as %s (%s)", registered.worker_id, self._gpu.name)
        return registered.heartbeat_interval_s

    def _describe_job(self) -> dict[str, Any]:
        with self._lock:
            if self._job is None:
                return {}
            described = {"job_id": self._job["job_id"], "attempt": self._job["attempt"]}
            progress = self._handler.progress if self._handler else None
        return described if progress is None else {**described, "progress": progress}

    def _obey(self, command: dict[str, Any]) -> None:
        if command.get("type") == "drain":
            if not self._stopping:
                logger.info("the control plane drains this worker: it leaves after its job")
            # The poll that is parked ends by itself: the control plane answers it.
            self._stopping = True
            return
        with self._lock:
            handler = self._handler
            concerns_us = self._job is not None and command.get("job_id") == self._job["job_id"]
            if concerns_us and command.get("type") == "cancel_job":
                self._cancelled = True
        if concerns_us and handler and command.get("type") in ("job_lost", "cancel_job"):
            logger.warning("%s: job %s is stopped", command["type"], command["job_id"])
            # Not here: the heartbeat must not wait for a handler that takes its time to end.
            threading.Thread(
                target=handler.stop, args=(self._config.stop_grace_s,), daemon=True
            ).start()

    # Jobs

    def _poll(self) -> dict[str, Any] | None:
        self._idle = True
        try:
            job, commands = self._control_plane.next_job(self._config.wait_s)
            for command in commands:
                self._obey(command)
            return job
        except NotRegistered:
            self._register_until_accepted()
        except KeyRefused:
            raise
        except (ControlPlaneAway, Refused) as error:
            logger.warning("poll failed: %s", error)
            time.sleep(self._config.poll_interval_s)
        finally:
            self._idle = False
        return None

    def _work(self, job: dict[str, Any]) -> None:
        logger.info("job %s (%s), attempt %s", job["job_id"], job["job_type"], job["attempt"])
        with self._lock:
            self._job = job
            self._cancelled = False
        folder = Path(tempfile.mkdtemp(prefix="forge-job-"))
        try:
            report = self._attempt(job, folder)
            if report:
                self._deliver({**report, **self._address(job)})
        finally:
            with self._lock:
                self._job = None
                self._handler = None
            shutil.rmtree(folder, ignore_errors=True)

    def _attempt(self, job: dict[str, Any], folder: Path) -> dict[str, Any] | None:
        """Runs the job, again after transient failures.

        Returns the report, or None if the job was taken from us.
        """
        try:
            log = self._store.path_of(job["uploads"]["logs_uri"])
            for tried in range(self._config.local_max_retries + 1):
                try:
                    outcome = self._run_once(job, folder / str(tried), log)
                except HandlerFailed as error:
                    logger.warning("job %s failed: %s", job["job_id"], error)
                    if not error.transient or tried == self._config.local_max_retries:
                        return {
                            "status": "failed",
                            "error": str(error),
                            "retryable": error.transient,
                        }
                    logger.info(
                        "trying again here, %s of %s", tried + 1, self._config.local_max_retries
                    )
                    continue
                return {
                    "status": "completed",
                    "result": outcome.result,
                    "metrics": outcome.metrics,
                    "artifacts_uri": job["uploads"]["artifacts_uri"],
                }
        except HandlerStopped:
            if self._cancelled:
                return {"status": "failed", "error": "cancelled"}
            return None
        except NoSuchInput as error:
            return {"status": "failed", "error": str(error)}
        except OSError as error:
            logger.exception("job %s failed", job["job_id"])
            return {"status": "failed", "error": f"on the worker: {error}", "retryable": True}
        return None

    def _run_once(self, job: dict[str, Any], folder: Path, log: Path) -> Outcome:
        inputs = {
            entry["param"]: str(self._fetch(entry))
            for entry in job["inputs"]
            if entry["param"] == "dataset_uri"
        }
        handler = Handler(folder, job, inputs)
        with self._lock:
            if self._cancelled:
                raise HandlerStopped
            self._handler = handler
        outcome = handler.run(log)
        self._store.upload(handler.output_dir, job["uploads"]["artifacts_uri"])
        return outcome

    def _fetch(self, entry: dict[str, Any]) -> Path:
        # Not this tenant's: the same words as for what never was.
        if entry.get("withheld"):
            raise NoSuchInput(f"{entry['value']} does not exist")
        return self._store.fetch(entry["value"])

    def _address(self, job: dict[str, Any]) -> dict[str, Any]:
        return {
            "worker_id": self._config.worker_id,
            "job_id": job["job_id"],
            "attempt": job["attempt"],
            "logs_uri": job["uploads"]["logs_uri"],
        }

    def _deliver(self, result: dict[str, Any]) -> None:
        """Until the control plane has it, or says that it does not want it."""
        backoff_s = 0.5
        while True:
            try:
                self._control_plane.job_result(result)
                logger.info("job %s: %s", result["job_id"], result["status"])
                return
            except ControlPlaneAway as error:
                logger.warning("result not delivered yet: %s", error)
                time.sleep(backoff_s)
                backoff_s = min(2 * backoff_s, _MAX_BACKOFF_S)
            except Refused as error:
                logger.error("result of job %s refused: %s", result["job_id"], error)
                if error.status not in (400, 413) or result.get("error") == _REFUSED:
                    return
                # The job must not hang on a result that the control plane can't take.
                logger.error("the job is reported as failed for it")
                result = {**result, "status": "failed", "error": _REFUSED, "metrics": {}}
