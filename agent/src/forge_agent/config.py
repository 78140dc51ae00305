"""The agent's configuration, from the variables that spec.md 4.6 names."""

import json
import os
import socket
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


class ConfigError(Exception):
    """A variable is missing or wrong; the message names it."""


@dataclass(frozen=True)
class AgentConfig:
    api_url: str
    """Base URL of the control plane."""
    api_key: str = field(repr=False)
    worker_id: str
    tags: tuple[str, ...] = ()
    heartbeat_interval_s: float | None = None
    """None: as the control plane says at registration."""
    poll_interval_s: float = 2.0
    """Pause after a failed poll, in seconds."""
    wait_s: float = 30.0
    """How long a poll stays parked at the control plane, in seconds."""
    local_max_retries: int = 2
    artifacts_dir: Path = Path("artifacts")
    """The local artifact store."""
    stop_grace_s: float = 10.0
    """Between SIGTERM and SIGKILL to a job that must end, in seconds."""

    @classmethod
    def from_env(cls, env: Mapping[str, str] = os.environ) -> "AgentConfig":
        """Reads the environment; where URL or key are not set, the local stack's stack.json."""
        stack = _read_stack_file(env)
        api_url = env.get("SERVICE_API_URL") or stack.get("api_url")
        api_key = env.get("SERVICE_API_KEY") or stack.get("worker_api_key")
        if not api_url:
            raise ConfigError("SERVICE_API_URL is not set, and no local stack runs")
        if not api_key:
            raise ConfigError("SERVICE_API_KEY is not set, and no local stack runs")
        interval = env.get("HEARTBEAT_INTERVAL")
        return cls(
            api_url=api_url.rstrip("/"),
            api_key=api_key,
            worker_id=env.get("WORKER_ID") or f"{socket.gethostname()}-{uuid.uuid4().hex[:8]}",
            tags=tuple(tag.strip() for tag in env.get("WORKER_TAGS", "").split(",") if tag.strip()),
            heartbeat_interval_s=_seconds(env, "HEARTBEAT_INTERVAL", 0.0) if interval else None,
            poll_interval_s=_seconds(env, "POLL_INTERVAL", 2.0),
            local_max_retries=_count(env, "LOCAL_MAX_RETRIES", 2),
            artifacts_dir=Path(env.get("ARTIFACTS_DIR") or "artifacts").resolve(),
        )


def _read_stack_file(env: Mapping[str, str]) -> dict[str, str]:
    path = Path(env.get("FORGE_HOME", ".forge")) / "stack.json"
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return {key: value for key, value in content.items() if isinstance(value, str)}


def _seconds(env: Mapping[str, str], name: str, default: float) -> float:
    text = env.get(name)
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < 86_400:
        raise ConfigError(f"{name} must be a number of seconds, not {text!r}")
    return value


def _count(env: Mapping[str, str], name: str, default: int) -> int:
    text = env.get(name)
    if not text:
        return default
    if not text.isdigit():
        raise ConfigError(f"{name} must be a whole number, not {text!r}")
    return int(text)
