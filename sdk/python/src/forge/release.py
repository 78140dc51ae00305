"""Releases: this client's, and the oldest one that the server still serves as it expects."""

import re
import warnings
from collections.abc import Mapping
from functools import lru_cache

from ._version import __version__

CLIENT_HEADER = {"X-Forge-Client": f"sdk-python/{__version__}"}


class OutdatedClientWarning(UserWarning):
    """The server expects a later release of this client."""


def heed_minimum(headers: Mapping[str, str]) -> None:
    """Warns where the answer says that this client is too old; once for each such minimum."""
    minimum = headers.get("x-forge-min-client")
    if minimum:
        _heed(minimum)


@lru_cache(maxsize=16)
def _heed(minimum: str) -> None:
    if is_older(__version__, minimum):
        warnings.warn(
            f"forge-sdk {__version__} is older than this server expects: renew it to {minimum} or"
            " later (pip install --upgrade forge-sdk)",
            OutdatedClientWarning,
            stacklevel=3,
        )


def is_older(version: str, minimum: str) -> bool:
    """By major, minor and patch. False where either is not a version of that form."""
    numbers = [re.match(r"(\d{1,9})\.(\d{1,9})\.(\d{1,9})", each) for each in (version, minimum)]
    ours, theirs = ([int(n) for n in found.groups()] if found else None for found in numbers)
    return ours is not None and theirs is not None and ours < theirs
