"""Changes the owner of a folder and its content."""

import os
import stat
from pathlib import Path

from .job_files import UnsafeFile, open_below, open_folder


def chown_tree(root: Path, uid: int, gid: int | None = None) -> None:
    """Changes the owner of a folder and its content. No process of a job may be writing there.

    Does not follow links. Skips files with several hard links: the job may have linked another
    user's file into the folder. The group id defaults to the user id.

    Uses no recursion and few open descriptors, because a job may nest folders to any depth.
    """
    group = uid if gid is None else gid
    with open_folder(root) as opened:
        folder = os.dup(opened)
    try:
        # The folders from `root` down to the open one. Each entry has the folder's identity, and
        # the names of its subfolders that are not processed yet.
        path = [(_identity(folder), _chown_one(folder, uid, group))]
        while path:
            _, remaining = path[-1]
            if remaining:
                below = open_below(folder, remaining.pop())
                os.close(folder)
                folder = below
                path.append((_identity(folder), _chown_one(folder, uid, group)))
                continue
            path.pop()
            if path:
                above = open_below(folder, "..")
                os.close(folder)
                folder = above
                if _identity(folder) != path[-1][0]:
                    raise UnsafeFile(f"a folder of {root} was moved while its owner was changed")
    finally:
        os.close(folder)


def _chown_one(folder: int, uid: int, gid: int) -> list[str]:
    """Changes the owner of the folder and its files. Returns the names of its subfolders."""
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
