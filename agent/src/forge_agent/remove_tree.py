"""Removes what a job left, however deep its folders lie."""

import contextlib
import logging
import os
import stat
import uuid
from pathlib import Path

logger = logging.getLogger(__name__)

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_tree(root: Path) -> bool:
    """Removes a folder with all that is in it: links, not what they lead to.

    A job decides how deep its folders lie, so neither calls, nor open descriptors, nor the length
    of a path grow with the depth: what lies in a folder of `root` is moved up to `root` first. No
    process of a job may run there. Whether nothing is left; what is, is logged and not raised,
    because the worker goes on.
    """
    try:
        top = os.open(root, _FOLDER)
    except FileNotFoundError:
        return True
    except OSError as error:
        logger.warning("%s can't be removed: %s", root, error)
        return False
    try:
        errors = _Emptying(top).run()
    finally:
        os.close(top)
    try:
        root.rmdir()
    except OSError as error:
        logger.warning("not all of %s can be removed: %s", root, (errors or [error])[0])
        return False
    return True


class _Emptying:
    def __init__(self, top: int) -> None:
        self._top = top
        self._prefix = uuid.uuid4().hex
        self._moved = 0
        self._kept: set[str] = set()
        """Folders of the top that can't be removed."""
        self._errors: list[OSError] = []

    def run(self) -> list[OSError]:
        while folders := [name for name in self._clear(self._top) if name not in self._kept]:
            for name in folders:
                try:
                    self._remove(name)
                except OSError as error:
                    self._errors.append(error)
                    self._kept.add(name)
        return self._errors

    def _remove(self, name: str) -> None:
        """A folder of the top, whose own folders come into the top."""
        folder = os.open(name, _FOLDER, dir_fd=self._top)
        try:
            for below in self._clear(folder):
                self._moved += 1
                target = f"{self._prefix}-{self._moved}"
                os.rename(below, target, src_dir_fd=folder, dst_dir_fd=self._top)
        finally:
            os.close(folder)
        os.rmdir(name, dir_fd=self._top)

    def _clear(self, folder: int) -> list[str]:
        """Removes all that is no folder; the names of those that are."""
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries]
        folders: list[str] = []
        for name in names:
            try:
                found = os.lstat(name, dir_fd=folder)
                if not stat.S_ISDIR(found.st_mode):
                    os.unlink(name, dir_fd=folder)
                    continue
                folders.append(name)
                if found.st_mode & stat.S_IRWXU != stat.S_IRWXU:
                    # Its owner took away what it takes to empty and to move it.
                    with contextlib.suppress(PermissionError):
                        os.chmod(name, stat.S_IRWXU, dir_fd=folder)
            except OSError as error:
                self._errors.append(error)
        return folders
