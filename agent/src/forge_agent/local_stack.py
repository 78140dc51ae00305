"""Finds the control plane's URL and API key: the configured ones, or those of a local stack."""

import json
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from .settings import ConfigError


def find_control_plane(url: str, key: str, env: Mapping[str, str]) -> tuple[str, str]:
    """Fills in an empty URL or key from stack.json, which the local stack (`npm start`) writes.

    Raises ConfigError if one of them is still empty. The Python and TypeScript SDKs follow the
    same rules.
    """
    stack = _read_stack_file(env)
    local_url = stack.get("api_url", "")
    if key and not _is_of_this_machine(local_url):
        # Security: a stack.json in the working directory must not make the worker send its key to
        # another machine.
        local_url = ""
    url = (url or local_url).rstrip("/")
    # The local stack's key is sent to the local stack only.
    if not key and url and url == local_url.rstrip("/"):
        key = stack.get("worker_api_key", "")
    for name, value in (("SERVICE_API_URL", url), ("SERVICE_API_KEY", key)):
        if not value:
            why = "the local stack's is used for its own address only"
            raise ConfigError(f"{name} is not set, and {why if stack else 'no local stack runs'}")
    return url, key


def _is_of_this_machine(address: str) -> bool:
    try:
        host = urlsplit(address).hostname or ""
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _read_stack_file(env: Mapping[str, str]) -> dict[str, str]:
    """The string values in FORGE_HOME/stack.json. Empty if there is no such file."""
    try:
        content = json.loads((Path(env.get("FORGE_HOME") or ".forge") / "stack.json").read_text())
    except (OSError, ValueError):
        return {}
    if not isinstance(content, dict):
        return {}
    return {key: value for key, value in content.items() if isinstance(value, str)}
