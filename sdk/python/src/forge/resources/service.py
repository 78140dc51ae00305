"""The service itself."""

from __future__ import annotations

from typing import Any

from ..models import Identity, Readiness
from ..operation import M, Resource, operation
from ..request import Request, get


class Service(Resource[M]):
    """`client.service`."""

    @operation
    def ping(self) -> Request[Identity]:
        """Whether the key is good, and whose it is."""
        return get("/api/auth/ping", Identity.model_validate)

    @operation
    def is_alive(self) -> Request[bool]:
        """Whether the server answers; no key is looked at."""
        return get("/healthz", lambda answer: answer.get("ok") is True)

    @operation
    def is_ready(self) -> Request[Readiness]:
        """Whether it can do its work. Raises ForgeHTTPError where it says that it can't."""
        return get("/readyz", Readiness.model_validate)

    @operation
    def openapi(self) -> Request[dict[str, Any]]:
        """The API, as an OpenAPI document."""
        return get("/openapi.json", dict)
