"""Checks that must pass before the worker polls for a job."""

import os
import shutil
from pathlib import Path

from .config import AgentConfig
from .gpu import Gpus, Nvml
from .s3_bucket import open_bucket


def find_fault(config: AgentConfig, folder: Path, nvml: Nvml, gpus: Gpus) -> str | None:
    """Returns why the worker can't run jobs now, or None."""
    return (
        _disk_fault(folder, config.min_free_disk_gb)
        or _store_fault(config)
        or _gpu_fault(nvml, gpus)
    )


def _disk_fault(folder: Path, min_gb: float) -> str | None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        free_gb = shutil.disk_usage(folder).free / 1e9
    except OSError as error:
        return f"{folder} can't be used: {error.strerror}"
    if free_gb < min_gb:
        return f"{folder} has {free_gb:.1f} GB free, less than {min_gb:g} GB"
    return None


def _store_fault(config: AgentConfig) -> str | None:
    """Checks the worker's own store only.

    The control plane's store needs no check: transfers to and from it are retried.
    """
    if config.s3:
        import obstore

        try:
            next(iter(obstore.list(open_bucket(config.s3), "artifacts/", chunk_size=1)), None)
        except Exception as error:
            return f"the bucket {config.s3.bucket} can't be reached: {type(error).__name__}"
    elif config.artifacts_dir:
        try:
            config.artifacts_dir.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            return f"{config.artifacts_dir} can't be created: {error.strerror}"
        if not os.access(config.artifacts_dir, os.W_OK):
            return f"{config.artifacts_dir} can't be written to"
    return None


def _gpu_fault(nvml: Nvml, gpus: Gpus) -> str | None:
    foreign = nvml.foreign_processes(gpus)
    if not foreign:
        return None
    return f"other processes use the GPU: {', '.join(map(str, foreign))}"
