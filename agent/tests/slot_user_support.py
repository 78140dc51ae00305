"""Fixtures and helpers for tests that run code as another Unix user."""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from forge_agent.user_range import claim_user_range

needs_root = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="slot users need root and Linux"
)

FIRST_UID = (claim_user_range(61_000) if os.geteuid() == 0 else None) or 61_000
"""Start of a reserved range. An agent that used the same ids would kill the tests' processes."""


@pytest.fixture
def open_path() -> Iterator[Path]:
    """A temporary folder that other users can enter, unlike pytest's."""
    folder = Path(tempfile.mkdtemp(prefix="forge-slot-users-", dir="/tmp"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)


def passes_as(uid: int, check: Callable[[], bool]) -> bool:
    """Runs a check as another user, in a child process that can't become root again."""
    pid = os.fork()
    if pid == 0:
        status = 2
        try:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            status = 0 if check() else 1
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
