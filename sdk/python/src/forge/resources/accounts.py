"""Keys. For admins: users and rate cards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from ..listing import PageRequest
from ..models import ApiKey, NewApiKey, NewUser, RateCard, RateCardAssignment, RevokedApiKey, User
from ..operation import M, Resource, listing, operation
from ..request import Request, create, path_of, time_text, without_none


class ApiKeys(Resource[M]):
    """`client.api_keys`."""

    @operation
    def create(
        self,
        name: str | None = None,
        *,
        scope: str | None = None,
        expires_at: datetime | str | None = None,
        workers: int | None = None,
        serving_hosts: Sequence[str] | None = None,
        idempotency_key: str | None = None,
    ) -> Request[NewApiKey]:
        """Creates a key. `scope` is `user` or `worker`. Admins can also create `admin` keys.

        `workers` limits how many workers a `worker` key can register. A key with this limit can act
        only for the workers that it has registered. `serving_hosts` (requires `workers`): hosts
        that may serve these workers' models, besides the workers' own addresses.

        The key's secret value, `key`, is returned only once. If the response is lost, the request
        is not retried: find the new key with `list`, and revoke it.
        """
        body = {
            "name": name,
            "scope": scope,
            "expires_at": time_text(expires_at),
            "workers": workers,
            "serving_hosts": None if serving_hosts is None else [*serving_hosts],
        }
        request = create("/api/auth/api-keys", NewApiKey, body, idempotency_key)
        return replace(request, is_repeatable=False)

    @operation
    def create_session(self, *, idempotency_key: str | None = None) -> Request[NewApiKey]:
        """Exchanges this client's key for a session.

        A session is a new key with the scope and name of this client's key. The session is valid
        for 12 hours, or until this client's key expires or is revoked. Pass the session's `key` to
        another client, and end the session with `revoke`. As with any new key, `key` is returned
        only once.
        """
        request = create("/api/auth/sessions", NewApiKey, {}, idempotency_key)
        return replace(request, is_repeatable=False)

    @listing
    def list(
        self,
        *,
        user_id: str | None = None,
        sessions: bool | None = None,
        limit: int | None = None,
        page_size: int | None = None,
    ) -> PageRequest[ApiKey]:
        """Lists keys, newest first, without their secret values. `limit`: maximum number in total.

        With `sessions`, lists sessions instead.
        """
        query = {"user_id": user_id, "sessions": sessions}
        return PageRequest("/api/auth/api-keys", "api_keys", ApiKey, query, limit, page_size)

    @operation
    def revoke(self, key_id: str) -> Request[RevokedApiKey]:
        """Revokes a key immediately."""
        return Request("DELETE", path_of("/api/auth/api-keys/{}", key_id), RevokedApiKey)


class Users(Resource[M]):
    """`client.users`, for admins."""

    @operation
    def create(
        self, name: str, *, user_id: str | None = None, idempotency_key: str | None = None
    ) -> Request[NewUser]:
        """Creates a tenant with its first key. The key's secret value is returned only once."""
        body = {"name": name, "user_id": user_id}
        request = create("/api/admin/users", NewUser, body, idempotency_key)
        return replace(request, is_repeatable=False)

    @listing
    def list(self, *, limit: int | None = None, page_size: int | None = None) -> PageRequest[User]:
        """Lists tenants, newest first. `limit`: maximum number in total."""
        return PageRequest("/api/admin/users", "users", User, {}, limit, page_size)

    @operation
    def set_payment_customer(self, user_id: str, payment_customer_id: str | None) -> Request[User]:
        """Sets the tenant's customer id at the payment processor. None removes the id."""
        path = path_of("/api/admin/users/{}/payment-customer", user_id)
        return Request("PUT", path, User, body={"payment_customer_id": payment_customer_id})

    @operation
    def set_rate_card(
        self, user_id: str, rate_card: str, *, effective_from: datetime | str | None = None
    ) -> Request[RateCardAssignment]:
        """Sets the rate card for jobs that the tenant submits from `effective_from` on.

        `effective_from`: default now.
        """
        path = path_of("/api/admin/users/{}/rate-card", user_id)
        body = without_none({"rate_card": rate_card, "effective_from": time_text(effective_from)})
        return Request("PUT", path, RateCardAssignment, body=body)


class RateCards(Resource[M]):
    """`client.rate_cards`, for admins."""

    @operation
    def create(
        self,
        name: str,
        prices: Mapping[str, Any],
        *,
        effective_from: datetime | str | None = None,
        idempotency_key: str | None = None,
    ) -> Request[RateCard]:
        """Creates a new version of a card. Versions are immutable. Prices are decimal strings."""
        body = {"name": name, "prices": prices, "effective_from": time_text(effective_from)}
        return create("/api/admin/rate-cards", RateCard, body, idempotency_key)

    @listing
    def list(
        self, *, limit: int | None = None, page_size: int | None = None
    ) -> PageRequest[RateCard]:
        """Lists all versions of all cards. `limit`: maximum number in total."""
        return PageRequest("/api/admin/rate-cards", "rate_cards", RateCard, {}, limit, page_size)
