"""All that this package raises about Forge is a ForgeError."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .models import BaseJob, Pipeline


class ForgeError(Exception):
    """Base of the rest; itself for what is wrong on this side, e.g. a missing key."""

    def __reduce__(self) -> tuple[Any, ...]:
        # By its attributes: exceptions that cross processes are otherwise made by their message.
        return _revive, (type(self), self.args, self.__dict__)


def _revive(kind: type[ForgeError], args: tuple[Any, ...], state: dict[str, Any]) -> ForgeError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class ForgeHTTPError(ForgeError):
    """There was no usable answer: connection, TLS, time-out, not JSON, 5xx after all retries.

    `status` and `code` are set where there was an answer, and where it was Forge's.
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
    """The API answered with an error. `code` is a stable word, `param` the field that is wrong."""

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

    @staticmethod
    def of(
        status: int,
        code: str,
        message: str,
        param: str | None = None,
        request_id: str | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> ForgeAPIError:
        """Of the class of its status."""
        kind = _BY_STATUS.get(status, ForgeAPIError)
        return kind(status, code, message, param, request_id, details)


class BadRequestError(ForgeAPIError):
    """400: a field is wrong (`param`)."""


class AuthenticationError(ForgeAPIError):
    """401: of a proxy in between; Forge itself answers 403 to a wrong key."""


class PaymentRequiredError(ForgeAPIError):
    """402: the budget is used up; `details` has the numbers."""


class PermissionDeniedError(ForgeAPIError):
    """403: the key is wrong, or its scope doesn't cover this."""


class NotFoundError(ForgeAPIError):
    """404: it never was, or is another tenant's."""


class MethodNotAllowedError(ForgeAPIError):
    """405."""


class RequestTimeoutError(ForgeAPIError):
    """408: the request did not arrive in time, also when it was sent again."""


class ConflictError(ForgeAPIError):
    """409: not in the state that it is in; `code` says which."""


class GoneError(ForgeAPIError):
    """410: the artifact was deleted."""


class PayloadTooLargeError(ForgeAPIError):
    """413."""


class UnsupportedMediaTypeError(ForgeAPIError):
    """415."""


class RangeNotSatisfiableError(ForgeAPIError):
    """416."""


class UnprocessableEntityError(ForgeAPIError):
    """422: e.g. an idempotency key that was used for another request."""


class RateLimitError(ForgeAPIError):
    """429, also after all retries."""


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


class JobFailedError(ForgeError):
    """A job that was waited for has failed. The message is the worker's."""

    def __init__(self, job: BaseJob) -> None:
        super().__init__(job.error or f"{job.job_id} has failed")
        self.job = job


class PipelineFailedError(ForgeError):
    """A pipeline that was waited for has failed, or was cancelled."""

    def __init__(self, pipeline: Pipeline) -> None:
        super().__init__(pipeline.error or f"{pipeline.pipeline_id} is {pipeline.status}")
        self.pipeline = pipeline


class WaitTimeoutError(ForgeError, TimeoutError):
    """The time given to a wait is over. What was waited for goes on."""


class IntegrityError(ForgeError):
    """The bytes that arrived are not those that the manifest names."""


class UnsafePathError(ForgeError):
    """The path of a file that must not be written to, or read from, a disk."""
