"""Fixtures for all tests in this folder."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from agent_support import control_plane, lease, server
from hostile_support import received

__all__ = ["control_plane", "lease", "received", "server"]


@pytest.fixture
def deep_path(tmp_path: Path) -> Iterator[Path]:
    """Like `tmp_path`, but also removes deep folders, which pytest can't remove."""
    yield tmp_path
    subprocess.run(["rm", "-rf", str(tmp_path)], check=True)
