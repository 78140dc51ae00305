"""Compares this client's release with the oldest release that the server supports."""

import re
import warnings
from collections.abc import Mapping
from functools import lru_cache

from ._version import __version__

CLIENT_HEADER = {"X-Forge-Client": f"sdk-python/{__version__}"}


class OutdatedClientWarning(UserWarning):
    """The server requires a newer release of this client."""


def warn_if_outdated(headers: Mapping[str, str]) -> None:
    """Warns if the response says that this client is too old. Warns once per minimum version."""
    minimum = headers.get("x-forge-min-client")
    if minimum:
        _warn_once(minimum)


@lru_cache(maxsize=16)
def _warn_once(minimum: str) -> None:
    if is_older(__version__, minimum):
        warnings.warn(
            f"forge-sdk {__version__} is older than this server supports: upgrade it to"
            f" {minimum} or later (pip install --upgrade forge-sdk)",
            OutdatedClientWarning,
            stacklevel=3,
        )


def is_older(version: str, minimum: str) -> bool:
    """Whether a version is lower than the minimum.

    Returns False if one of the two texts does not begin with a version such as 1.2.3.
    """
    numbers = [re.match(r"(\d{1,9})\.(\d{1,9})\.(\d{1,9})", each) for each in (version, minimum)]
    ours, theirs = ([int(n) for n in found.groups()] if found else None for found in numbers)
    return ours is not None and theirs is not None and ours < theirs
