"""Removes a job's folder, with any depth of folders and any number of files."""

import contextlib
import logging
import os
import stat
import uuid
from collections.abc import Callable
from pathlib import Path

logger = logging.getLogger(__name__)

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Opens a folder even if its mode gives the agent no read permission. The agent can then change this
# mode. Linux only.
_NAME_ONLY = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_tree(root: Path) -> bool:
    """Removes a folder with its content. Removes links, not their targets.

    A job may nest folders to any depth. So nested folders are first moved up to `root`. This keeps
    call depth, number of descriptors and length of paths constant. Returns whether everything was
    removed. Logs errors instead of raising them, so that the worker continues.
    """
    try:
        top = _open(str(root))
    except FileNotFoundError:
        return True
    except OSError as error:
        logger.warning("%s can't be removed: %s", root, error)
        return False
    removal = _Removal(top)
    try:
        removal.run()
    finally:
        os.close(top)
    try:
        root.rmdir()
    except OSError as error:
        logger.warning("%s can't be removed completely: %s", root, removal.first_error or error)
        return False
    return True


class _Removal:
    def __init__(self, top: int) -> None:
        self.first_error: OSError | None = None
        self._top = top
        self._prefix = uuid.uuid4().hex
        self._moved = 0
        self._steps = 0
        """Number of entries removed or moved so far."""
        self._skipped: set[str] = set()
        """Folders in the top folder that are being removed or can't be removed."""

    def run(self) -> None:
        self._empty(self._top, self._remove)

    def _empty(self, folder: int, on_folder: Callable[[str, int], None]) -> None:
        """Removes the folder's files, and calls `on_folder` for each subfolder.

        Repeats this until a round removes and moves nothing. One round is not enough: a listing may
        miss entries of a folder that changes at the same time.
        """
        before = -1
        while before != self._steps:
            before = self._steps
            try:
                # Iterates without a list: a job may create millions of files.
                with os.scandir(folder) as entries:
                    for entry in entries:
                        self._handle(entry, folder, on_folder)
            except OSError as error:
                self.first_error = self.first_error or error

    def _handle(
        self, entry: os.DirEntry[str], folder: int, on_folder: Callable[[str, int], None]
    ) -> None:
        try:
            if entry.is_dir(follow_symlinks=False):
                on_folder(entry.name, folder)
            else:
                os.unlink(entry.name, dir_fd=folder)
                self._steps += 1
        except OSError as error:
            self.first_error = self.first_error or error

    def _remove(self, name: str, _: int) -> None:
        """Removes a folder in the top folder. Moves its subfolders to the top folder first."""
        if name in self._skipped:
            return
        self._skipped.add(name)
        folder = _open(name, self._top)
        try:
            self._empty(folder, self._move_up)
        finally:
            os.close(folder)
        os.rmdir(name, dir_fd=self._top)
        self._steps += 1
        self._skipped.remove(name)

    def _move_up(self, name: str, folder: int) -> None:
        _permit(name, folder)  # moving a folder needs write permission on it
        target = f"{self._prefix}-{self._moved}"
        self._moved += 1
        os.rename(name, target, src_dir_fd=folder, dst_dir_fd=self._top)
        self._steps += 1


def _open(name: str, parent: int | None = None) -> int:
    _permit(name, parent)
    return os.open(name, _FOLDER, dir_fd=parent)


def _permit(name: str, parent: int | None) -> None:
    """Sets a folder's mode so that its owner can list it, move it and remove its entries."""
    folder = os.open(name, _NAME_ONLY, dir_fd=parent)
    try:
        if os.fstat(folder).st_mode & stat.S_IRWXU != stat.S_IRWXU:
            # Use the descriptor, because the name may be a link by now. Ignore an error here: root
            # needs no permission, and without root the next operation on the folder raises an
            # error.
            with contextlib.suppress(OSError):
                Path(f"/proc/self/fd/{folder}").chmod(stat.S_IRWXU)
    finally:
        os.close(folder)
