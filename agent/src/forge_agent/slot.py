"""One slot of this machine. The control plane sees it as a worker with one job at a time."""

import logging
import secrets
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from . import __version__
from .commands import run_command
from .config import AgentConfig
from .container import remove_containers
from .control_plane import (
    ControlPlane,
    ControlPlaneUnavailable,
    KeyRefused,
    NotRegistered,
    Refused,
)
from .deployments import Deployments
from .gpu import Gpus, Nvml
from .heartbeat import HeartbeatLoop, describe_heartbeat, describe_job
from .job_runner import JobRunner
from .job_types import job_types_of
from .lease import Lease
from .masking import mask_for
from .preflight import find_fault
from .result_delivery import deliver
from .slot_user import RunAs
from .spool import Spool

logger = logging.getLogger(__name__)

_MAX_BACKOFF_S = 30.0
_FAULT_INTERVAL_S = 5.0


class Slot:
    """Registers, then polls for jobs, runs them and reports results until it drains."""

    def __init__(
        self,
        config: AgentConfig,
        control_plane: ControlPlane,
        worker_id: str,
        nvml: Nvml,
        gpus: Gpus,
        env: Mapping[str, str],
        folder: Path,
        on_change: Callable[[], None],
        jobs_as: RunAs = RunAs(),  # noqa: B008 - immutable
        deployments_as: RunAs = RunAs(),  # noqa: B008 - immutable
    ) -> None:
        """`on_change`: called when the result of `describe` changes, or the slot has ended."""
        self.worker_id = worker_id
        self.failure: Exception | None = None
        self.has_ended = False
        self._config = config
        self._control_plane = control_plane
        self._nvml = nvml
        self._gpus = gpus
        self._on_change = on_change
        self._jobs_as = jobs_as
        self._folder = folder
        env = {**env, "FORGE_GPU_COUNT": str(gpus.count)}
        mask = mask_for(config)
        self._deployments = Deployments(config, folder / "deployments", env, mask, deployments_as)
        self._runner = JobRunner(
            config, control_plane, folder / "work", gpus, env, self._deployments, mask, jobs_as
        )
        remove_containers(config.handlers, worker_id)
        self._spool = Spool(folder)
        self._boot_id = uuid.uuid4().hex
        self._token = secrets.token_hex(32)
        self._lock = threading.Lock()
        self._lease: Lease | None = None
        self._unsent: dict[str, Any] | None = None
        self._fault: str | None = None
        self._leaving = threading.Event()
        self._since = time.time()

    @property
    def has_job(self) -> bool:
        return self._lease is not None

    @property
    def has_result(self) -> bool:
        """Whether a result is not delivered yet. A copy of it is on disk."""
        return self._unsent is not None

    def start(self) -> None:
        threading.Thread(target=self._run, name=self.worker_id, daemon=True).start()

    def drain(self) -> None:
        """Finishes the current job and accepts no other. Does not wait."""
        self._leaving.set()

    def stop_job(self, why: str) -> None:
        """Stops the current job, which is reported as failed. Does not wait."""
        lease = self._lease
        if lease:
            logger.warning("stopping job %s: %s", lease.job_id, why)
            # In a new thread, because the caller must not block.
            threading.Thread(target=lease.stop, args=[why], daemon=True).start()

    def close(self) -> None:
        self._deployments.close()

    def describe(self) -> dict[str, Any]:
        """For `forge-agent status`."""
        with self._lock:
            lease, fault = self._lease, self._fault
        state = "busy" if lease else "error" if fault else "idle"
        return {
            "worker_id": self.worker_id,
            "state": "leaving" if self._leaving.is_set() and not lease else state,
            "reason": fault,
            "since": self._since,
            "gpu": self._gpus.name,
            "job_user": self._jobs_as.bare.uid if self._jobs_as.bare else None,
            "job_id": lease.job_id if lease else None,
            "job_type": lease.job_type if lease else None,
            "deployments": self._deployments.describe(),
        }

    # Lifecycle

    def _run(self) -> None:
        heartbeat: HeartbeatLoop | None = None
        try:
            self._unsent = self._spool.unsent()
            interval_s = self._register_until_accepted()
            self._changed()
            heartbeat = HeartbeatLoop(
                self._control_plane,
                self._config.heartbeat_interval_s or interval_s,
                self._describe_heartbeat,
                self._run_command,
                self._register,
                self._fail,
            )
            heartbeat.start()
            self._deployments.restore()
            if self._unsent:
                logger.info("delivering the result that an earlier run left")
                self._deliver(self._unsent)
            while not self._leaving.is_set():
                if self._passes_preflight():
                    self._poll_once()
        except Refused as error:
            self._fail(error)
        except Exception as error:
            # A bug of the agent: end the process, and let its service restart it.
            logger.exception("%s ended", self.worker_id)
            self._fail(error)
        finally:
            if heartbeat:
                heartbeat.stop()
            self.has_ended = True
            self._on_change()

    def _fail(self, error: Exception) -> None:
        """Ends the slot. Also stops its job, because the slot can't deliver a result any more."""
        self.failure = error
        lease = self._lease
        if lease:
            lease.stop("lost")
        self._leaving.set()
        self._on_change()

    def _passes_preflight(self) -> bool:
        """Runs the preflight checks. If one fails, the worker's state is `error`, with a reason."""
        fault = find_fault(self._config, self._folder, self._nvml, self._gpus)
        fault = fault or self._jobs_as.end_processes()
        if fault == self._fault:
            if fault:
                self._leaving.wait(_FAULT_INTERVAL_S)
            return fault is None
        self._fault = fault
        self._changed()
        if fault:
            logger.error("preflight failed, not accepting jobs: %s", fault)
        else:
            logger.info("preflight passes again")
            self._register_until_accepted()  # registration ends the state `error`
        return False

    def _register_until_accepted(self) -> float:
        backoff_s = 1.0
        while True:
            try:
                return self._register()
            except ControlPlaneUnavailable as error:
                logger.warning("cannot register yet: %s", error)
            time.sleep(backoff_s)
            backoff_s = min(2 * backoff_s, _MAX_BACKOFF_S)

    def _register(self) -> float:
        registered = self._control_plane.register(
            {
                "worker_id": self.worker_id,
                "gpu": {
                    "name": self._gpus.name,
                    "memory_gb": self._gpus.memory_gb,
                    "count": self._gpus.count,
                },
                "tags": list(self._config.tags),
                "job_types": job_types_of(self._config),
                "tenants": list(self._config.allow_tenants) or None,
                "version": __version__,
                "boot_id": self._boot_id,
                **self._describe_job(),
            }
        )
        logger.info("registered as %s (%s)", registered.worker_id, self._gpus.name)
        return registered.heartbeat_interval_s

    # Heartbeats and commands

    def _describe_heartbeat(self) -> dict[str, Any]:
        return describe_heartbeat(
            self.worker_id,
            self._nvml.read_load(self._gpus),
            self._fault,
            self._describe_job(),
            self._deployments.describe(),
        )

    def _describe_job(self) -> dict[str, Any]:
        with self._lock:
            lease, unsent = self._lease, self._unsent
        return describe_job(lease, unsent, self._runner)

    def _run_command(self, command: dict[str, Any]) -> None:
        run_command(command, self._lease, self._deployments, self._drain)

    def _drain(self) -> None:
        if not self._leaving.is_set():
            logger.info("%s drains by command: it ends after its job", self.worker_id)
        self._leaving.set()
        self._changed()

    # Jobs

    def _poll_once(self) -> None:
        started = time.monotonic()
        try:
            job, commands = self._control_plane.next_job(
                self.worker_id, self._config.wait_s, self._token
            )
        except NotRegistered:
            self._register_until_accepted()
            return
        except KeyRefused:
            raise
        except (ControlPlaneUnavailable, Refused) as error:
            logger.warning("poll failed: %s", error)
            self._leaving.wait(self._config.poll_interval_s)
            return
        for command in commands:
            self._run_command(command)
        if job:
            lease = Lease.of(job, self.worker_id, self._token)
            self._token = secrets.token_hex(32)
            self._work(lease)
        elif not commands:
            # A server that ignores `wait_seconds` responds immediately, so pause between polls.
            self._leaving.wait(self._config.poll_interval_s - (time.monotonic() - started))

    def _work(self, lease: Lease) -> None:
        logger.info("job %s (%s), attempt %s", lease.job_id, lease.job_type, lease.attempt)
        with self._lock:
            self._lease = lease
        self._changed()
        if self._leaving.is_set():
            lease.stop("before the job began")
        report = self._runner.run(lease)
        result = report and {
            **report,
            "worker_id": self.worker_id,
            "job_id": lease.job_id,
            "attempt": lease.attempt,
            "lease_token": lease.proof.token,
        }
        if result:
            self._spool.keep(result)
        with self._lock:
            self._unsent = result
            self._lease = None
        if result:
            self._deliver(result)
        self._changed()

    def _deliver(self, result: dict[str, Any]) -> None:
        # A draining slot fetches no other job. `leaving` tells the control plane not to assign a
        # job to this worker when the result arrives.
        sent = {**result, "leaving": True} if self._leaving.is_set() else result
        if not deliver(self._control_plane, sent, self._register_until_accepted):
            self._drop_deployment(result)
        self._spool.remove()
        with self._lock:
            self._unsent = None

    def _drop_deployment(self, result: dict[str, Any]) -> None:
        """Stops the model that a deploy job started, because the job's result was refused."""
        deployment_id = result.get("result", {}).get("deployment_id")
        if deployment_id:
            self._deployments.stop(str(deployment_id))

    def _changed(self) -> None:
        self._since = time.time()
        self._on_change()
