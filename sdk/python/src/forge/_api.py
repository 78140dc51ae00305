"""The public names of the package `forge`."""

from . import models
from ._version import __version__
from .client import AsyncForge, Forge
from .errors import (
    AuthenticationError,
    BadRequestError,
    ConflictError,
    ForgeAPIError,
    ForgeError,
    ForgeHTTPError,
    GoneError,
    IntegrityError,
    JobFailedError,
    MethodNotAllowedError,
    NotFoundError,
    PayloadTooLargeError,
    PaymentRequiredError,
    PermissionDeniedError,
    PipelineFailedError,
    RangeNotSatisfiableError,
    RateLimitError,
    RequestTimeoutError,
    UnprocessableEntityError,
    UnsafePathError,
    UnsupportedMediaTypeError,
    WaitTimeoutError,
)
from .job import AsyncJob, Job
from .listing import AsyncListing, Listing, Page
from .models import Artifact, Dataset, Deployment, JobEvent, JobStatus, Pipeline, Worker
from .release import OutdatedClientWarning
from .submission import Resources

__all__ = [
    "Artifact",
    "AsyncForge",
    "AsyncJob",
    "AsyncListing",
    "AuthenticationError",
    "BadRequestError",
    "ConflictError",
    "Dataset",
    "Deployment",
    "Forge",
    "ForgeAPIError",
    "ForgeError",
    "ForgeHTTPError",
    "GoneError",
    "IntegrityError",
    "Job",
    "JobEvent",
    "JobFailedError",
    "JobStatus",
    "Listing",
    "MethodNotAllowedError",
    "NotFoundError",
    "OutdatedClientWarning",
    "Page",
    "PayloadTooLargeError",
    "PaymentRequiredError",
    "PermissionDeniedError",
    "Pipeline",
    "PipelineFailedError",
    "RangeNotSatisfiableError",
    "RateLimitError",
    "RequestTimeoutError",
    "Resources",
    "UnprocessableEntityError",
    "UnsafePathError",
    "UnsupportedMediaTypeError",
    "WaitTimeoutError",
    "Worker",
    "__version__",
    "models",
]
