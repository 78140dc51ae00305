"""Ports for the model servers of all slots of this agent.

A port stays reserved while its server restarts. During the restart, no process listens on the port.
Without the reservation, another server could take the port, and would then answer the health checks
of the first server.
"""

import random
import socket
import threading

from .handler_failed import HandlerFailed

_lock = threading.Lock()
_reserved: dict[int, str] = {}
"""Maps a port to the id of its deployment."""


def reserve_port(deployment_id: str, host: str, ports: tuple[int, int]) -> int:
    """Reserves a free port from `ports`, which has the first and the last port.

    Raises HandlerFailed if no port is free.
    """
    first, last = ports
    with _lock:
        candidates = [port for port in range(first, last + 1) if port not in _reserved]
        random.shuffle(candidates)
        for port in candidates:
            if _is_free(host, port):
                _reserved[port] = deployment_id
                return port
    raise HandlerFailed(f"no port from {first} to {last} is free", transient=True)


def keep_port(deployment_id: str, port: int) -> None:
    """Reserves the port of a deployment that an earlier agent started."""
    with _lock:
        _reserved[port] = deployment_id


def release_ports(deployment_id: str) -> None:
    """Ends the reservations of a deployment. Idempotent."""
    with _lock:
        for port in [port for port, owner in _reserved.items() if owner == deployment_id]:
            del _reserved[port]


def _is_free(host: str, port: int) -> bool:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True
