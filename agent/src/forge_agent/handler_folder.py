"""The working folder of a handler, and the files that it leaves there."""

import contextlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .checkpoint_uploads import FOLDER as CHECKPOINTS
from .chown_tree import chown_tree
from .handler_failed import HandlerFailed
from .job_files import UnsafeFile
from .job_listing import list_files
from .lease import Lease
from .log_file import LogFile
from .output_storage import Storage, upload_all
from .remove_tree import remove_tree
from .slot_user import SlotUser

# The control plane refuses these characters: a backslash separates folders on Windows, and control
# characters in a name can garble the terminal that shows it.
_UNSAFE = re.compile(r"[\\\x00-\x1f\x7f]")
MAX_OUTPUTS = 100_000
"""Maximum number of files and folders per artifact: the agent keeps their names in memory."""
_SHOWN = 5
"""Maximum number of names in one log line."""


@dataclass(frozen=True)
class Outputs:
    """The content of a handler's output folder, by relative paths with slashes."""

    files: list[str]
    left_out: list[str]
    """Links and special files, which are not sent."""
    has_manifest: bool
    """Whether the handler wrote a manifest.json. The file is not sent: its name is reserved."""


class HandlerFolder:
    """The folder that one try of a handler may write to, and the job file next to it.

    Read its content through job_files only: the handler may have left links there.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.output = path / "output"
        self.checkpoints = path / CHECKPOINTS
        self.temporary = path / "tmp"
        self.job_file = path.with_name(f"{path.name}.json")
        self.resume = path.with_name("resume")
        self.result_file = path / "result.json"
        self.progress_file = path / "progress"

    @property
    def readable(self) -> list[Path]:
        """Returns the existing paths that the handler may read outside of its folder.

        These are the job file, the inputs and the checkpoint to resume from.
        """
        candidates = (self.job_file, self.path.with_name("inputs"), self.resume)
        return [path for path in candidates if path.exists()]

    def create(self, user: SlotUser | None = None) -> None:
        """Creates missing folders. Call it only while no process of a handler runs there.

        The user becomes the owner of the folder, the inputs and the checkpoint to resume from. The
        user can read the job file, but not change it.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        for folder in (self.output, self.checkpoints, self.temporary):
            with contextlib.suppress(FileExistsError):
                folder.mkdir()
                if user:
                    os.chown(folder, user.uid, user.uid, follow_symlinks=False)
        if user is None:
            return
        for path in (self.path, *self.readable):
            if path == self.job_file:
                os.chown(path, os.geteuid(), user.uid)
                path.chmod(0o640)
            elif path == self.resume or path.lstat().st_uid != user.uid:
                chown_tree(path, user.uid)

    def describe(
        self,
        lease: Lease,
        inputs: Mapping[str, Path],
        resume_from: Path | None,
        teachers: Mapping[str, Mapping[str, str]],
        git_commit: str | None = None,
    ) -> None:
        """Writes the job file, which describes the job to the handler (docs/agent.md)."""
        job = lease.job
        content = {
            **{name: job.get(name) for name in ("job_id", "job_type", "attempt", "timeout_s")},
            **{name: job.get(name, {}) for name in ("payload", "params", "output_ids")},
            "artifacts_uri": job["uploads"]["artifacts_uri"],
            "inputs": {name: str(path) for name, path in inputs.items()},
            "output_dir": str(self.output),
            "checkpoint_dir": str(self.checkpoints),
            "resume_from": None if resume_from is None else str(resume_from),
            "teachers": teachers,
            "git_commit": git_commit,
        }
        self.job_file.write_text(json.dumps(content, indent=2))

    def outputs(self) -> Outputs:
        """Lists the artifact's files.

        Raises HandlerFailed for invalid names, UnsafeFile if the output folder is a link.
        """
        entries = list_files(self.path, self.output.name, MAX_OUTPUTS)
        files = [entry.name for entry in entries if entry.is_regular]
        names = [name for name in files if name.lower() != "manifest.json"]
        for name in names:
            try:
                name.encode()
            except UnicodeEncodeError:
                message = f"{name!r}: a file name must be UTF-8"
                raise HandlerFailed(message, transient=False) from None
            if _UNSAFE.search(name):
                message = f"{name!r}: a file name must not have a backslash or control character"
                raise HandlerFailed(message, transient=False)
        left_out = [entry.name for entry in entries if not entry.is_regular]
        return Outputs(names, left_out, has_manifest=len(names) < len(files))

    def upload(self, storage: Storage, log: LogFile) -> None:
        """Uploads the artifact's files. Raises HandlerFailed for unsafe files or names."""
        try:
            outputs = self.outputs()
            if outputs.has_manifest:
                log.note("manifest.json is left out: the control plane writes its own")
            if outputs.left_out:
                shown = ", ".join(f"output/{name!a}" for name in outputs.left_out[:_SHOWN])
                log.note(f"{len(outputs.left_out)} links or special files are left out: {shown}")
            size = upload_all(storage, outputs.files, self.path, self.output.name)
        except UnsafeFile as error:
            raise HandlerFailed(str(error), transient=False) from error
        log.note(f"uploaded {len(outputs.files)} files, {size} bytes")

    def free_space(self) -> None:
        """Removes the output and temporary files of a failed try. Keeps its checkpoints."""
        for folder in (self.output, self.temporary):
            remove_tree(folder)
