"""Keys and users."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from .base import Model


class Features(Model):
    """What the server offers."""

    temporal_ui_url: str | None = None
    """Where workflows are shown."""
    ssh_workers: bool = False
    """Machines can be set up as workers over SSH."""
    budgets: bool = True
    billing_export: bool = True


class Identity(Model):
    """Whose key this is."""

    user_id: str
    user_name: str | None = None
    """The tenant's name, as people know it."""
    key_id: str
    key_name: str | None = None
    """`created_by` of what is made with this key."""
    scope: str
    expires_at: datetime | None = None
    is_session: bool = False
    """A key was exchanged for it."""
    features: Features = Field(default_factory=Features)
    ok: bool = True


class Limit(Model):
    """What a tenant may have or do, and how much of it there is."""

    name: str
    limit: int | None
    """None: as many as you like."""
    used: int | None
    variable: str
    """The server's variable that sets it."""


class ApiKey(Model):
    """A key, without its text."""

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
    """How many workers a worker key is for; None: any."""
    serving_hosts: list[str] = Field(default_factory=list)
    """Where else their models may be served from."""
    made_by: str | None = None
    """The id of the key that made it, which takes it along when it is revoked."""
    session_of: str | None = None
    """Of a session: the id of the key that was exchanged for it."""


class NewApiKey(ApiKey):
    """A key that was just made."""

    key: str | None = Field(default=None, repr=False)
    """Its text, told here and never again; None in an answer that had to be asked for again."""


class RevokedApiKey(Model):
    """A key that is good for nothing any more."""

    key_id: str
    revoked: bool = True


class User(Model):
    """A tenant."""

    user_id: str
    name: str
    payment_customer_id: str | None = None
    created_at: datetime | None = None


class NewUser(User):
    """A tenant that was just made, with its first key."""

    api_key: NewApiKey


class Readiness(Model):
    """Whether the server can do its work."""

    ready: bool
