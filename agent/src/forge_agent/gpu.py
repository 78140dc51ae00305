"""The machine's GPUs and their load, from NVML."""

import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pynvml

from .container import list_container_ids

GIB = 1024**3

_T = TypeVar("_T")


@dataclass(frozen=True)
class Gpus:
    """The GPUs of one slot."""

    name: str
    memory_gb: float
    """Memory of one GPU."""
    indices: tuple[int, ...]
    """In NVML's order, which is the PCI bus order."""

    @property
    def count(self) -> int:
        return len(self.indices)


@dataclass(frozen=True)
class GpuLoad:
    util: float
    """Percent, the mean of all GPUs."""
    mem_used: float
    """On all GPUs together, in GB of 1024³ bytes. `mem_total` has the same unit."""
    mem_total: float


CPU = Gpus(name="cpu", memory_gb=0, indices=())


class Nvml:
    """NVIDIA's management library (NVML).

    Opened on first use, and reopened after an error, for example after an upgrade of the driver.
    """

    def __init__(self) -> None:
        self._is_open = False

    def find_gpus(self, visible: str | None = None) -> Gpus:
        """Returns the GPUs. The name and the memory are those of the GPU with the least memory.

        Returns `CPU` if there are no GPUs, or if NVML fails.

        visible: restricts the GPUs, in the format of CUDA_VISIBLE_DEVICES.
        """

        def find() -> Gpus:
            found = []
            for index in range(pynvml.nvmlDeviceGetCount()):
                handle = pynvml.nvmlDeviceGetHandleByIndex(index)
                if is_visible(visible, index, str(pynvml.nvmlDeviceGetUUID(handle))):
                    memory = pynvml.nvmlDeviceGetMemoryInfo(handle).total / GIB
                    found.append((memory, str(pynvml.nvmlDeviceGetName(handle)), index))
            if not found:
                return CPU
            memory, name, _ = min(found)
            return Gpus(name, round(memory, 1), tuple(index for _, _, index in found))

        return self._query(find, CPU)

    def read_load(self, gpus: Gpus) -> GpuLoad:
        def read() -> GpuLoad:
            utils, used, total = [], 0, 0
            for handle in _handles(gpus):
                memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
                used, total = used + memory.used, total + memory.total
                utils.append(float(pynvml.nvmlDeviceGetUtilizationRates(handle).gpu))
            return GpuLoad(sum(utils) / len(utils), round(used / GIB, 2), round(total / GIB, 2))

        nothing = GpuLoad(0, 0, 0)
        return self._query(read, nothing) if gpus.count else nothing

    def foreign_processes(self, gpus: Gpus) -> list[int]:
        """Returns the ids of processes that use these GPUs and were not started by an agent."""

        def find() -> list[int]:
            return [
                process.pid
                for handle in _handles(gpus)
                for process in pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
                if not _is_descendant(process.pid)
            ]

        return without_contained(self._query(find, [])) if gpus.count else []

    def _query(self, query: Callable[[], _T], default: _T) -> _T:
        try:
            if not self._is_open:
                pynvml.nvmlInit()
                self._is_open = True
            return query()
        except pynvml.NVMLError:
            if self._is_open:
                self._is_open = False
                with contextlib.suppress(pynvml.NVMLError):
                    pynvml.nvmlShutdown()
            return default


def _handles(gpus: Gpus) -> list[Any]:
    return [pynvml.nvmlDeviceGetHandleByIndex(index) for index in gpus.indices]


def is_visible(visible: str | None, index: int, uuid: str) -> bool:
    if visible is None:
        return True
    wanted = [each.strip() for each in visible.split(",")]
    return str(index) in wanted or any(each and uuid.startswith(each) for each in wanted)


def without_contained(pids: list[int]) -> list[int]:
    """Returns the processes that don't run in an agent's container.

    Processes in these containers don't descend from the agent, because the container runtime starts
    them. So `_is_descendant` does not recognize them.
    """
    ids = list_container_ids() if pids else []
    if ids is None:  # unknown: they may all be in an agent's containers
        return []
    return [pid for pid in pids if not any(each in _cgroup_of(pid) for each in ids)]


def _cgroup_of(pid: int) -> str:
    """The process's control groups. In a container, they contain the full id of the container."""
    try:
        return Path(f"/proc/{pid}/cgroup").read_text()
    except OSError:
        return ""


def _is_descendant(pid: int) -> bool:
    """Whether a process descends from this one.

    NVML returns process ids of the host, which an agent in a container can't look up. Returns True
    for such an id, because the process may be a descendant.
    """
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    ours = os.getpid()
    while pid > 1:
        if pid == ours:
            return True
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            return False
    return False
