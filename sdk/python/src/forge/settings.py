"""Finds a client's key and the address of Forge."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

import httpx2

from .errors import ForgeError


@dataclass(frozen=True)
class Settings:
    base_url: str
    api_key: str = field(repr=False)

    @classmethod
    def load(cls, api_key: str | None, base_url: str | None, env: Mapping[str, str]) -> "Settings":
        """Takes each value from the arguments, else the environment, else the local stack's file.

        Raises ForgeError for a missing or invalid value. The error names the value's environment
        variable, and never contains the key.
        """
        stack = _read_stack_file(env)
        key = api_key or env.get("SERVICE_API_KEY")
        local_url = stack.get("api_url")
        if key and local_url and not _is_of_this_machine(local_url):
            # Security: someone else may have written the stack.json in the working directory. So
            # the user's own key is sent to the address in stack.json only if this address belongs
            # to this machine.
            local_url = None
        url = base_url or env.get("SERVICE_BASE_URL") or local_url
        # The local stack's key is sent to the local stack only.
        if not key and url and url.rstrip("/") == (local_url or "").rstrip("/"):
            key = stack.get("user_api_key")
        for name, value in (("SERVICE_BASE_URL", url), ("SERVICE_API_KEY", key)):
            if not value:
                why = f"no local stack runs: there is no {_stack_file(env)}"
                if stack:
                    why = "the local stack's is used for its own address only"
                raise ForgeError(f"{name} is not set, and {why}")
        return cls(_checked_url(url or ""), _checked_key(key or ""))


def _is_of_this_machine(address: str) -> bool:
    try:
        host = httpx2.URL(address).host
        return host == "localhost" or ip_address(host).is_loopback
    except (httpx2.InvalidURL, ValueError):
        return False


def _stack_file(env: Mapping[str, str]) -> Path:
    return Path(env.get("FORGE_HOME") or ".forge") / "stack.json"


def _read_stack_file(env: Mapping[str, str]) -> dict[str, str]:
    """The string values in FORGE_HOME/stack.json. Empty if the file is missing or invalid."""
    try:
        content = json.loads(_stack_file(env).read_text())
    except (OSError, ValueError):
        return {}
    if not isinstance(content, dict):
        return {}
    return {key: value for key, value in content.items() if isinstance(value, str)}


def _checked_url(text: str) -> str:
    try:
        url = httpx2.URL(text)
        url.host.encode("idna")
    except (httpx2.InvalidURL, UnicodeError):
        url = httpx2.URL()
    is_address = url.scheme in ("http", "https") and url.host
    # Error messages contain the address, so it must not contain credentials.
    if not is_address or url.userinfo or url.query or url.fragment or re.search(r"\s", text):
        raise ForgeError("SERVICE_BASE_URL must be an address such as https://forge.example.com")
    return text.rstrip("/")


def _checked_key(key: str) -> str:
    """Checks the key here: the HTTP library's error for an invalid header would contain the key."""
    if not re.fullmatch(r"[\x21-\x7e]+", key):
        raise ForgeError("SERVICE_API_KEY is not a key: it has spaces or non-ASCII characters")
    return key
