"""Calls to an S3 bucket."""

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from .config import S3Config
from .lease import Unavailable

if TYPE_CHECKING:
    from obstore.store import S3Store

_T = TypeVar("_T")


def open_bucket(config: S3Config, bucket: str | None = None) -> "S3Store":
    from obstore.store import S3Store

    return S3Store(
        bucket or config.bucket,
        access_key_id=config.access_key_id,
        secret_access_key=config.secret_access_key,
        region=config.region or "us-east-1",
        endpoint=config.endpoint,
        client_options={"allow_http": True},
        retry_config={"max_retries": 2, "retry_timeout": timedelta(seconds=10)},
    )


def call_store(call: Callable[[], _T]) -> _T:
    """Raises Unavailable if the store can't be reached, OSError if it refuses the call."""
    from obstore.exceptions import BaseError, GenericError

    try:
        return call()
    except FileNotFoundError:
        raise
    except GenericError as error:
        raise Unavailable(f"the bucket can't be reached: {type(error).__name__}") from error
    except BaseError as error:
        raise OSError(f"the bucket refuses the request: {type(error).__name__}") from error
