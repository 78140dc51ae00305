"""Finds the git commit of a handler's code."""

import importlib.util
import subprocess
import sys
from pathlib import Path

from .config import HandlerConfig

_TIMEOUT_S = 10
# Prevents git from writing to the checkout, and from running the file system monitor that the
# checkout's config names.
_GIT = ("git", "--no-optional-locks", "-c", "core.fsmonitor=false")


def commit_of(handler: HandlerConfig, of_reference: str | None) -> str | None:
    """Returns the commit of the git checkout that contains the handler's program.

    Adds `-dirty` if a tracked file of the checkout was changed. For a reference handler outside of
    a checkout, returns `of_reference` (the configured commit). Returns None for other programs
    outside of a checkout, and for containers.
    """
    if handler.image:
        return None
    for program in _programs(handler.command):
        if commit := _commit_of_file(program):
            return commit
    return of_reference if _is_reference(handler.command) else None


def _is_reference(command: tuple[str, ...]) -> bool:
    return command[:3] == (sys.executable, "-m", "forge_compute")


def _programs(command: tuple[str, ...]) -> list[Path]:
    if _is_reference(command):
        found = importlib.util.find_spec("forge_compute")
        return [Path(found.origin)] if found and found.origin else []
    return [Path(word) for word in command if Path(word).is_absolute() and Path(word).is_file()]


def _commit_of_file(path: Path) -> str | None:
    # An untracked file, such as one in a virtual environment, is not part of the commit.
    if _git(path.parent, "ls-files", "--error-unmatch", "--", path.name) is None:
        return None
    return _git(path.parent, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            [*_GIT, "-C", str(folder), *arguments],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode(errors="replace").strip() or None if done.returncode == 0 else None
