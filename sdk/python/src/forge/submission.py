"""Options of a submission, in addition to its payload."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from typing_extensions import TypedDict

from .request import Json, without_none


class Resources(TypedDict, total=False):
    """Requirements for the worker."""

    gpu: int
    gpu_type: str
    memory_gb: int
    """Memory of one GPU, in GB."""
    tags: Sequence[str]


class SubmissionOptions(TypedDict, total=False):
    """Keyword arguments that each submission takes."""

    resources: Resources | Mapping[str, Any] | None
    priority: int | None
    """From -100 to 100."""
    tags: Sequence[str] | None
    """Labels to find the job by."""
    params: Mapping[str, Any] | None
    """Passed to the worker unchanged, e.g. `{"lr": 1e-4}`."""
    notes: str | None
    timeout_s: int | None
    """Time limit of one attempt, in seconds."""
    max_attempts: int | None
    idempotency_key: str | None
    """Repeating a submission with the same key returns the first response, without a second job."""


def body_of(payload: Mapping[str, Any], options: SubmissionOptions) -> Json:
    """Merges payload and options into a request body. Leaves out None and the idempotency key.

    Raises TypeError for an unknown option, and if `tags` is a string.
    """
    unknown = options.keys() - SubmissionOptions.__annotations__.keys()
    if unknown:
        raise TypeError(f"unexpected keyword argument {min(unknown)!r}")
    fields = {name: value for name, value in options.items() if name != "idempotency_key"}
    if isinstance(fields.get("tags"), str):
        raise TypeError("tags must be a list of strings, not a string")
    return without_none({**payload, **fields})
