"""What both transports do alike, without I/O: requests into HTTP, answers into results."""

import json
import logging
import platform
import secrets
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import httpx2
from pydantic import ValidationError

from ._version import __version__
from .errors import ForgeError, ForgeHTTPError
from .release import CLIENT_HEADER, heed_minimum
from .request import Request, query_items
from .retries import Deadline, Patience, failure_of_answer, failure_of_connection, parse_json
from .settings import Settings
from .upload import Upload

log = logging.getLogger("forge")

T = TypeVar("T")

BEYOND = 416
DEFAULT_TIMEOUT_S = 30.0
DEFAULT_MAX_RETRIES = 4
_CONNECT_TIMEOUT_S = 10.0
_NOBODY = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Trusts no certificate at all."""


@dataclass(frozen=True)
class Wire:
    """How to talk to one Forge."""

    settings: Settings
    timeout_s: float = DEFAULT_TIMEOUT_S
    """Of each step of a request: connecting, sending and receiving a piece."""
    max_retries: int = DEFAULT_MAX_RETRIES
    """In a row; a transfer that got further starts anew."""
    bearer: bool = False
    """The key goes into `Authorization: Bearer`, not `X-Service-Api-Key`."""

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
            # Who waits listens on a connection of his own; the server knows how many are too many.
            "limits": httpx2.Limits(max_connections=None, max_keepalive_connections=20),
            # Reading the machine's certificates takes longer than a request, and http needs none.
            "verify": _NOBODY if self.settings.base_url.startswith("http:") else True,
        }

    def _key_header(self) -> dict[str, str]:
        key = self.settings.api_key
        return {"Authorization": f"Bearer {key}"} if self.bearer else {"X-Service-Api-Key": key}

    def patience(self, at_least_s: float = 0.0, deadline: Deadline | None = None) -> Patience:
        return Patience(self.max_retries, at_least_s, deadline)

    def timeout(
        self, read_s: float | None = None, at_most_s: float | None = None
    ) -> httpx2.Timeout:
        most_s = float("inf") if at_most_s is None else at_most_s
        return httpx2.Timeout(
            min(self.timeout_s, most_s),
            connect=min(self.timeout_s, _CONNECT_TIMEOUT_S, most_s),
            read=min(read_s or self.timeout_s, most_s),
        )

    def ready(self, request: Request[T]) -> Request[T]:
        """As it is sent, each time: with the one key that keeps a creation from happening twice."""
        if not request.creates:
            return request
        key = request.idempotency_key or f"sdk-{secrets.token_hex(16)}"
        # What is no header's value would be refused by the HTTP library, in words of its own.
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

    def failure_of_connection(self, request: Request[Any], error: httpx2.RequestError) -> Exception:
        address = f"{self.settings.base_url}{request.path}"
        log.debug("%s %s: %s", request.method, request.path, type(error).__name__)
        return failure_of_connection(address, error, is_repeatable=request.is_repeatable)


def _json_of(body: object) -> bytes:
    """Raises ForgeError for what JSON can't say: NaN, a surrogate, a set."""
    try:
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return text.encode()
    except UnicodeEncodeError:
        raise ForgeError("this can't be sent as JSON: a text in it is not valid UTF-8") from None
    except (TypeError, ValueError, RecursionError) as error:
        raise ForgeError(f"this can't be sent as JSON: {error}") from None


def result_of(request: Request[T], response: httpx2.Response) -> T:
    """Raises ForgeHTTPError, ForgeAPIError, and Passing for what is worth another try."""
    log.debug("%s %s: HTTP %s", request.method, request.path, response.status_code)
    if not response.is_success and response.status_code not in request.also:
        raise failure_of(request, response)
    if request.is_whole:
        return request.parse(response)
    content = response.text if request.is_text else parse_json(response.content)
    if not isinstance(content, str if request.is_text else dict):
        raise ForgeHTTPError(
            f"{request.path}: the answer is not a JSON object", response.status_code
        )
    try:
        result = request.parse(content)
    except (KeyError, TypeError, AttributeError):
        raise ForgeHTTPError(
            f"{request.path}: the answer is not what it should be", response.status_code
        ) from None
    except ValidationError as error:
        # Not the error's own text: it quotes the answer, which may hold a key.
        fields = ", ".join(
            f"{'.'.join(map(str, each['loc'])) or 'it'}: {each['msg']}"
            for each in error.errors(include_input=False, include_url=False)[:3]
        )
        text = f"{request.path}: the answer is not what it should be: {fields}"
        raise ForgeHTTPError(text, response.status_code) from None
    heed_minimum(response.headers)
    return result


def failure_of(request: Request[Any], response: httpx2.Response) -> Exception:
    return failure_of_answer(request.path, response, is_repeatable=request.is_repeatable)


def start_of(response: httpx2.Response) -> int:
    """Of a partial answer, the offset of its first byte."""
    if response.status_code != 206:
        return 0
    unit, _, rest = response.headers.get("content-range", "").partition(" ")
    first = rest.partition("-")[0]
    if unit != "bytes" or not first.isascii() or not first.isdigit():
        raise ForgeHTTPError("a partial answer does not say which part it is")
    return int(first)


def range_headers(offset: int) -> Mapping[str, str]:
    # Compressed on the way, offsets would be those of something else.
    headers = {"Accept": "*/*", "Accept-Encoding": "identity"}
    return {**headers, "Range": f"bytes={offset}-"} if offset else headers
