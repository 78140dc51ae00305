"""The service itself."""

from __future__ import annotations

from typing import Any

from ..models import Identity, Limit, Readiness
from ..operation import M, Resource, operation
from ..request import Request, get


class Service(Resource[M]):
    """`client.service`."""

    @operation
    def ping(self) -> Request[Identity]:
        """Whether the key is good, and whose it is."""
        return get("/api/auth/ping", Identity.model_validate)

    @operation
    def limits(self, *, user_id: str | None = None) -> Request[list[Limit]]:
        """What your tenant may have and do, and how much of it there is. An admin may name one."""
        return get(
            "/api/limits",
            lambda answer: [Limit.model_validate(each) for each in answer.get("limits", [])],
            user_id=user_id,
        )

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
