"""The agent of one machine: starts its slots, writes its status, and shuts down.

Each slot runs one job at a time.
"""

import logging
import os
import time
from collections.abc import Mapping
from queue import SimpleQueue

from . import __version__
from .config import AgentConfig
from .container import require_runtime
from .control_plane import ControlPlane
from .gpu import CPU, Gpus, Nvml
from .isolation import find_isolation
from .slot import Slot
from .state import StateFolder

logger = logging.getLogger(__name__)


class Agent:
    """All slots of this machine. Raises ConfigError if the machine can't run the configuration."""

    def __init__(self, config: AgentConfig) -> None:
        require_runtime(config.handlers)
        self._config = config
        self._control_plane = ControlPlane(config.api_url, config.api_key)
        self._state = StateFolder(config.state_dir, config.worker_id)
        # SimpleQueue.put is reentrant, so a signal handler may call it.
        self._events: SimpleQueue[str] = SimpleQueue()
        self._stops = 0
        nvml = Nvml()
        gpus = nvml.find_gpus(os.environ.get("CUDA_VISIBLE_DEVICES"))
        assignments = assign_gpus(gpus, config.slots)
        folders = [self._state.slot(number) for number in range(len(assignments))]
        isolation = find_isolation(config, [config.state_dir, self._state.path, *folders])
        name = self._state.worker_id
        self._slots = [
            Slot(
                config,
                self._control_plane,
                name if len(assignments) == 1 else f"{name}-{number}",
                nvml,
                slot_gpus,
                env,
                folders[number],
                lambda: self._events.put("changed"),
                isolation.of_jobs(number),
                isolation.of_deployments(number),
            )
            for number, (slot_gpus, env) in enumerate(assignments)
        ]

    def run(self) -> None:
        """Blocks until the process may exit. Raises the failure of a slot, such as Refused."""
        started = time.time()
        for slot in self._slots:
            slot.start()
        while True:
            if self._events.get() == "stop":
                self._stop()
            self._write_status(started)
            if any(slot.failure for slot in self._slots):
                self._leave()
            if all(self._may_leave(slot) for slot in self._slots):
                break
        for slot in self._slots:
            slot.close()
        self._write_status(started)
        logger.info("stopped")
        for slot in self._slots:
            if slot.failure:
                raise slot.failure

    def request_stop(self) -> None:
        """Call it at each stop signal. Safe in a signal handler.

        After the first call, running jobs finish and no others start. The second call stops the
        running jobs.
        """
        self._events.put("stop")

    def _stop(self) -> None:
        self._stops += 1
        if self._stops == 1:
            logger.info("stopping after the running jobs; a second signal stops them now")
        else:
            for slot in self._slots:
                slot.stop_job("by a second signal")
        self._leave()

    def _leave(self) -> None:
        self._stops = max(1, self._stops)
        for slot in self._slots:
            slot.drain()

    def _may_leave(self, slot: Slot) -> bool:
        """Whether this slot allows the process to exit.

        The process does not wait for a slot that only polls for a job. After a second signal, it
        does not wait for an undelivered result either: the result is on disk, and the next agent
        delivers it.
        """
        must_wait = slot.has_job or (slot.has_result and self._stops == 1)
        return slot.has_ended or (self._stops > 0 and not must_wait)

    def _write_status(self, started: float) -> None:
        self._state.write_status(
            {
                "pid": os.getpid(),
                "version": __version__,
                "api_url": self._config.api_url,
                "started_at": started,
                "slots": [slot.describe() for slot in self._slots],
            }
        )


def assign_gpus(gpus: Gpus, slots: str) -> list[tuple[Gpus, Mapping[str, str]]]:
    """Returns each slot's GPUs, and the environment variables that restrict its jobs to them."""
    if slots == "per-gpu" and gpus.count > 0:
        return [
            (
                Gpus(gpus.name, gpus.memory_gb, (index,)),
                # NVML numbers GPUs by PCI bus id. By default, CUDA numbers the fastest GPU first,
                # so the same number could mean another GPU.
                {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": str(index)},
            )
            for index in gpus.indices
        ]
    count = 1 if slots == "per-gpu" else int(slots)
    if count == 1 or gpus == CPU:
        return [(gpus, {})] * count
    logger.warning("WORKER_SLOTS: %s slots share all GPUs; per-gpu gives each slot one GPU", count)
    return [(gpus, {})] * count
