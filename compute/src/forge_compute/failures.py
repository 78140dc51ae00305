"""Decides whether a failure is transient, which means that a retry may succeed."""

import errno
import re
import socket
import sys

EXIT_FATAL = 1
EXIT_TRANSIENT = 75
"""The exit code (EX_TEMPFAIL) after which the agent retries."""


class FatalError(Exception):
    """The job can't succeed: a bad parameter, a missing or unreadable input."""


class TransientError(Exception):
    """A service was unavailable, or PyTorch can't use the worker's GPU. A retry may succeed."""


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
    # APIConnectionError includes time-outs: APITimeoutError is a subclass.
    "openai": ("APIConnectionError", "RateLimitError", "InternalServerError"),
    "torch": ("OutOfMemoryError",),
}
"""Types of optional libraries. Looked up only if the library is loaded."""

_GPU_FAILURE = re.compile(
    r"CUDA error|CUDA driver|NVIDIA driver|CUDA unknown error|No CUDA GPUs|cudaGetDeviceCount"
    r"|cuDNN error|CUBLAS_STATUS|CUDNN_STATUS"
)
_CALLER_MISTAKE = re.compile(
    r"device-side assert triggered|invalid (configuration )?argument"
    r"|STATUS_(INVALID_VALUE|BAD_PARAM|NOT_SUPPORTED)"
)
"""CUDA reports some mistakes of its caller, such as a token outside of the vocabulary, in the same
way as a failure of the GPU. On another worker they would occur again."""


def is_transient(error: BaseException) -> bool:
    """Whether a retry may succeed. False for an unknown error."""
    if isinstance(error, FatalError):
        return False
    if isinstance(error, _TRANSIENT_TYPES):
        return True
    if isinstance(error, OSError):
        return error.errno in _TRANSIENT_ERRNOS
    if isinstance(error, RuntimeError) and _is_gpu_failure(first_line(error)):
        return True
    return any(
        isinstance(error, getattr(sys.modules[library], name))
        for library, names in _TRANSIENT_NAMES.items()
        if library in sys.modules
        for name in names
    )


def _is_gpu_failure(text: str) -> bool:
    """Whether PyTorch's message is about a failed GPU, such as an uncorrectable memory error.

    PyTorch has no common type for these errors.
    """
    return bool(_GPU_FAILURE.search(text)) and not _CALLER_MISTAKE.search(text)


def first_line(error: BaseException) -> str:
    """Returns the line that says what failed, without the advice that PyTorch adds below it.

    The advice mentions device-side assertions after every failure of CUDA, whatever the cause.
    """
    return str(error).partition("\n")[0] or type(error).__name__


def message_of(error: BaseException) -> str:
    """The error's text, for the job's owner."""
    text = str(error).strip()
    if isinstance(error, FatalError | TransientError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
