"""The control plane over HTTP: one method an endpoint; the one place that classifies failures."""

from dataclasses import dataclass
from typing import Any

import httpx2

from . import __version__
from .config import AgentConfig

_RETRYABLE_STATUS = {408, 425, 429, 500, 502, 503, 504}


class ControlPlaneAway(Exception):
    """No usable answer; the same request may be sent again."""


class Refused(Exception):
    """The control plane answered that it won't; sending the same again is of no use."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(f"{message} ({status} {code})")
        self.status = status
        self.code = code


class NotRegistered(Refused):
    """The control plane does not know this worker (any more): register again."""


class KeyRefused(Refused):
    """The key opens nothing (any more): there is nothing left to do here."""


_KINDS: dict[str, type[Refused]] = {
    "worker_not_registered": NotRegistered,
    "invalid_api_key": KeyRefused,
}


@dataclass(frozen=True)
class Registration:
    worker_id: str
    heartbeat_interval_s: float


class ControlPlane:
    """Safe to use from the heartbeat thread and the job loop at once."""

    def __init__(self, config: AgentConfig) -> None:
        self._worker_id = config.worker_id
        self._client = httpx2.Client(
            base_url=config.api_url,
            headers={
                "X-Service-Api-Key": config.api_key,
                "User-Agent": f"forge-agent/{__version__}",
            },
            timeout=httpx2.Timeout(10.0),
        )

    def close(self) -> None:
        self._client.close()

    def register(self, registration: dict[str, Any]) -> Registration:
        answer = self._post("/api/workers/register", registration)
        return Registration(
            worker_id=str(answer["worker_id"]),
            heartbeat_interval_s=float(answer["heartbeat_interval_s"]),
        )

    def heartbeat(self, beat: dict[str, Any]) -> list[dict[str, Any]]:
        """Sends a heartbeat; returns the commands that came back."""
        return _commands_of(self._post("/api/workers/heartbeat", beat))

    def next_job(self, wait_s: float) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
        """Asks for work, parked for up to `wait_s` seconds; a job, or commands, or neither."""
        body = {"worker_id": self._worker_id, "wait_seconds": wait_s}
        job = self._post("/api/workers/next_job", body, timeout_s=wait_s + 15)
        return (job if job.get("job_id") else None), _commands_of(job)

    def job_result(self, result: dict[str, Any]) -> None:
        self._post("/api/workers/job_result", result)

    def _post(self, path: str, body: dict[str, Any], timeout_s: float = 10.0) -> dict[str, Any]:
        try:
            response = self._client.post(path, json=body, timeout=timeout_s)
        except httpx2.TransportError as error:
            raise ControlPlaneAway(f"{path}: {type(error).__name__}: {error}") from error
        if response.status_code in _RETRYABLE_STATUS:
            raise ControlPlaneAway(f"{path}: HTTP {response.status_code}")
        try:
            answer = response.json()
        except ValueError as error:
            raise ControlPlaneAway(f"{path}: the answer is not JSON") from error
        if response.is_success and isinstance(answer, dict):
            return answer
        raise _refusal(response.status_code, answer)


def _commands_of(answer: dict[str, Any]) -> list[dict[str, Any]]:
    return [command for command in answer.get("commands", []) if isinstance(command, dict)]


def _refusal(status: int, answer: Any) -> Refused:  # noqa: ANN401 - whatever JSON came
    error = answer.get("error") if isinstance(answer, dict) else None
    details = error if isinstance(error, dict) else {}
    code = str(details.get("code", "unknown"))
    message = str(details.get("message", "refused"))
    return _KINDS.get(code, Refused)(status, code, message)
