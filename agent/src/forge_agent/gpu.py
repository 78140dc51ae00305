"""What this machine computes with."""

import subprocess
from dataclasses import dataclass


@dataclass(frozen=True)
class Gpu:
    name: str
    memory_gb: float
    count: int


@dataclass(frozen=True)
class GpuLoad:
    util: float
    """Percent, the mean of all GPUs."""
    mem_used: float
    """GB, all GPUs together; so is mem_total."""
    mem_total: float


CPU = Gpu(name="cpu", memory_gb=0, count=0)


def find_gpu() -> Gpu:
    """The machine's GPUs by nvidia-smi; `CPU` where there is none."""
    rows = _query("name,memory.total")
    if not rows:
        return CPU
    name, memory_mib = rows[0]
    return Gpu(name=name, memory_gb=round(float(memory_mib) / 1024, 1), count=len(rows))


def read_load() -> GpuLoad:
    try:
        loads = [
            tuple(map(float, row)) for row in _query("utilization.gpu,memory.used,memory.total")
        ]
    except ValueError:  # "[N/A]" on some boards
        loads = []
    if not loads:
        return GpuLoad(util=0, mem_used=0, mem_total=0)
    return GpuLoad(
        util=sum(util for util, _, _ in loads) / len(loads),
        mem_used=round(sum(used for _, used, _ in loads) / 1024, 2),
        mem_total=round(sum(total for _, _, total in loads) / 1024, 2),
    )


def _query(fields: str) -> list[list[str]]:
    command = ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return [[cell.strip() for cell in line.split(",")] for line in done.stdout.splitlines() if line]
