"""Decides which failures to retry, how long to pause, and which error to raise in the end."""

import json
import random
import re
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from time import monotonic
from typing import Any

import httpx2

from .errors import ForgeAPIError, ForgeError, ForgeHTTPError, WaitTimeoutError, error_type
from .request import Request

_TRANSIENT_STATUS = {408, 429, 500, 502, 503, 504}
_NOT_HANDLED_STATUS = {408, 429, 503}
"""Status codes that mean that the request had no effect."""
_FIRST_PAUSE_S = 0.25
_LONGEST_PAUSE_S = 8.0
_SHORTEST_TRY_S = 1.0
_MAX_RETRY_AFTER_S = 60.0
"""The longest pause that a response can request by Retry-After. If a response requests more, a
policy without `at_least_s` gives up, and a policy with `at_least_s` pauses for this maximum."""


def parse_json(content: bytes | str) -> object:
    """Parses JSON. Returns None if the content is not JSON."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


class TransientFailure(Exception):
    """A failure that a retry may fix. `final`: the error to raise if there is no retry."""

    def __init__(self, final: ForgeError, retry_after_s: float | None = None) -> None:
        super().__init__(str(final))
        self.final = final
        self.retry_after_s = retry_after_s


class Deadline:
    """The deadline of a wait for a job or pipeline."""

    def __init__(self, thing_id: str, poll_interval: float, timeout: float | None) -> None:
        if not poll_interval > 0:
            raise ForgeError("poll_interval must be more than 0")
        if timeout is not None and not timeout >= 0:
            raise ForgeError("timeout must not be negative")
        self._thing_id = thing_id
        self._poll_interval = poll_interval
        self._timeout = timeout
        self._end_s = None if timeout is None else monotonic() + timeout
        self._status = "not known to have ended"

    def left_s(self) -> float:
        return float("inf") if self._end_s is None else self._end_s - monotonic()

    def check(self, status: str | None = None) -> None:
        """Records the status of the last poll. Raises WaitTimeoutError after the deadline."""
        self._status = status or self._status
        if self.left_s() <= 0:
            raise WaitTimeoutError(
                f"{self._thing_id} is {self._status} after {self._timeout:g} s; it goes on"
            )

    def pause_s(self, spent_s: float = 0.0) -> float:
        """Returns the pause before the next poll. `spent_s`: time since the last poll."""
        return max(0.0, min(self._poll_interval - spent_s, self.left_s()))


class RetryPolicy:
    """Counts consecutive failures.

    Gives up after `max_retries` retries, but not before `at_least_s` seconds have passed since the
    first failure. If there is a deadline, raises WaitTimeoutError after the deadline.
    """

    def __init__(
        self, max_retries: int, at_least_s: float = 0.0, deadline: Deadline | None = None
    ) -> None:
        self._max_retries = max_retries
        self._at_least_s = at_least_s
        self._deadline = deadline
        self._failures = 0
        self._since_s: float | None = None

    def reset(self) -> None:
        self._failures = 0
        self._since_s = None

    def pause_s(self, failure: TransientFailure) -> float:
        """Returns the pause before the next try. If no try is left, raises the final error."""
        if self._deadline:
            self._deadline.check()
        now_s = monotonic()
        if self._since_s is None:
            self._since_s = now_s
        retry_after_s = failure.retry_after_s or 0.0
        is_over = now_s - self._since_s >= self._at_least_s
        is_too_long = retry_after_s > _MAX_RETRY_AFTER_S and self._at_least_s == 0
        if (self._failures >= self._max_retries and is_over) or is_too_long:
            raise failure.final from failure.__cause__
        retry_after_s = min(retry_after_s, _MAX_RETRY_AFTER_S)
        pause_s = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2.0 ** min(self._failures, 10))
        self._failures += 1
        # Jitter: clients that were refused at the same time should not all retry at the same time.
        # A longer Retry-After applies without jitter.
        pause_s = max(retry_after_s, pause_s * random.uniform(0.5, 1.0))
        return min(pause_s, max(0.0, self._deadline.left_s())) if self._deadline else pause_s

    def try_s(self) -> float | None:
        """Time limit of one try: until the deadline, but at least 1 s. None without a deadline."""
        if self._deadline is None or self._deadline.left_s() == float("inf"):
            return None
        return max(_SHORTEST_TRY_S, self._deadline.left_s())


def failure_of(request: Request[Any], response: httpx2.Response) -> Exception:
    """The error for a failed response. The caller must have read the response's body."""
    path, status = request.path, response.status_code
    if response.is_redirect:
        # A redirect must not send the key to another server.
        return ForgeHTTPError(f"{path}: HTTP {status}: redirects are not followed", status)
    refusal = _refusal(response)
    final = refusal if refusal and status < 500 else _unusable_answer(path, status, refusal)
    is_in_flight = refusal and (status, refusal.code) == (409, "request_in_flight")
    may_pass = status in _TRANSIENT_STATUS or status > 504
    if is_in_flight or (may_pass and (request.is_repeatable or status in _NOT_HANDLED_STATUS)):
        return TransientFailure(final, _retry_after_s(response))
    return final


def _unusable_answer(path: str, status: int, refusal: ForgeAPIError | None) -> ForgeHTTPError:
    if refusal:
        return ForgeHTTPError(f"{path}: {refusal}", status, refusal.code, refusal.request_id)
    return ForgeHTTPError(f"{path}: HTTP {status}, and the response is not from Forge", status)


def _refusal(response: httpx2.Response) -> ForgeAPIError | None:
    """Returns the API's error. None if the response is not from the API."""
    answer = parse_json(response.content)
    error = answer.get("error") if isinstance(answer, dict) else None
    if not isinstance(error, dict) or not isinstance(error.get("code"), str):
        return None
    details = error.get("details")
    return error_type(response.status_code)(
        response.status_code,
        error["code"],
        str(error.get("message", "refused")),
        _text(error.get("param")),
        _text(error.get("request_id")) or response.headers.get("x-request-id"),
        details if isinstance(details, dict) else None,
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _retry_after_s(response: httpx2.Response) -> float | None:
    """Parses Retry-After (seconds or a date). Returns None if it is missing or invalid."""
    value = response.headers.get("retry-after", "").strip()
    if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", value):
        return float(value)
    try:
        when = parsedate_to_datetime(value)
    except (TypeError, ValueError):  # Python 3.10 may raise either one
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=timezone.utc)
    return max(0.0, (when - datetime.now(timezone.utc)).total_seconds())
