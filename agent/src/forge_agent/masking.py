"""Masks secrets of the agent's environment in logs."""

import os
import re
from collections.abc import Mapping

from .config import AgentConfig

_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL", re.IGNORECASE)
_MIN_LENGTH = 8
"""Minimum length of a masked value. Shorter values often occur in unrelated text."""

MASK = b"***"


class Mask:
    """Replaces secrets with `***`.

    The secrets are the strings in `more`, and the values of all variables in `env` whose names
    match _SECRET_NAME. Each line of a multi-line value is replaced on its own.
    """

    def __init__(self, env: Mapping[str, str], *more: str) -> None:
        secrets = (*secrets_in(env), *more)
        values = {line.strip() for value in secrets for line in value.splitlines()}
        # Longest first: if a secret starts with a shorter one, masking the shorter one first would
        # leave the rest of it readable.
        self._secrets = sorted(
            (value.encode() for value in values if len(value) >= _MIN_LENGTH), key=len, reverse=True
        )

    def apply(self, data: bytes) -> bytes:
        for secret in self._secrets:
            data = data.replace(secret, MASK)
        return data

    def apply_text(self, text: str) -> str:
        return self.apply(text.encode(errors="replace")).decode(errors="replace")

    @property
    def longest(self) -> int:
        """Length of the longest secret in bytes, or 0."""
        return len(self._secrets[0]) if self._secrets else 0


def mask_for(config: AgentConfig) -> Mask:
    """Creates a mask for secrets of the environment, configuration and handlers' variables."""
    own = [config.api_key]
    if config.s3:
        own += [config.s3.access_key_id, config.s3.secret_access_key]
    for handler in config.handlers.values():
        own += secrets_in(handler.env)
    return Mask(os.environ, *own)


def secrets_in(env: Mapping[str, str]) -> list[str]:
    """Values of the variables whose names match _SECRET_NAME."""
    return [value for name, value in env.items() if _SECRET_NAME.search(name)]
