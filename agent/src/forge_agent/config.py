"""The agent's configuration, in order of precedence: flags, environment, TOML file, defaults."""

import os
import re
import shlex
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from .declared_types import DEPLOYMENT_TYPE, JOB_TYPES
from .local_stack import find_control_plane
from .settings import SETTINGS, ConfigError, parse_setting


@dataclass(frozen=True)
class HandlerConfig:
    """How to run the handler of a job type, from the TOML file's table `[handlers.<type>]`.

    A job type without a table uses the default settings (`reference_handler` in job_types.py).
    """

    command: tuple[str, ...]
    image: str | None = None
    """Container image to run the command in. Requires docker or podman on the machine."""
    memory_gb: float | None = None
    """Limit on the resident memory of the whole process tree; above it, the tree is killed."""
    cpus: float | None = None
    """CPU limit; 0: no limit. Default: all CPUs but one. Like `pids` and `network`, this applies to
    containers only."""
    pids: int = 4096
    network: str = "bridge"
    timeout_s: float | None = None
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Teacher:
    """An OpenAI-compatible endpoint, from the TOML file's table `[teachers.<name>]`.

    Jobs refer to an endpoint by its name. The endpoint named `*` serves every name that has no
    table of its own.
    """

    base_url: str
    model: str | None = None
    api_key_env: str | None = None


@dataclass(frozen=True)
class S3Config:
    """The worker's own S3-compatible bucket."""

    scheme: str
    """`s3` or `spaces`: the scheme of the bucket's URIs."""
    bucket: str
    access_key_id: str = field(repr=False)
    secret_access_key: str = field(repr=False)
    endpoint: str | None = None
    region: str | None = None


@dataclass(frozen=True)
class AgentConfig:
    """A field's name ends with its unit: `_s` for seconds. settings.py documents each setting."""

    api_url: str
    api_key: str = field(repr=False)
    worker_id: str | None = None
    tags: tuple[str, ...] = ()
    slots: str = "1"
    heartbeat_interval_s: float | None = None
    poll_interval_s: float = 2.0
    wait_s: float = 30.0
    local_max_retries: int = 2
    stop_grace_s: float = 10.0
    state_dir: Path = Path("forge-agent")
    artifacts_dir: Path | None = None
    artifacts_upload: bool = True
    min_free_disk_gb: float = 1.0
    allow_job_types: tuple[str, ...] = ()
    allow_tenants: tuple[str, ...] = ()
    deploy_host: str | None = None
    deploy_ports: tuple[int, int] = (18_000, 18_999)
    deploy_start_timeout_s: float = 600.0
    slot_users: str = "auto"
    slot_user_base: int = 61_000
    git_commit: str | None = None
    handlers: Mapping[str, HandlerConfig] = field(default_factory=dict)
    teachers: Mapping[str, Teacher] = field(default_factory=dict)
    s3: S3Config | None = None

    @classmethod
    def load(
        cls, file: Path | None = None, env: Mapping[str, str] = os.environ, **flags: str | None
    ) -> "AgentConfig":
        """Reads flags, environment and TOML file, in this order of precedence.

        Falls back to the local stack's stack.json for the URL and the key. Raises ConfigError,
        which names the setting.
        """
        named = env.get("FORGE_AGENT_CONFIG")
        chosen = file or (Path(named) if named else None)
        content = _read_toml(chosen) if chosen else {}
        handlers = _table("handlers", content.pop("handlers", {}))
        teachers = _table("teachers", content.pop("teachers", {}))
        values: dict[str, Any] = {}
        for setting in SETTINGS:
            from_file = content.pop(setting.name, None)
            given = flags.get(setting.name) or env.get(setting.env) or from_file
            if given not in (None, ""):
                values[setting.name] = parse_setting(setting, given)
        if content:
            raise ConfigError(f"{chosen}: unknown setting {', '.join(sorted(content))}")
        values["api_url"], values["api_key"] = find_control_plane(
            values.get("api_url", ""), values.get("api_key", ""), env
        )
        values.setdefault("state_dir", default_state_dir(env))
        s3 = {
            name: values.pop(name) for name in list(values) if name.startswith(("s3_", "spaces_"))
        }
        endpoints = {name: _teacher(name, table) for name, table in teachers.items()}
        if teacher_url := values.pop("teacher_base_url", None):
            endpoints.setdefault("*", Teacher(teacher_url, api_key_env="TEACHER_API_KEY"))
        base = chosen.parent.resolve() if chosen else Path.cwd()
        return cls(
            **values,
            handlers={name: _handler(name, table, base) for name, table in handlers.items()},
            teachers=endpoints,
            s3=_s3(s3),
        )


SERVICE_STATE_DIR = Path("/var/lib/forge-agent")
"""The folder that systemd creates for the unit's StateDirectory."""


