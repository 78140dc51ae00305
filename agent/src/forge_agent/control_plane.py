"""HTTP client of the control plane: one method per endpoint. Classifies all failures."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx2

from . import __version__
from .lease import LeaseProof, Unavailable

_RETRYABLE_STATUS = {408, 425, 429, 500, 502, 503, 504}
_TIMEOUT_S = 10.0
_DELAYED_TIMEOUT_S = 30.0
"""Time-out of registrations and results. A busy control plane delays them, and results may be
large."""
TRANSFER_TIMEOUT_S = 60.0
"""How long a transfer may make no progress."""


class ControlPlaneUnavailable(Unavailable):
    """The control plane gave no usable response. The same request may be retried."""


class Refused(Exception):
    """The control plane refused the request. A retry can't succeed."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(f"{message} ({status} {code})")
        self.status = status
        self.code = code


class NotRegistered(Refused):
    """The control plane does not know this worker: register again."""


class KeyRefused(Refused):
    """The API key is invalid or revoked. The agent can't continue."""


class StaleAttempt(Refused):
    """The job no longer belongs to this worker. The control plane refuses the worker's result."""


_KINDS: dict[str, type[Refused]] = {
    "worker_not_registered": NotRegistered,
    "invalid_api_key": KeyRefused,
    "stale_attempt": StaleAttempt,
}


@dataclass(frozen=True)
class Registration:
    worker_id: str
    heartbeat_interval_s: float


@dataclass(frozen=True)
class LogLength:
    length: int
    cancelled: bool


