"""Which job types this worker can run, and by which command."""

import importlib.util
import sys

from .config import AgentConfig, HandlerConfig
from .declared_types import JOB_TYPES, NEEDS_TORCH
from .handler_failed import HandlerFailed


def handler_for(config: AgentConfig, job_type: str) -> HandlerConfig:
    """The configured command, else the reference handler. Raises HandlerFailed if there is none."""
    if job_type in config.handlers:
        return config.handlers[job_type]
    if _has_reference(job_type):
        return reference_handler(job_type)
    raise HandlerFailed(f"this worker has no handler for {job_type} jobs", transient=False)


def reference_handler(job_type: str) -> HandlerConfig:
    return HandlerConfig((sys.executable, "-m", "forge_compute", job_type))


def job_types_of(config: AgentConfig) -> list[str] | None:
    """The job types that this worker can and may run; None for all."""
    allowed = config.allow_job_types or JOB_TYPES
    able = [each for each in allowed if each in config.handlers or _has_reference(each)]
    return None if set(able) == set(JOB_TYPES) else able


def _has_reference(job_type: str) -> bool:
    """Whether the reference handler and its libraries are installed."""
    if job_type not in JOB_TYPES or importlib.util.find_spec("forge_compute") is None:
        return False
    return job_type not in NEEDS_TORCH or importlib.util.find_spec("torch") is not None
