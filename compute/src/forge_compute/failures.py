"""Which failures another try may mend: the one place that decides."""

import errno
import socket
import sys

EXIT_FATAL = 1
EXIT_TRANSIENT = 75
"""EX_TEMPFAIL: what the agent takes for "try again"."""


class FatalError(Exception):
    """The job can't succeed: a bad parameter, a missing or unreadable input."""


class TransientError(Exception):
    """Something outside the job was away; another try may find it back."""


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
    # The time-out is an APIConnectionError.
    "openai": ("APIConnectionError", "RateLimitError", "InternalServerError"),
    "torch": ("OutOfMemoryError",),
}
"""Types of libraries that not every handler loads: looked up only where they are loaded."""


def is_transient(error: BaseException) -> bool:
    """Whether another try may succeed where this one failed; of an unknown failure, no."""
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
    """The failure in one line, as the job's owner will read it."""
    text = str(error).strip()
    if isinstance(error, FatalError | TransientError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
