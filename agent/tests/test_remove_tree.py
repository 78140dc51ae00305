"""Removing a job's folder, and logging what can't be removed."""

import logging
import os
import subprocess
from pathlib import Path

import pytest
from slot_user_support import needs_root, open_path, passes_as

from forge_agent import remove_tree as module
from forge_agent.remove_tree import remove_tree

__all__ = ["open_path"]

OTHER_UID = 61_998


def test_a_missing_folder_counts_as_removed(tmp_path: Path) -> None:
    assert remove_tree(tmp_path / "none")


def test_a_link_in_place_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    assert not remove_tree(tmp_path / "link")
    assert (tmp_path / "kept" / "file").exists()


def test_removes_sibling_and_nested_folders(tmp_path: Path) -> None:
    for name in ("a/b/c", "a/b/d", "a/e", "f"):
        (tmp_path / "root" / name).mkdir(parents=True)
        (tmp_path / "root" / name / "file").touch()
    assert remove_tree(tmp_path / "root")
    assert not (tmp_path / "root").exists()


@needs_root
def test_removes_folders_without_permissions(open_path: Path) -> None:
    """Runs as another user, because root needs no permission."""
    own = open_path / "own"
    own.mkdir()
    os.chown(own, OTHER_UID, OTHER_UID)

    def create_and_remove() -> bool:
        below = own / "root" / "a" / "b"
        below.mkdir(parents=True)
        (below / "file").touch()
        for folder in (below, below.parent, own / "root"):
            folder.chmod(0)
        return remove_tree(own / "root")

    assert passes_as(OTHER_UID, create_and_remove)
    assert list(own.iterdir()) == []


def test_a_link_that_replaces_a_folder_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that could not be ended may replace the folder after the agent's check."""
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o500)
    (outside / "file").touch()
    swapped = tmp_path / "root" / "folder"
    swapped.mkdir(parents=True)
    swapped.chmod(0)
    chmod = os.chmod

    def swap_then_chmod(path: str, mode: int, **options: int) -> None:
        swapped.rmdir()
        swapped.symlink_to(outside)
        chmod(path, mode, **options)

    monkeypatch.setattr(module.os, "chmod", swap_then_chmod)
    remove_tree(tmp_path / "root")
    monkeypatch.undo()
    assert outside.stat().st_mode & 0o777 == 0o500
    assert (outside / "file").exists()


def test_a_disk_failure_is_logged_and_not_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(_: int) -> None:
        raise OSError(5, "Input/output error")

    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "file").touch()
    monkeypatch.setattr(module.os, "scandir", fails)
    assert not remove_tree(tmp_path / "root")
    assert caplog.text.count("Input/output error") == 1


@needs_root
def test_logs_what_cannot_be_removed_and_removes_the_rest(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    mounted = tmp_path / "root" / "a" / "mounted"
    mounted.mkdir(parents=True)
    (tmp_path / "root" / "b").mkdir()
    for name in ("before", "zlast"):  # so that entries may be listed before and after `mounted`
        (tmp_path / "root" / "a" / name / "below").mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "tmpfs", str(mounted)]
    if subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("nothing can be mounted here")
    try:
        with caplog.at_level(logging.WARNING):
            assert not remove_tree(tmp_path / "root")
    finally:
        subprocess.run(["umount", str(mounted)], check=True)
    left = {path.name for path in (tmp_path / "root").rglob("*")}
    assert left == {"a", "mounted"}
    assert caplog.text.count("can't be removed completely") == 1
