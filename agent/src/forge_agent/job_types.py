"""Which job types this worker can run, and by which command."""

import importlib.util
import sys

from .config import AgentConfig, HandlerConfig
from .declared_types import JOB_TYPES, NEEDS_TORCH
from .handler_failed import HandlerFailed


def handler_for(config: AgentConfig, job_type: str) -> HandlerConfig:
    """The owner's command, else the reference handler. Raises HandlerFailed for neither."""
    if job_type in config.handlers:
        return config.handlers[job_type]
    if _has_reference(job_type):
        return HandlerConfig(command=(sys.executable, "-m", "forge_compute", job_type))
    raise HandlerFailed(f"this worker has no handler for {job_type} jobs", transient=False)


def job_types_of(config: AgentConfig) -> list[str] | None:
    """The job types that this worker can and may run; None for all."""
    allowed = config.allow_job_types or JOB_TYPES
    able = [each for each in allowed if each in config.handlers or _has_reference(each)]
    return None if set(able) == set(JOB_TYPES) else able


def _has_reference(job_type: str) -> bool:
    """Whether the reference handlers are installed, and what this one needs."""
    if job_type not in JOB_TYPES or importlib.util.find_spec("forge_compute") is None:
        return False
    return job_type not in NEEDS_TORCH or importlib.util.find_spec("torch") is not None
