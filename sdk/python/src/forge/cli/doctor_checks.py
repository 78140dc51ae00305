"""The checks of `forge doctor`: the network, the service, the key and the limits."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from time import monotonic
from urllib.request import getproxies, proxy_bypass

import httpx2

from .._version import __version__
from ..client import Forge
from ..errors import ForgeAPIError, ForgeError, PermissionDeniedError
from ..release import is_older
from ..settings import Settings
from ..wire import Wire

OK, WARNING, FAILED = "ok", "warning", "failed"
_TIMEOUT_S = 5.0
_MAX_SKEW_S = 30.0


@dataclass(frozen=True)
class Check:
    name: str
    state: str
    """`ok`, `warning` or `failed`."""
    detail: str
    advice: str = ""
    """How to fix the problem."""


def network_checks(url: httpx2.URL) -> Iterator[Check]:
    """Checks name resolution, connection and TLS. Stops at the first failure."""
    host = url.host
    port = url.port or (443 if url.scheme == "https" else 80)
    if getproxies().get(url.scheme) and not proxy_bypass(host):
        yield Check("network", OK, f"uses the proxy in {url.scheme}_proxy: not checked")
        return
    try:
        addresses = sorted({str(each[4][0]) for each in socket.getaddrinfo(host, port)})
    except OSError as error:
        advice = "Check the spelling of the address, and your network or VPN."
        yield Check("name", FAILED, f"{host}: {error.strerror or error}", advice)
        return
    yield Check("name", OK, f"{host} is {', '.join(addresses[:2])}")
    try:
        connection = socket.create_connection((host, port), _TIMEOUT_S)
    except OSError as error:
        advice = "Check that the server is running, and that no firewall blocks the port."
        yield Check("connection", FAILED, f"port {port}: {error.strerror or error}", advice)
        return
    with connection:
        yield Check("connection", OK, f"port {port} is open")
        if url.scheme == "https":
            yield _tls(connection, host)


def _tls(connection: socket.socket, host: str) -> Check:
    try:
        with ssl.create_default_context().wrap_socket(connection, server_hostname=host) as tls:
            return Check("TLS", OK, str(tls.version()))
    except ssl.SSLCertVerificationError as error:
        advice = "For a private CA, set SSL_CERT_FILE. Else contact the operator."
        return Check("TLS", FAILED, f"the certificate: {error.verify_message}", advice)
    except (ssl.SSLError, OSError) as error:
        advice = "Check that this port uses https, or use http:// in the address."
        return Check("TLS", FAILED, error.strerror or str(error), advice)


def service_checks(settings: Settings) -> Iterator[Check]:
    """Checks that Forge responds, is ready, and matches this client's version and clock."""
    options = Wire(settings, _TIMEOUT_S).client_options()
    with httpx2.Client(**options, timeout=_TIMEOUT_S) as http:
        try:
            asked_s = monotonic()
            alive = http.get("/healthz")
            took_s = monotonic() - asked_s
            ready = http.get("/readyz")
        except httpx2.HTTPError as error:
            advice = "The port is open, but does not respond to HTTP. Check the port."
            yield Check("service", FAILED, f"{type(error).__name__}: {error}", advice)
            return
    if not alive.is_success or alive.headers.get("content-type", "").startswith("text/html"):
        advice = "Another service responds there: check the address and its path."
        yield Check("service", FAILED, f"HTTP {alive.status_code}, not from Forge", advice)
        return
    yield Check("service", OK, f"responds in {took_s * 1000:.0f} ms")
    if ready.is_success:
        yield Check("readiness", OK, "the server is ready")
    else:
        advice = "Its database is unavailable, or it is stopping. Wait, then contact the operator."
        yield Check(
            "readiness", FAILED, f"the server is not ready (HTTP {ready.status_code})", advice
        )
    yield _versions(alive.headers)
    yield _clock(alive.headers, took_s)


def _versions(headers: httpx2.Headers) -> Check:
    server, oldest = headers.get("x-forge-version"), headers.get("x-forge-min-client")
    detail = f"client {__version__}, server {server or 'unknown'}"
    if oldest and is_older(__version__, oldest):
        return Check(
            "versions", FAILED, detail, f"It requires {oldest} or newer: upgrade forge-sdk."
        )
    if server and _numbers(server)[:1] != _numbers(__version__)[:1]:
        return Check("versions", WARNING, detail, "The major versions differ: upgrade one of them.")
    return Check("versions", OK, detail)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.partition("-")[0].split(".") if part.isdigit())


def _clock(headers: httpx2.Headers, took_s: float) -> Check:
    try:
        theirs = parsedate_to_datetime(headers.get("date", ""))
    except (TypeError, ValueError):
        return Check("clock", WARNING, "the server does not send its time")
    if theirs.tzinfo is None:
        theirs = theirs.replace(tzinfo=timezone.utc)
    skew_s = (datetime.now(timezone.utc) - theirs).total_seconds() - took_s / 2
    if abs(skew_s) > _MAX_SKEW_S:
        word = "ahead of" if skew_s > 0 else "behind"
        advice = "Synchronize it (NTP): TLS, expiring keys and signed downloads depend on it."
        return Check("clock", FAILED, f"{abs(skew_s):.0f} s {word} the server's", advice)
    return Check("clock", OK, "matches the server's")


def account_checks(client: Forge) -> Iterator[Check]:
    """Checks the key, the tenant's limits, and whether workers are available."""
    try:
        identity = client.service.ping()
    except PermissionDeniedError as error:
        advice = "Create another key and log in with it: forge login."
        yield Check("key", FAILED, error.message, advice)
        return
    except ForgeError as error:
        yield Check("key", FAILED, str(error), "Try again, else contact the operator.")
        return
    yield Check("key", OK, f"of {identity.user_id}, scope {identity.scope}")
    if identity.scope != "worker":
        yield _limits(client)
    try:
        workers = list(client.workers.list())
    except ForgeAPIError as error:
        yield Check("workers", WARNING, error.message, "Only a user's key can list them.")
        return
    except ForgeError as error:
        yield Check(
            "workers", FAILED, str(error), "Try again. If it persists, contact the operator."
        )
        return
    states = [worker.status for worker in workers]
    alive = states.count("idle") + states.count("busy")
    detail = f"{states.count('idle')} idle of {len(states)}"
    if not workers:
        yield Check("workers", WARNING, "none", "Jobs will wait: forge workers add --help.")
    elif alive == 0:
        yield Check("workers", WARNING, detail, "Jobs will wait. See: forge workers list.")
    else:
        yield Check("workers", OK, detail)


_NEARLY = 0.9


def _limits(client: Forge) -> Check:
    """Checks for limits that are reached or nearly reached."""
    try:
        limits = client.service.limits()
    except ForgeError as error:
        return Check("limits", WARNING, str(error), "Older servers don't report limits.")
    full = [
        f"{each.name} {each.used} of {each.limit}"
        for each in limits
        if each.limit is not None and each.used is not None and each.used >= _NEARLY * each.limit
    ]
    if full:
        return Check(
            "limits", WARNING, ", ".join(full), "The operator can change them; see docs/api.md."
        )
    return Check("limits", OK, "none is nearly reached")
