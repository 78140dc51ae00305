"""Your key and limits, and the state of the service."""

from __future__ import annotations

from typing import Any

from ..models import Identity, Limit, Readiness
from ..operation import M, Resource, operation
from ..request import Request, get, get_list


class Service(Resource[M]):
    """`client.service`."""

    @operation
    def ping(self) -> Request[Identity]:
        """Checks the key and reads its owner."""
        return get("/api/auth/ping", Identity)

    @operation
    def limits(self, *, user_id: str | None = None) -> Request[list[Limit]]:
        """Reads your tenant's limits and their usage. Admins can choose the tenant."""
        return get_list("/api/limits", "limits", Limit, user_id=user_id)

    @operation
    def is_alive(self) -> Request[bool]:
        """Whether the server responds. Needs no key."""
        return get("/healthz", lambda answer: answer.get("ok") is True)

    @operation
    def is_ready(self) -> Request[Readiness]:
        """Reads the server's readiness. Raises ForgeHTTPError if the server is not ready."""
        return get("/readyz", Readiness)

    @operation
    def openapi(self) -> Request[dict[str, Any]]:
        """Reads the API's OpenAPI document."""
        return get("/openapi.json", dict)
