"""Blocking HTTP requests. `async_transport` is the asynchronous equivalent."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from time import sleep
from typing import Any, TypeVar

import httpx2

from .errors import ForgeAPIError, ForgeHTTPError
from .listing import Listing, PageRequest
from .request import Request
from .retry_policy import RetryPolicy, TransientFailure, failure_of
from .wire import Wire, log, range_headers, result_of, start_of

T = TypeVar("T")


class Transport:
    """Sends requests. Thread-safe."""

    def __init__(self, wire: Wire, client: httpx2.Client | None = None) -> None:
        self.wire = wire
        self._client = client or httpx2.Client(**wire.client_options())

    def close(self) -> None:
        self._client.close()

    def with_wire(self, wire: Wire) -> "Transport":
        """Returns a transport with other settings that uses the same connections."""
        return Transport(wire, self._client)

    def run(self, request: Request[T], retry_policy: RetryPolicy | None = None) -> T:
        """Sends a request, with retries. Raises ForgeHTTPError and ForgeAPIError."""
        retry_policy = retry_policy or self.wire.retry_policy()
        request = self.wire.with_idempotency_key(request)
        is_again = False
        while True:
            try:
                return result_of(request, self._send(request, retry_policy.try_s()))
            except TransientFailure as failure:
                self.pause(retry_policy.pause_s(failure), failure)
                is_again = True
            except ForgeAPIError as refusal:
                applied_check = request.applied_check
                if not applied_check or not is_again or refusal.code not in applied_check.codes:
                    raise
                found = self.run(applied_check.state_request)
                if not applied_check.is_ours(found):
                    raise
                return found

    def listing(self, pages: PageRequest[T]) -> Listing[T]:
        return Listing(self.run, pages)

    def _send(self, request: Request[Any], at_most_s: float | None) -> httpx2.Response:
        with self.wire.connection(request):
            options = self.wire.send_options(request, at_most_s=at_most_s)
            return self._client.request(request.method, request.path, **options)

    @contextmanager
    def open(
        self, request: Request[Any], read_timeout_s: float | None = None
    ) -> Iterator[httpx2.Response]:
        """Opens a response for streaming. Does not retry: may raise TransientFailure."""
        options = self.wire.send_options(request, read_timeout_s, at_most_s=read_timeout_s)
        with (
            self.wire.connection(request),
            self._client.stream(request.method, request.path, **options) as response,
        ):
            if not response.is_success and response.status_code not in request.other_statuses:
                response.read()
                raise failure_of(request, response)
            yield response

    def stream(self, path: str) -> Generator[bytes, None, None]:
        """Yields the bytes of an immutable file. Resumes after a lost connection.

        Raises ForgeHTTPError and ForgeAPIError.
        """
        retry_policy = self.wire.retry_policy()
        given = 0
        while True:
            request = Request(
                "GET",
                path,
                lambda _: None,
                headers=range_headers(given),
                other_statuses={HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE} if given else set(),
            )
            try:
                with self.open(request) as response:
                    if response.status_code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                        return  # all bytes had arrived when the connection was lost
                    if start_of(response) > given:
                        raise ForgeHTTPError(
                            f"{path}: the response starts after the requested offset"
                        )
                    # A server without Range support starts at the beginning. Skip the bytes that
                    # were already yielded.
                    skip = given - start_of(response)
                    for chunk in response.iter_bytes():
                        fresh = chunk[skip:] if skip else chunk
                        skip = max(0, skip - len(chunk))
                        if fresh:
                            given += len(fresh)
                            retry_policy.reset()
                            yield fresh
                return
            except TransientFailure as failure:
                self.pause(retry_policy.pause_s(failure), failure)

    def pause(self, seconds: float, failure: TransientFailure | None = None) -> None:
        if failure:
            log.info("retrying in %.1f s: %s", seconds, failure)
        sleep(seconds)
