"""What tests of users of their own share."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

needs_root = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="users of their own need root and Linux"
)


@pytest.fixture
def open_path() -> Iterator[Path]:
    """pytest's own folders are closed to other users."""
    folder = Path(tempfile.mkdtemp(prefix="forge-slot-users-", dir="/tmp"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)
