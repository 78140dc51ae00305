"""What a job left is removed, and what can't be removed is told."""

import logging
import os
import subprocess
from pathlib import Path

import pytest

from forge_agent.remove_tree import remove_tree

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def test_what_is_not_there_is_gone(tmp_path: Path) -> None:
    assert remove_tree(tmp_path / "none")


def test_a_link_in_place_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    assert not remove_tree(tmp_path / "link")
    assert (tmp_path / "kept" / "file").exists()


def test_many_folders_side_by_side_and_below(tmp_path: Path) -> None:
    for name in ("a/b/c", "a/b/d", "a/e", "f"):
        (tmp_path / "root" / name).mkdir(parents=True)
        (tmp_path / "root" / name / "file").touch()
    assert remove_tree(tmp_path / "root")
    assert not (tmp_path / "root").exists()


@needs_root
def test_what_can_not_be_removed_is_told_and_the_rest_is_gone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    mounted = tmp_path / "root" / "a" / "mounted"
    mounted.mkdir(parents=True)
    (tmp_path / "root" / "b").mkdir()
    mount = ["mount", "-t", "tmpfs", "tmpfs", str(mounted)]
    if subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("nothing can be mounted here")
    try:
        with caplog.at_level(logging.WARNING):
            assert not remove_tree(tmp_path / "root")
    finally:
        subprocess.run(["umount", str(mounted)], check=True)
    assert not (tmp_path / "root" / "b").exists()
    assert "not all of" in caplog.text