class ControlPlane:
    """Sends the agent's requests. Thread-safe."""

    def __init__(self, api_url: str, api_key: str) -> None:
        self._client = httpx2.Client(
            base_url=api_url,
            headers={"User-Agent": f"forge-agent/{__version__}"},
            timeout=httpx2.Timeout(_TIMEOUT_S),
        )
        self._key = {"X-Service-Api-Key": api_key}

    def close(self) -> None:
        self._client.close()

    def register(self, registration: dict[str, Any]) -> Registration:
        answer = self._post("/api/workers/register", registration, timeout_s=_DELAYED_TIMEOUT_S)
        return Registration(
            worker_id=str(answer["worker_id"]),
            heartbeat_interval_s=float(answer["heartbeat_interval_s"]),
        )

    def heartbeat(self, payload: dict[str, Any]) -> list[dict[str, Any]]:
        """Sends a heartbeat. Returns the commands in the response."""
        return _commands_of(self._post("/api/workers/heartbeat", payload))

    def next_job(
        self, worker_id: str, wait_s: float, lease_token: str
    ) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
        """Long-polls for up to `wait_s` seconds. Returns a job or None, and a list of commands.

        `lease_token`: a new secret. The control plane refuses requests about the job without it.
        """
        body = {"worker_id": worker_id, "wait_seconds": wait_s, "lease_token": lease_token}
        job = self._post("/api/workers/next_job", body, timeout_s=wait_s + 15)
        return (job if job.get("job_id") else None), _commands_of(job)

    def job_result(self, result: dict[str, Any]) -> None:
        self._post("/api/workers/job_result", result, timeout_s=_DELAYED_TIMEOUT_S)

    def append_log(self, url: str, proof: LeaseProof, offset: int, data: bytes) -> LogLength:
        """Sends the bytes of a log from an offset on. Returns the length of the stored log.

        If the stored log is shorter than the offset, the control plane has lost bytes: send the log
        again from that length on.
        """
        headers = {
            "Content-Type": "text/plain",
            "Content-Range": f"bytes {offset}-{offset + len(data) - 1}/*",
        }
        response = self._send("PATCH", url, proof, headers, data)
        if response.status_code == 416:
            there = re.fullmatch(r"bytes=0-(\d+)", response.headers.get("range", ""))
            return LogLength(int(there[1]) + 1 if there else 0, cancelled=False)
        answer = self._read(url, response)
        return LogLength(int(answer["length"]), bool(answer.get("cancelled")))

    def put(
        self,
        url: str,
        proof: LeaseProof,
        headers: Mapping[str, str],
        body: bytes = b"",
        timeout_s: float = TRANSFER_TIMEOUT_S,
    ) -> dict[str, Any]:
        """Uploads a file or a part of one. Returns the response's body."""
        sent = {"Content-Type": "application/octet-stream", **headers}
        return self._read(url, self._send("PUT", url, proof, sent, body, timeout_s))

    def put_elsewhere(
        self, url: str, headers: Mapping[str, str], body: Iterator[bytes], timeout_s: float
    ) -> None:
        """Uploads a file to a presigned URL, without the API key."""
        with _connection_to(url):
            response = self._client.put(url, content=body, headers=dict(headers), timeout=timeout_s)
        if not response.is_success:
            raise ControlPlaneUnavailable(f"{_without_query(url)}: HTTP {response.status_code}")

    @contextmanager
    def get(self, url: str, proof: LeaseProof, offset: int) -> Iterator[httpx2.Response]:
        """Downloads from an offset on. Does not send the API key to an absolute (presigned) URL."""
        headers = {"Range": f"bytes={offset}-"} if offset else {}
        options = self._addressed(url, proof, headers)
        with (
            _connection_to(url),
            self._client.stream("GET", url, timeout=TRANSFER_TIMEOUT_S, **options) as response,
        ):
            if response.status_code not in (200, 206, 416):
                response.read()
                self._read(url, response)
            yield response

    def _send(
        self,
        method: str,
        url: str,
        proof: LeaseProof,
        headers: Mapping[str, str],
        body: bytes,
        timeout_s: float = TRANSFER_TIMEOUT_S,
    ) -> httpx2.Response:
        with _connection_to(url):
            return self._client.request(
                method, url, content=body, timeout=timeout_s, **self._addressed(url, proof, headers)
            )

    def _addressed(self, url: str, proof: LeaseProof, headers: Mapping[str, str]) -> dict[str, Any]:
        if "://" in url:  # presigned: the URL contains its credentials
            return {"headers": dict(headers)}
        return {"headers": {**self._key, **proof.headers, **headers}, "params": proof.query}

    def _post(
        self, path: str, body: dict[str, Any], timeout_s: float = _TIMEOUT_S
    ) -> dict[str, Any]:
        with _connection_to(path):
            response = self._client.post(path, json=body, headers=self._key, timeout=timeout_s)
        return self._read(path, response)

    def _read(self, url: str, response: httpx2.Response) -> dict[str, Any]:
        where = _without_query(url)
        if response.status_code in _RETRYABLE_STATUS:
            raise ControlPlaneUnavailable(f"{where}: HTTP {response.status_code}")
        try:
            answer = response.json()
        except ValueError as error:
            raise ControlPlaneUnavailable(f"{where}: the response is not JSON") from error
        if response.is_success and isinstance(answer, dict):
            return answer
        raise _refusal(response.status_code, answer)


@contextmanager
def _connection_to(url: str) -> Iterator[None]:
    """Raises ControlPlaneUnavailable if the connection fails."""
    try:
        yield
    except httpx2.RequestError as error:
        message = f"{_without_query(url)}: {type(error).__name__}: {error}"
        raise ControlPlaneUnavailable(message) from error


def _without_query(url: str) -> str:
    """Makes a URL safe for logs: the query of a presigned URL contains its signature."""
    return url.partition("?")[0]


def _commands_of(answer: dict[str, Any]) -> list[dict[str, Any]]:
    return [command for command in answer.get("commands", []) if isinstance(command, dict)]


def _refusal(status: int, answer: Any) -> Refused:  # noqa: ANN401 - any JSON value
    error = answer.get("error") if isinstance(answer, dict) else None
    details = error if isinstance(error, dict) else {}
    code = str(details.get("code", "unknown"))
    return _KINDS.get(code, Refused)(status, code, str(details.get("message", "refused")))
