"""Handlers in containers, where the machine has a runtime."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from .config import HandlerConfig
from .settings import ConfigError

_RUNTIMES = ("docker", "podman")


def find_runtime() -> str | None:
    return next((name for name in _RUNTIMES if shutil.which(name)), None)


def require_runtime(handlers: Mapping[str, HandlerConfig]) -> None:
    """Raises ConfigError where a handler has an image and nothing here can run it."""
    wanting = [name for name, handler in handlers.items() if handler.image]
    if wanting and find_runtime() is None:
        raise ConfigError(f"handlers.{wanting[0]}.image needs docker or podman; neither is on PATH")


def remove_container(name: str) -> None:
    """Ends a container that its client may have left running; one that is gone is no failure."""
    if runtime := find_runtime():
        subprocess.run(
            [runtime, "rm", "--force", name], capture_output=True, timeout=60, check=False
        )


def remove_containers(handlers: Mapping[str, HandlerConfig], prefix: str) -> None:
    """Ends what an agent that was killed has left: containers are not below it."""
    runtime = find_runtime()
    if runtime is None or not any(handler.image for handler in handlers.values()):
        return
    listed = subprocess.run(
        [runtime, "ps", "--all", "--format", "{{.Names}}", "--filter", f"name={prefix}"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    for name in listed.stdout.split():
        if name.startswith(prefix):  # the filter finds it anywhere in a name
            remove_container(name)


def container_command(
    config: HandlerConfig, folder: Path, env: Mapping[str, str], name: str
) -> tuple[str, ...]:
    """The runtime's command line; its client passes signals on, and ends with the container.

    The job's folder is at the same path inside, so that the paths in the job file are right there.
    Only FORGE_*, the handler's own variables and the GPU's go in, by name: `ps` shows no values.
    """
    runtime = find_runtime()
    if runtime is None or config.image is None:
        raise ConfigError("no container runtime is on PATH")
    shown = sorted(
        each
        for each in env
        if each.startswith("FORGE_")
        or each in config.env
        or each in ("CUDA_VISIBLE_DEVICES", "TMPDIR")
    )
    gpus: tuple[str, ...] = ()
    devices = env.get("CUDA_VISIBLE_DEVICES")
    if Path("/dev/nvidiactl").exists() and devices != "":
        gpus = ("--gpus", f'"device={devices}"' if devices else "all")
    memory = ("--memory", f"{int(config.memory_gb * 1e9)}") if config.memory_gb else ()
    return (
        runtime,
        "run",
        "--rm",
        "--init",
        "--name",
        name,
        "--user",
        f"{os.getuid()}:{os.getgid()}",
        "--network",
        "host",
        "--volume",
        f"{folder}:{folder}",
        "--workdir",
        str(folder),
        *gpus,
        *memory,
        *(word for variable in shown for word in ("--env", variable)),
        config.image,
        *config.command,
    )
