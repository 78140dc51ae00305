"""Runs handlers in containers, with docker or podman."""

import logging
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .config import HandlerConfig
from .handler_folder import HandlerFolder
from .settings import ConfigError
from .slot_user import SlotUser

logger = logging.getLogger(__name__)

_RUNTIMES = ("docker", "podman")
_ANSWER_TIMEOUT_S = 60.0
_DRIVER = Path("/dev/nvidiactl")
_MEMORY_SHARE = 0.9
"""A container's default memory limit, as a fraction of the machine's memory."""


def find_runtime() -> str | None:
    return next((name for name in _RUNTIMES if shutil.which(name)), None)


def require_runtime(handlers: Mapping[str, HandlerConfig]) -> None:
    """Raises ConfigError if a handler has an image, but no container runtime is installed."""
    contained = [name for name, handler in handlers.items() if handler.image]
    if contained and find_runtime() is None:
        name = contained[0]
        raise ConfigError(f"handlers.{name}.image needs docker or podman; neither is on PATH")


def remove_container(name: str) -> None:
    """Removes a container, running or not. Idempotent."""
    if runtime := find_runtime():
        _run(runtime, "rm", "--force", name)


_PREFIX = "forge-"
"""All containers that agents start have names with this prefix."""


def _prefix(worker_id: str) -> str:
    return f"{_PREFIX}{worker_id}-"


def deployment_container_name(deployment_id: str) -> str:
    return f"{_PREFIX}{deployment_id}"


def list_container_ids() -> list[str] | None:
    """Returns the full ids of the running containers that agents on this machine started.

    None if the runtime does not answer.
    """
    runtime = find_runtime()
    if runtime is None:
        return []
    listed = _list_containers(runtime, "{{.ID}} {{.Names}}", _PREFIX, "--no-trunc")
    if listed is None:
        return None
    # The filter also matches names that only contain the prefix.
    pairs = [line.split() for line in listed.splitlines()]
    return [pair[0] for pair in pairs if len(pair) == 2 and pair[1].startswith(_PREFIX)]


def _list_containers(runtime: str, template: str, name: str, *options: str) -> str | None:
    return _run(runtime, "ps", *options, "--format", template, "--filter", f"name={name}")


def _run(*command: str) -> str | None:
    """Returns the output. None if the runtime does not answer: the agent goes on without it."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_ANSWER_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        logger.warning("%s does not answer", " ".join(command[:2]))
        return None
    return done.stdout


def container_name(worker_id: str, job_id: str, attempt: int) -> str:
    return f"{_prefix(worker_id)}{job_id}-{attempt}"


def remove_containers(handlers: Mapping[str, HandlerConfig], worker_id: str) -> None:
    """Removes containers that a killed agent of this worker left running."""
    runtime = find_runtime()
    if runtime is None or not any(handler.image for handler in handlers.values()):
        return
    prefix = _prefix(worker_id)
    own = re.compile(rf"{re.escape(prefix)}[^-]+-\d+")
    for name in (_list_containers(runtime, "{{.Names}}", prefix, "--all") or "").split():
        # The filter also matches the containers of another worker, such as `<worker_id>-2`.
        if own.fullmatch(name):
            remove_container(name)


@dataclass(frozen=True)
class Container:
    """One container: its name, its folder, its user and its published port."""

    name: str
    folder: HandlerFolder
    user: SlotUser | None = None
    """Default: the agent's user."""
    publish: tuple[str, int] | None = None
    """Host address and port, mapped to the same port inside. No other port is published."""


def container_command(
    config: HandlerConfig, container: Container, env: Mapping[str, str]
) -> tuple[str, ...]:
    """Returns the command line of the runtime's client.

    The client forwards signals to the container, and exits when the container exits.

    Mounts keep their paths, so that the paths in the job file are valid inside the container.
    Variables are passed by name only, so that `ps` does not show their values.
    """
    runtime = find_runtime()
    if runtime is None or config.image is None:
        raise ConfigError("no container runtime is on PATH")
    folder = container.folder
    gpus, hidden = _gpu_flags(env)
    shown = sorted(name for name in env if name not in hidden)
    return (
        *(runtime, "run", "--rm", "--init", "--name", container.name),
        *_user_flags(container.user),
        *("--cap-drop", "all", "--security-opt", "no-new-privileges"),
        *_limit_flags(config),
        *_network_flags(config, container.publish),
        *("--read-only", "--tmpfs", "/tmp:rw,nosuid,nodev,size=1g"),
        *(word for path in folder.readable for word in _mount(path, "readonly")),
        *_mount(folder.path),
        *("--workdir", str(folder.path)),
        *gpus,
        # Some programs need a home and a user name, and the image defines none for this user.
        *("--env", f"HOME={folder.temporary}", "--env", "LOGNAME=forge"),
        *(word for name in shown for word in ("--env", name)),
        config.image,
        *config.command,
    )


def _user_flags(user: SlotUser | None) -> tuple[str, ...]:
    if user is None:
        return "--user", f"{os.getuid()}:{os.getgid()}"
    groups = (word for group in user.groups for word in ("--group-add", str(group)))
    return "--user", f"{user.uid}:{user.uid}", *groups


def _gpu_flags(env: Mapping[str, str]) -> tuple[tuple[str, ...], set[str]]:
    """Returns the flags that select the GPUs, and the variables that the container must not get.

    The container numbers its GPUs from 0. If it got the host's CUDA_VISIBLE_DEVICES, such as 3, its
    handler would find no GPU.
    """
    devices = env.get("CUDA_VISIBLE_DEVICES", os.environ.get("CUDA_VISIBLE_DEVICES"))
    if devices == "" or not _DRIVER.exists():
        return (), set()
    if devices is None:
        return ("--gpus", "all"), set()
    return ("--gpus", f'"device={devices}"'), {"CUDA_VISIBLE_DEVICES"}


def _limit_flags(config: HandlerConfig) -> tuple[str, ...]:
    """Returns the flags that limit a container's processes, memory and CPUs.

    The default limits leave memory and a CPU for the agent and the rest of the machine.
    """
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    memory = config.memory_gb * 1e9 if config.memory_gb else _MEMORY_SHARE * machine
    cpus = max(1, (os.cpu_count() or 1) - 1) if config.cpus is None else config.cpus
    flags = ("--pids-limit", str(config.pids), "--memory", str(int(memory)))
    return (*flags, "--cpus", f"{cpus:g}") if cpus else flags


def _network_flags(config: HandlerConfig, publish: tuple[str, int] | None) -> tuple[str, ...]:
    flags = ("--network", config.network)
    if publish is None:
        return flags
    host, port = publish
    # A runtime accepts an IP address only, not a host name.
    address = str(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][4][0])
    shown = f"[{address}]" if ":" in address else address
    return (*flags, "--publish", f"{shown}:{port}:{port}")


def _mount(path: Path, *options: str) -> tuple[str, str]:
    # Don't use --volume: it creates a folder if the path does not exist.
    return "--mount", ",".join(("type=bind", f"source={path}", f"target={path}", *options))
