"""Fixtures for every test here."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from agent_support import control_plane, lease, server

__all__ = ["control_plane", "lease", "server"]


@pytest.fixture
def deep_path(tmp_path: Path) -> Iterator[Path]:
    """Like `tmp_path`. If the test fails, deep folders stay: pytest itself can't remove these."""
    yield tmp_path
    subprocess.run(["rm", "-rf", str(tmp_path)], check=True)
