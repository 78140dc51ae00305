"""A job that lies about its files: links, FIFOs and folders that lead elsewhere."""

import os
from pathlib import Path

import pytest

from forge_agent.checkpoints import newest_checkpoint
from forge_agent.handler import HandlerFailed, HandlerFolder
from forge_agent.job_files import opened_inside, read_small
from forge_agent.log_file import LogFile
from forge_agent.masking import Mask
from forge_agent.storage import upload_all

SECRET = "of the machine"


class Kept:
    """A store that keeps what it is sent."""

    artifacts_uri = "forge://artifacts/x/"

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def upload(self, path: Path, name: str) -> None:
        self.files[name] = path.read_bytes()


@pytest.fixture
def folder(tmp_path: Path) -> HandlerFolder:
    return HandlerFolder(tmp_path / "try-1")


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder with a file that is not the job's."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "a").write_text(SECRET)
    return elsewhere


def test_files_are_uploaded_by_their_paths(folder: HandlerFolder) -> None:
    (folder.output / "deep").mkdir()
    (folder.output / "deep" / "a").write_text("mine")
    store = Kept()
    upload_all(store, folder.outputs(), folder)
    assert store.files == {"deep/a": b"mine"}


def test_a_file_that_becomes_a_link_is_not_sent(folder: HandlerFolder, outside: Path) -> None:
    (folder.output / "a").write_text("mine")
    files = folder.outputs()
    (folder.output / "a").unlink()
    (folder.output / "a").symlink_to(outside / "a")
    store = Kept()
    with pytest.raises(HandlerFailed, match="output/a can't be uploaded"):
        upload_all(store, files, folder)
    assert store.files == {}


@pytest.mark.parametrize("swapped", ["output", "output/deep"])
def test_a_folder_that_becomes_a_link_is_not_followed(
    folder: HandlerFolder, outside: Path, swapped: str
) -> None:
    (folder.output / "deep").mkdir()
    (folder.output / "deep" / "a").write_text("mine")
    files = folder.outputs()
    (folder.path / swapped).rename(folder.path / "aside")
    (outside / "deep").symlink_to(outside)
    (folder.path / swapped).symlink_to(outside)
    store = Kept()
    with pytest.raises(HandlerFailed, match="can't be uploaded"):
        upload_all(store, files, folder)
    assert store.files == {}


def test_an_output_folder_that_is_a_link_is_refused(folder: HandlerFolder, outside: Path) -> None:
    folder.output.rmdir()
    folder.output.symlink_to(outside)
    with pytest.raises(HandlerFailed, match="output is a link"):
        folder.outputs()


def test_a_fifo_in_a_file_s_place_is_not_waited_for(folder: HandlerFolder) -> None:
    (folder.output / "a").write_text("mine")
    files = folder.outputs()
    (folder.output / "a").unlink()
    os.mkfifo(folder.output / "a")
    with pytest.raises(HandlerFailed, match="no regular file"):
        upload_all(Kept(), files, folder)


def test_results_and_job_files_are_no_links(folder: HandlerFolder, outside: Path) -> None:
    folder.result_file.symlink_to(outside / "a")
    with pytest.raises(OSError, match="symbolic link"):
        read_small(folder.result_file, 1_000)
    folder.job_file.symlink_to(outside / "a")
    with pytest.raises(OSError, match="symbolic link"):
        folder.environment({})


def test_a_checkpoint_is_no_link_and_stays_what_it_was(
    folder: HandlerFolder, outside: Path
) -> None:
    (folder.checkpoints / "link").symlink_to(outside / "a")
    assert newest_checkpoint(folder.checkpoints) is None
    path = folder.checkpoints / "step-1"
    path.write_text("mine")
    assert newest_checkpoint(folder.checkpoints) == path
    with opened_inside(folder.path, path) as source:
        path.unlink()
        path.symlink_to(outside / "a")
        assert source.read_text() == "mine"
    with pytest.raises(OSError, match="symbolic link"), opened_inside(folder.path, path):
        pass


def test_a_log_that_becomes_a_link_is_neither_written_nor_sent_through(
    tmp_path: Path, outside: Path
) -> None:
    log = LogFile(tmp_path / "log", 1_000_000, Mask({}))
    log.say("before")
    log.path.unlink()
    log.path.symlink_to(outside / "a")
    log.say("after")
    assert log.source.read_text() == "[forge] before\n[forge] after\n"
    assert (outside / "a").read_text() == SECRET
    log.release()
    log.say("late")
    assert (outside / "a").read_text() == SECRET


def test_a_link_that_lies_where_the_log_will_be_is_replaced(tmp_path: Path, outside: Path) -> None:
    (tmp_path / "log").symlink_to(outside / "a")
    log = LogFile(tmp_path / "log", 1_000_000, Mask({}))
    log.say("mine")
    assert (outside / "a").read_text() == SECRET
    assert log.source.read_text() == "[forge] mine\n"
    log.release()
