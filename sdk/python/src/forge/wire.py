"""The shared part of both transports, without I/O: builds requests, parses responses."""

import json
import logging
import platform
import secrets
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import httpx2
from pydantic import ValidationError

from ._version import __version__
from .errors import ForgeError, ForgeHTTPError
from .release import CLIENT_HEADER, warn_if_outdated
from .request import Request, parsed, query_items
from .retry_policy import Deadline, RetryPolicy, TransientFailure, failure_of, parse_json
from .settings import Settings
from .upload import Upload

log = logging.getLogger("forge")

T = TypeVar("T")

DEFAULT_TIMEOUT_S = 30.0
DEFAULT_MAX_RETRIES = 4
_CONNECT_TIMEOUT_S = 10.0
_NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
_NO_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For plain http, which needs no certificates. Trusts no certificate."""


@dataclass(frozen=True)
class Wire:
    """The connection settings of a client."""

    settings: Settings
    timeout_s: float = DEFAULT_TIMEOUT_S
    """Time-out in seconds for connecting (at most 10), sending a chunk, and receiving a chunk."""
    max_retries: int = DEFAULT_MAX_RETRIES
    """Maximum consecutive retries. Progress of a transfer resets the count."""
    bearer: bool = False
    """Sends the key as `Authorization: Bearer` instead of `X-Service-Api-Key`."""

    def client_options(self) -> dict[str, Any]:
        return {
            "base_url": self.settings.base_url,
            "headers": {
                "Accept": "application/json",
                "User-Agent": f"forge-sdk-python/{__version__} Python/{platform.python_version()}",
                **CLIENT_HEADER,
                **self._key_header(),
            },
            "follow_redirects": False,
            # The number of connections is unlimited, because each wait needs its own connection.
            "limits": httpx2.Limits(max_connections=None, max_keepalive_connections=20),
            # Plain http needs no certificates, and loading them takes longer than a request.
            "verify": _NO_CERTIFICATES if self.settings.base_url.startswith("http:") else True,
        }

    def _key_header(self) -> dict[str, str]:
        key = self.settings.api_key
        return {"Authorization": f"Bearer {key}"} if self.bearer else {"X-Service-Api-Key": key}

    def retry_policy(
        self, at_least_s: float = 0.0, deadline: Deadline | None = None
    ) -> RetryPolicy:
        return RetryPolicy(self.max_retries, at_least_s, deadline)

    def timeout(
        self, read_s: float | None = None, at_most_s: float | None = None
    ) -> httpx2.Timeout:
        most_s = float("inf") if at_most_s is None else at_most_s
        return httpx2.Timeout(
            min(self.timeout_s, most_s),
            connect=min(self.timeout_s, _CONNECT_TIMEOUT_S, most_s),
            read=min(read_s or self.timeout_s, most_s),
        )

    def with_idempotency_key(self, request: Request[T]) -> Request[T]:
        """Adds the idempotency key, which stays the same for all retries."""
        if not request.creates:
            return request
        key = request.idempotency_key or f"sdk-{secrets.token_hex(16)}"
        # The HTTP library would refuse an invalid header value with a less clear message.
        if not key.isascii() or not key.isprintable() or len(key) > 255 or key != key.strip():
            raise ForgeError("idempotency_key must be up to 255 printable ASCII characters")
        headers = {**request.headers, "Idempotency-Key": key}
        return replace(request, headers=headers, idempotency_key=key)

    def send_options(
        self, request: Request[Any], read_s: float | None = None, at_most_s: float | None = None
    ) -> dict[str, Any]:
        options: dict[str, Any] = {
            "headers": dict(request.headers),
            "params": query_items(request.query),
            "timeout": self.timeout(read_s or request.read_timeout_s, at_most_s),
        }
        if isinstance(request.body, Upload):
            options["content"] = request.body.pieces()
        elif request.body is not None:
            options["content"] = _json_of(request.body)
            options["headers"].setdefault("Content-Type", "application/json")
        return options

    @contextmanager
    def connection(self, request: Request[Any]) -> Iterator[None]:
        """Converts errors of the HTTP library to ForgeHTTPError or TransientFailure."""
        try:
            yield
        except httpx2.RequestError as error:
            kind = type(error).__name__
            log.debug("%s %s: %s", request.method, request.path, kind)
            final = ForgeHTTPError(f"{self.settings.base_url}{request.path}: {kind}: {error}")
            may_retry = request.is_repeatable or isinstance(error, _NOT_SENT)
            raise (TransientFailure(final) if may_retry else final) from error


def _json_of(body: object) -> bytes:
    """Encodes as JSON. Raises ForgeError for values that JSON can't have: NaN, surrogates, sets."""
    try:
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return text.encode()
    except UnicodeEncodeError:
        raise ForgeError("the body can't be sent as JSON: a string is not valid UTF-8") from None
    except (TypeError, ValueError, RecursionError) as error:
        raise ForgeError(f"the body can't be sent as JSON: {error}") from None


def result_of(request: Request[T], response: httpx2.Response) -> T:
    """Returns the parsed result.

    Raises TransientFailure if a retry may help, otherwise ForgeHTTPError or ForgeAPIError.
    """
    log.debug("%s %s: HTTP %s", request.method, request.path, response.status_code)
    if not response.is_success and response.status_code not in request.other_statuses:
        raise failure_of(request, response)
    if request.is_whole:
        return parsed(request.parse, response)
    content = response.text if request.is_text else parse_json(response.content)
    if not isinstance(content, str if request.is_text else dict):
        raise ForgeHTTPError(
            f"{request.path}: the response is not a JSON object", response.status_code
        )
    try:
        result = parsed(request.parse, content)
    except (KeyError, TypeError, AttributeError):
        raise ForgeHTTPError(
            f"{request.path}: the response is invalid", response.status_code
        ) from None
    except ValidationError as error:
        # The message does not contain `str(error)`, because `str(error)` quotes the response,
        # which may contain a key.
        fields = ", ".join(
            f"{'.'.join(map(str, each['loc'])) or 'it'}: {each['msg']}"
            for each in error.errors(include_input=False, include_url=False)[:3]
        )
        text = f"{request.path}: the response is invalid: {fields}"
        raise ForgeHTTPError(text, response.status_code) from None
    warn_if_outdated(response.headers)
    return result


def start_of(response: httpx2.Response) -> int:
    """Returns the offset of the response's first byte: 0 if the response is not partial."""
    if response.status_code != 206:
        return 0
    unit, _, rest = response.headers.get("content-range", "").partition(" ")
    first = rest.partition("-")[0]
    if unit != "bytes" or not first.isascii() or not first.isdigit():
        raise ForgeHTTPError("a partial response has no valid Content-Range")
    return int(first)


def range_headers(offset: int) -> Mapping[str, str]:
    # Compression would change the offsets.
    headers = {"Accept": "*/*", "Accept-Encoding": "identity"}
    return {**headers, "Range": f"bytes={offset}-"} if offset else headers
