"""What a submission may carry beside its payload."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from typing_extensions import TypedDict

from .request import Json, without_none


class Resources(TypedDict, total=False):
    """What a worker must have."""

    gpu: int
    gpu_type: str
    memory_gb: int
    """Of one GPU."""
    tags: Sequence[str]


class SubmissionOptions(TypedDict, total=False):
    """Keyword arguments that each submission takes."""

    resources: Resources | Mapping[str, Any] | None
    priority: int | None
    """From -100 to 100."""
    tags: Sequence[str] | None
    """Labels to find it by."""
    params: Mapping[str, Any] | None
    """Handed to the worker as they are, e.g. `{"lr": 1e-4}`."""
    notes: str | None
    timeout_s: int | None
    """Of one attempt."""
    max_attempts: int | None
    idempotency_key: str | None
    """The same key and submission again: the first one's answer, and no second job."""


def body_of(payload: Mapping[str, Any], options: SubmissionOptions) -> Json:
    """What was given of both. Raises TypeError for an option that is none."""
    unknown = options.keys() - SubmissionOptions.__annotations__.keys()
    if unknown:
        raise TypeError(f"unexpected keyword argument {min(unknown)!r}")
    fields = {name: value for name, value in options.items() if name != "idempotency_key"}
    tags = fields.get("tags")
    if isinstance(tags, str):
        raise TypeError("tags is a list of texts, not a text")
    return without_none({**payload, **fields})
