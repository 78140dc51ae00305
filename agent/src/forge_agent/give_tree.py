"""Makes another user the owner of a folder and its content."""

import os
import stat
from pathlib import Path

from .job_files import UnsafeFile, open_below, open_folder


def give(root: Path, uid: int, gid: int | None = None) -> None:
    """Makes a user the owner of a folder and its content. No process of a job may run there.

    Links are not followed. Files with several hard links stay as they are: one of the names may lie
    elsewhere, and be another user's file. The group is by default the one of the user's number.

    A job decides how deep its folders are: neither calls nor open descriptors grow with the depth.
    """
    group = uid if gid is None else gid
    with open_folder(root) as opened:
        folder = os.dup(opened)
    try:
        # The folders from `root` down to the open one, each with its folders still to be given.
        path = [(_identity(folder), _give_one(folder, uid, group))]
        while path:
            _, waiting = path[-1]
            if waiting:
                below = open_below(folder, waiting.pop())
                os.close(folder)
                folder = below
                path.append((_identity(folder), _give_one(folder, uid, group)))
                continue
            path.pop()
            if path:
                above = open_below(folder, "..")
                os.close(folder)
                folder = above
                if _identity(folder) != path[-1][0]:
                    raise UnsafeFile(f"a folder of {root} was moved while it was given")
    finally:
        os.close(folder)


def _give_one(folder: int, uid: int, gid: int) -> list[str]:
    """Gives the folder and its files; returns the names of its folders."""
    os.fchown(folder, uid, gid)
    os.fchmod(folder, 0o700)
    folders: list[str] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            found = os.lstat(entry.name, dir_fd=folder)
            if stat.S_ISDIR(found.st_mode):
                folders.append(entry.name)
            elif found.st_nlink == 1:
                os.chown(entry.name, uid, gid, dir_fd=folder, follow_symlinks=False)
    return folders


def _identity(folder: int) -> tuple[int, int]:
    found = os.fstat(folder)
    return found.st_dev, found.st_ino
