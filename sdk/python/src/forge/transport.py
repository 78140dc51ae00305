"""Requests over HTTP, by blocking. `async_transport` is the same, by awaiting."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from time import sleep
from typing import Any, TypeVar

import httpx2

from .errors import ForgeAPIError, ForgeHTTPError
from .listing import Listing, PageRequest
from .request import Request
from .retries import Passing, Patience
from .wire import BEYOND, Wire, failure_of, log, range_headers, result_of, start_of

T = TypeVar("T")


class Transport:
    """Safe to use from several threads at once."""

    def __init__(self, wire: Wire, client: httpx2.Client | None = None) -> None:
        self.wire = wire
        self._client = client or httpx2.Client(**wire.client_options())

    def close(self) -> None:
        self._client.close()

    def with_wire(self, wire: Wire) -> "Transport":
        """Another way to use the same connections."""
        return Transport(wire, self._client)

    def run(self, request: Request[T], patience: Patience | None = None) -> T:
        """Raises ForgeHTTPError and ForgeAPIError."""
        patience = patience or self.wire.patience()
        request = self.wire.ready(request)
        is_again = False
        while True:
            try:
                return result_of(request, self._send(request, patience.try_s()))
            except Passing as passing:
                self.pause(patience.pause_s(passing), passing)
                is_again = True
            except ForgeAPIError as refusal:
                settled = request.settled
                if not settled or not is_again or refusal.code not in settled.codes:
                    raise
                found = self.run(settled.look)
                if not settled.is_ours(found):
                    raise
                return found

    def listing(self, pages: PageRequest[T]) -> Listing[T]:
        return Listing(self.run, pages)

    def _send(self, request: Request[Any], at_most_s: float | None) -> httpx2.Response:
        try:
            options = self.wire.send_options(request, at_most_s=at_most_s)
            return self._client.request(request.method, request.path, **options)
        except httpx2.RequestError as error:
            raise self.wire.failure_of_connection(request, error) from error

    @contextmanager
    def open(
        self, request: Request[Any], read_timeout_s: float | None = None
    ) -> Iterator[httpx2.Response]:
        """An answer to be read in pieces; tried once. Raises Passing too."""
        options = self.wire.send_options(request, read_timeout_s, at_most_s=read_timeout_s)
        try:
            with self._client.stream(request.method, request.path, **options) as response:
                if not response.is_success and response.status_code not in request.also:
                    response.read()
                    raise failure_of(request, response)
                yield response
        except httpx2.RequestError as error:
            raise self.wire.failure_of_connection(request, error) from error

    def stream(self, path: str) -> Generator[bytes, None, None]:
        """The bytes of a file that does not change; a broken connection is taken up where it broke.

        Raises ForgeHTTPError and ForgeAPIError.
        """
        patience = self.wire.patience()
        given = 0
        while True:
            also = {BEYOND} if given else set()
            headers = range_headers(given)
            request = Request("GET", path, lambda _: None, headers=headers, also=also)
            try:
                with self.open(request) as response:
                    if response.status_code == BEYOND:
                        return  # it broke off after the last byte
                    if start_of(response) > given:
                        raise ForgeHTTPError(f"{path}: the answer begins beyond what was asked for")
                    # Who does not know Range begins at the beginning.
                    skip = given - start_of(response)
                    for chunk in response.iter_bytes():
                        fresh = chunk[skip:] if skip else chunk
                        skip = max(0, skip - len(chunk))
                        if fresh:
                            given += len(fresh)
                            patience.renew()
                            yield fresh
                return
            except Passing as passing:
                self.pause(patience.pause_s(passing), passing)

    def read(self, path: str) -> bytes:
        """All bytes of a small file."""
        return b"".join(self.stream(path))

    def pause(self, seconds: float, passing: Passing | None = None) -> None:
        if passing:
            log.info("once more in %.1f s: %s", seconds, passing)
        sleep(seconds)