def default_state_dir(env: Mapping[str, str]) -> Path:
    """systemd's state directory if set, else the user's XDG state directory."""
    if env.get("STATE_DIRECTORY"):  # set by systemd
        return Path(env["STATE_DIRECTORY"])
    base = env.get("XDG_STATE_HOME") or str(Path(env.get("HOME", "/root")) / ".local" / "state")
    return Path(base) / "forge-agent"


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except OSError as error:
        raise ConfigError(f"{path} can't be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not TOML: {error}") from error


_HANDLER_SETTINGS = {field.name for field in fields(HandlerConfig)}
_NETWORK = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
"""Excludes colons: `container:<name>` would join the network of another container."""


def _handler(name: str, table: object, base: Path) -> HandlerConfig:
    where = f"handlers.{name}"
    if name not in JOB_TYPES:
        raise ConfigError(f"{where}: unknown job type; use one of {', '.join(JOB_TYPES)}")
    given = _table(where, table, _HANDLER_SETTINGS)
    command = given.get("command")
    words = shlex.split(command) if isinstance(command, str) else command
    if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
        raise ConfigError(f"{where}.command must be a command line or a list of words")
    for number in ("memory_gb", "timeout_s"):
        if not (given.get(number) is None or _is_positive(given[number])):
            raise ConfigError(f"{where}.{number} must be a number above 0")
    _require_container_settings(where, given)
    if name == DEPLOYMENT_TYPE and given.get("network") == "none":
        raise ConfigError(f"{where}.network: with none, a deployed model is not reachable")
    env = given.get("env", {})
    if not isinstance(env, dict) or not all(isinstance(value, str) for value in env.values()):
        raise ConfigError(f"{where}.env must be a table of strings")
    # Relative paths of files next to the TOML file become absolute, because each job has its own
    # working directory. A container's paths stay unchanged, because they refer to its image.
    is_local_file = [not given.get("image") and (base / word).is_file() for word in words]
    given["command"] = tuple(
        str(base / word) if is_local and not Path(word).is_absolute() else word
        for word, is_local in zip(words, is_local_file, strict=True)
    )
    return HandlerConfig(**given)


def _require_container_settings(where: str, given: Mapping[str, Any]) -> None:
    used = [name for name in ("cpus", "pids", "network") if name in given]
    if used and not given.get("image"):
        raise ConfigError(f"{where}.{used[0]} is for containers only; set image")
    if not (given.get("cpus", 0) == 0 or _is_positive(given["cpus"])):
        raise ConfigError(f"{where}.cpus must be a number; 0 means no limit")
    pids = given.get("pids", 1)
    if not _is_positive(pids) or not isinstance(pids, int):
        raise ConfigError(f"{where}.pids must be a whole number above 0")
    network = given.get("network", "bridge")
    if not isinstance(network, str) or not _NETWORK.fullmatch(network) or network == "host":
        raise ConfigError(f'{where}.network must be "none", "bridge" or the name of a network')


def _teacher(name: str, table: object) -> Teacher:
    fields = _table(f"teachers.{name}", table, {"base_url", "model", "api_key_env"})
    if not all(isinstance(value, str) for value in fields.values()) or "base_url" not in fields:
        raise ConfigError(f"teachers.{name} needs a base_url, and all values must be strings")
    return Teacher(**fields)


def _table(where: str, table: object, known: set[str] | None = None) -> dict[str, Any]:
    """Raises ConfigError if the value is not a table, or has unknown names."""
    if not isinstance(table, dict):
        raise ConfigError(f"{where} must be a table")
    if known is not None and (unknown := set(table) - known):
        raise ConfigError(f"{where}: unknown setting {', '.join(sorted(unknown))}")
    return dict(table)


def _is_positive(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def _s3(values: Mapping[str, str]) -> S3Config | None:
    """The configured bucket. DigitalOcean Spaces takes precedence over S3, as in spec.md."""
    for scheme, key, secret in (
        ("spaces", "spaces_key", "spaces_secret"),
        ("s3", "s3_access_key_id", "s3_secret_access_key"),
    ):
        if not values.get(key):
            continue
        missing = [name for name in (secret, f"{scheme}_bucket") if not values.get(name)]
        if missing:
            raise ConfigError(f"{key.upper()} is set, but {missing[0].upper()} is not")
        region = values.get(f"{scheme}_region")
        endpoint = values.get(f"{scheme}_endpoint")
        if scheme == "spaces" and not endpoint:
            endpoint = f"https://{region or 'nyc3'}.digitaloceanspaces.com"
        return S3Config(
            scheme, values[f"{scheme}_bucket"], values[key], values[secret], endpoint, region
        )
    return None
