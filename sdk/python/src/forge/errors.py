"""The errors of this package. All are subclasses of ForgeError."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .models import BaseJob, Pipeline


class ForgeError(Exception):
    """Base class. Raised directly for errors of the caller, such as a missing key."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickles all attributes. By default, unpickling calls the class with the message only.
        return _revive, (type(self), self.args, self.__dict__)


def _revive(kind: type[ForgeError], args: tuple[Any, ...], state: dict[str, Any]) -> ForgeError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class ForgeHTTPError(ForgeError):
    """No usable response: connection or TLS error, time-out, no JSON, or 5xx after all retries.

    `status` is set if there was a response, `code` if the response was from Forge.
    """

    def __init__(
        self,
        message: str,
        status: int | None = None,
        code: str | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.request_id = request_id


class ForgeAPIError(ForgeError):
    """The API returned an error. `code` is stable; `param` names the invalid field."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        param: str | None = None,
        request_id: str | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        request = f", request {request_id}" if request_id else ""
        super().__init__(f"{code}: {message} (HTTP {status}{request})")
        self.status = status
        self.code = code
        self.message = message
        self.param = param
        self.request_id = request_id
        self.details = dict(details or {})


class BadRequestError(ForgeAPIError):
    """400: a field is invalid (`param`)."""


class AuthenticationError(ForgeAPIError):
    """401: from a proxy. Forge itself returns 403 for an invalid key."""


class PaymentRequiredError(ForgeAPIError):
    """402: the budget is used up; `details` has the numbers."""


class PermissionDeniedError(ForgeAPIError):
    """403: the key is invalid, or its scope does not allow the request."""


class NotFoundError(ForgeAPIError):
    """404: the object does not exist, or belongs to another tenant."""


class MethodNotAllowedError(ForgeAPIError):
    """405: the path does not support the HTTP method."""


class RequestTimeoutError(ForgeAPIError):
    """408: the request did not arrive in time, even after retries."""


class ConflictError(ForgeAPIError):
    """409: not possible in the current state. `code` has the reason."""


class GoneError(ForgeAPIError):
    """410: the artifact was deleted."""


class PayloadTooLargeError(ForgeAPIError):
    """413: the request body is too large."""


class UnsupportedMediaTypeError(ForgeAPIError):
    """415: the API does not accept this type of request body."""


class RangeNotSatisfiableError(ForgeAPIError):
    """416: the requested byte range does not exist."""


class UnprocessableEntityError(ForgeAPIError):
    """422: e.g. an idempotency key that was used for another request."""


class RateLimitError(ForgeAPIError):
    """429, after all retries."""


_BY_STATUS: dict[int, type[ForgeAPIError]] = {
    400: BadRequestError,
    401: AuthenticationError,
    402: PaymentRequiredError,
    403: PermissionDeniedError,
    404: NotFoundError,
    405: MethodNotAllowedError,
    408: RequestTimeoutError,
    409: ConflictError,
    410: GoneError,
    413: PayloadTooLargeError,
    415: UnsupportedMediaTypeError,
    416: RangeNotSatisfiableError,
    422: UnprocessableEntityError,
    429: RateLimitError,
}


def error_type(status: int) -> type[ForgeAPIError]:
    """Returns the subclass of ForgeAPIError for a status code. Default: ForgeAPIError."""
    return _BY_STATUS.get(status, ForgeAPIError)


class JobFailedError(ForgeError):
    """The awaited job has failed. The message is the job's error, from the worker or Forge."""

    def __init__(self, job: BaseJob) -> None:
        super().__init__(job.error or f"{job.job_id} has failed")
        self.job = job


class PipelineFailedError(ForgeError):
    """The awaited pipeline has failed, or was cancelled."""

    def __init__(self, pipeline: Pipeline) -> None:
        super().__init__(pipeline.error or f"{pipeline.pipeline_id} is {pipeline.status}")
        self.pipeline = pipeline


class WaitTimeoutError(ForgeError, TimeoutError):
    """The wait has timed out. The job or pipeline continues."""


class IntegrityError(ForgeError):
    """The received bytes do not match the manifest."""


class UnsafePathError(ForgeError):
    """The path of a file is unsafe to read or write on a disk."""
