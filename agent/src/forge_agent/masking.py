"""Secrets of the agent's environment never reach a log."""

import os
import re
from collections.abc import Mapping

from .config import AgentConfig

_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL", re.IGNORECASE)
_LEAST_LENGTH = 8
"""A shorter value would mask half of the log, and protects nothing."""

MASK = b"***"


class Mask:
    """Replaces the values of variables that look secret, and those that are named to it.

    Of a value of several lines, each line.
    """

    def __init__(self, env: Mapping[str, str], *more: str) -> None:
        named = (*secrets_in(env), *more)
        values = {line.strip() for value in named for line in value.splitlines()}
        # Longest first: one secret may begin with another.
        self._secrets = sorted(
            (value.encode() for value in values if len(value) >= _LEAST_LENGTH),
            key=len,
            reverse=True,
        )

    def apply(self, data: bytes) -> bytes:
        for secret in self._secrets:
            data = data.replace(secret, MASK)
        return data

    def apply_text(self, text: str) -> str:
        return self.apply(text.encode(errors="replace")).decode(errors="replace")

    @property
    def longest(self) -> int:
        """Bytes of the longest secret; 0 for none."""
        return len(self._secrets[0]) if self._secrets else 0


def mask_for(config: AgentConfig) -> Mask:
    """Of the environment, of the configuration, and of what handlers are given beside it."""
    own = [config.api_key]
    if config.s3:
        own += [config.s3.access_key_id, config.s3.secret_access_key]
    for handler in config.handlers.values():
        own += secrets_in(handler.env)
    return Mask(os.environ, *own)


def secrets_in(env: Mapping[str, str]) -> list[str]:
    """Values of variables whose names say that they are secret."""
    return [value for name, value in env.items() if _SECRET_NAME.search(name)]
