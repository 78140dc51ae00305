"""Keys and users."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from .base import Model


class Features(Model):
    """The features of the server."""

    temporal_ui_url: str | None = None
    """The address of Temporal's UI."""
    ssh_workers: bool = False
    """Whether the server can set up machines as workers over SSH."""
    budgets: bool = True
    billing_export: bool = True


class Identity(Model):
    """The owner of the key."""

    user_id: str
    user_name: str | None = None
    """The tenant's display name."""
    key_id: str
    key_name: str | None = None
    """The value of `created_by` for objects created with this key."""
    scope: str
    expires_at: datetime | None = None
    is_session: bool = False
    """Whether this key is a session: see `client.api_keys.create_session`."""
    features: Features = Field(default_factory=Features)
    ok: bool = True


class Limit(Model):
    """A limit of a tenant, and its current usage."""

    name: str
    limit: int | None
    """None: unlimited."""
    used: int | None
    variable: str
    """The server's environment variable that sets the limit."""


class ApiKey(Model):
    """An API key, without its secret value."""

    key_id: str
    name: str
    scope: str
    """`user`, `worker` or `admin`."""
    last4: str | None = None
    created_at: datetime | None = None
    expires_at: datetime | None = None
    last_used_at: datetime | None = None
    revoked_at: datetime | None = None
    workers: int | None = None
    """For a worker key: the maximum number of workers. None: unlimited."""
    serving_hosts: list[str] = Field(default_factory=list)
    """Hosts that may serve the workers' models, besides the workers' own addresses."""
    made_by: str | None = None
    """The id of the key that created this key. If that key is revoked, this key is revoked too."""
    session_of: str | None = None
    """For a session: the id of the key that was exchanged for the session."""


class NewApiKey(ApiKey):
    """A newly created key."""

    key: str | None = Field(default=None, repr=False)
    """The key's secret value, returned only once. None in the response to a retry."""


class RevokedApiKey(Model):
    """A revoked key."""

    key_id: str
    revoked: bool = True


class User(Model):
    """A tenant."""

    user_id: str
    name: str
    payment_customer_id: str | None = None
    created_at: datetime | None = None


class NewUser(User):
    """A newly created tenant, with its first key."""

    api_key: NewApiKey


class Readiness(Model):
    """Whether the server is ready."""

    ready: bool
