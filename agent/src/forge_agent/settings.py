"""All settings of the agent: name in the TOML file, environment variable and description."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


class ConfigError(Exception):
    """A setting is missing or invalid. The message names it."""


@dataclass(frozen=True)
class Setting:
    name: str
    env: str
    parse: Callable[[object], object]
    """Raises ValueError, whose message says what the value must be."""
    help: str


def parse_setting(setting: Setting, given: object) -> object:
    """Raises ConfigError, which names the variable."""
    try:
        return setting.parse(given)
    except ValueError as error:
        raise ConfigError(f"{setting.env} {error}, not {given!r}") from None


def describe_settings() -> str:
    """For --help: one paragraph per setting."""
    return "\n".join(f"  {each.env} ({each.name})\n      {each.help}" for each in SETTINGS)


def _text(given: object) -> str:
    if not isinstance(given, str):
        raise ValueError("must be a string")
    return given


def _url(given: object) -> str:
    text = _text(given)
    if not re.fullmatch(r"https?://[^\s/]+(/\S*)?", text):
        raise ValueError("must be like https://forge.example.org")
    return text


def _secret(given: object) -> str:
    if not isinstance(given, str) or not given.isprintable():
        # Don't raise ValueError: parse_setting would add the secret to its message.
        raise ConfigError("a key or secret must be a string of printable characters")
    return given


def _path(given: object) -> Path:
    return Path(_text(given)).expanduser().resolve()


def _texts(given: object) -> tuple[str, ...]:
    parts = given.split(",") if isinstance(given, str) else given
    if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
        raise ValueError("must be a list, or a comma-separated string")
    return tuple(part.strip() for part in parts if part.strip())


def _number(given: object, minimum: float, what: str) -> float:
    try:
        value = float(given)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        value = float("nan")
    if isinstance(given, bool) or not minimum <= value < 1e9:
        raise ValueError(f"must be {what}")
    return value


def _seconds(given: object) -> float:
    return _number(given, 0.01, "a number of seconds")


def _gigabytes(given: object) -> float:
    return _number(given, 0, "a number of GB")


def _count(given: object) -> int:
    value = _number(given, 0, "a whole number")
    if value != int(value):
        raise ValueError("must be a whole number")
    return int(value)


def _slots(given: object) -> str:
    text = str(given)
    if text != "per-gpu" and not (text.isdigit() and 1 <= int(text) <= 64):
        raise ValueError('must be "per-gpu" or a number from 1 to 64')
    return text


def _flag(given: object) -> bool:
    text = str(given).lower()
    if text not in ("true", "false"):
        raise ValueError("must be true or false")
    return text == "true"


def _slot_users(given: object) -> str:
    text = str(given).lower()
    if text not in ("auto", "true", "false"):
        raise ValueError("must be auto, true or false")
    return text


def _user_id(given: object) -> int:
    value = _count(given)
    if not 1000 <= value < 2**31:
        raise ValueError("must be a user id of at least 1000")
    return value


def _ports(given: object) -> tuple[int, int]:
    first, _, last = _text(given).partition("-")
    if not (first.isdigit() and last.isdigit() and 1 <= int(first) <= int(last) <= 65_535):
        raise ValueError("must be like 18000-18999")
    return int(first), int(last)


SETTINGS = (
    Setting("api_url", "SERVICE_API_URL", _url, "address of the control plane"),
    Setting("api_key", "SERVICE_API_KEY", _secret, "API key of scope worker"),
    Setting("worker_id", "WORKER_ID", _text, "name of this worker; default: generated once"),
    Setting("tags", "WORKER_TAGS", _texts, "comma-separated tags that jobs may require"),
    Setting("slots", "WORKER_SLOTS", _slots, "concurrent jobs: per-gpu or a number (1)"),
    Setting("heartbeat_interval_s", "HEARTBEAT_INTERVAL", _seconds,
            "seconds between heartbeats; default: set by the control plane"),
    Setting("poll_interval_s", "POLL_INTERVAL", _seconds,
            "seconds between polls after a failed or empty poll (2)"),
    Setting("wait_s", "POLL_WAIT", _seconds, "seconds that a poll waits for a job (30)"),
    Setting("local_max_retries", "LOCAL_MAX_RETRIES", _count,
            "local retries after a transient failure (2)"),
    Setting("stop_grace_s", "STOP_GRACE", _seconds, "seconds between SIGTERM and SIGKILL (10)"),
    Setting("state_dir", "FORGE_AGENT_STATE", _path,
            "folder for work, unsent results and deployments (~/.local/state/forge-agent)"),
    Setting("artifacts_dir", "ARTIFACTS_DIR", _path,
            "the worker's own directory for artifacts, and for file:// inputs"),
    Setting("artifacts_upload", "ARTIFACTS_UPLOAD", _flag,
            "false: store files in the worker's own bucket or directory only (true)"),
    Setting("min_free_disk_gb", "MIN_FREE_DISK_GB", _gigabytes,
            "minimum GB free in the state folder to accept a job (1)"),
    Setting("allow_job_types", "ALLOW_JOB_TYPES", _texts, "accept only these job types"),
    Setting("allow_tenants", "ALLOW_TENANTS", _texts, "accept only jobs of these tenants"),
    Setting("deploy_host", "DEPLOY_HOST", _text,
            "address of deployed models; default: this machine's towards the control plane"),
    Setting("deploy_ports", "DEPLOY_PORTS", _ports, "ports for deployed models (18000-18999)"),
    Setting("deploy_start_timeout_s", "DEPLOY_START_TIMEOUT", _seconds,
            "seconds until a deployed model must be healthy (600)"),
    Setting("slot_users", "SLOT_USERS", _slot_users,
            "as root, run jobs as separate users: auto (if they can run jobs), true or false"),
    Setting("slot_user_base", "SLOT_USER_BASE", _user_id,
            "first user id for jobs; two ids per slot (61000)"),
    Setting("git_commit", "FORGE_GIT_COMMIT", _text,
            "commit of the reference handlers, if not run from a git checkout"),
    Setting("teacher_base_url", "TEACHER_BASE_URL", _url,
            "OpenAI-compatible endpoint for any teacher name; its key in TEACHER_API_KEY"),
    Setting("s3_access_key_id", "S3_ACCESS_KEY_ID", _secret, "key of the worker's own bucket"),
    Setting("s3_secret_access_key", "S3_SECRET_ACCESS_KEY", _secret, "its secret"),
    Setting("s3_bucket", "S3_BUCKET", _text, "its name"),
    Setting("s3_endpoint", "S3_ENDPOINT", _text, "its address, if not Amazon S3"),
    Setting("s3_region", "S3_REGION", _text, "its region"),
    Setting("spaces_key", "SPACES_KEY", _secret, "the same for a DigitalOcean Space"),
    Setting("spaces_secret", "SPACES_SECRET", _secret, "its secret"),
    Setting("spaces_bucket", "SPACES_BUCKET", _text, "its name"),
    Setting("spaces_endpoint", "SPACES_ENDPOINT", _text, "its address"),
    Setting("spaces_region", "SPACES_REGION", _text, "its region"),
)  # fmt: skip
