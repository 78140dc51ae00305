"""Decides which failures are transient, so that a retry may succeed."""

import errno
import socket
import sys

EXIT_FATAL = 1
EXIT_TRANSIENT = 75
"""EX_TEMPFAIL: the agent retries."""


class FatalError(Exception):
    """The job can't succeed: a bad parameter, a missing or unreadable input."""


class TransientError(Exception):
    """A service outside of the job was unavailable. A retry may succeed."""


_TRANSIENT_TYPES = (TransientError, ConnectionError, TimeoutError, socket.gaierror, MemoryError)

_TRANSIENT_ERRNOS = frozenset(
    {
        errno.ENOSPC,
        errno.EDQUOT,
        errno.ENOMEM,
        errno.EMFILE,
        errno.ENFILE,
        errno.EAGAIN,
        errno.EIO,
        errno.ENETUNREACH,
        errno.EHOSTUNREACH,
        errno.EADDRINUSE,
    }
)

_TRANSIENT_NAMES = {
    # APIConnectionError is also the base class of the time-out error.
    "openai": ("APIConnectionError", "RateLimitError", "InternalServerError"),
    "torch": ("OutOfMemoryError",),
}
"""Types of optional libraries. Looked up only if the library is loaded."""


def is_transient(error: BaseException) -> bool:
    """Whether a retry may succeed. False for an unknown error."""
    if isinstance(error, FatalError):
        return False
    if isinstance(error, _TRANSIENT_TYPES):
        return True
    if isinstance(error, OSError):
        return error.errno in _TRANSIENT_ERRNOS
    return any(
        isinstance(error, getattr(sys.modules[library], name))
        for library, names in _TRANSIENT_NAMES.items()
        if library in sys.modules
        for name in names
    )


def message_of(error: BaseException) -> str:
    """The error in one line, for the job's owner."""
    text = str(error).strip()
    if isinstance(error, FatalError | TransientError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
