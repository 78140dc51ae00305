"""The folder that a handler works in, and what it leaves there."""

import contextlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .checkpoints import FOLDER as CHECKPOINTS
from .give_tree import give
from .handler_failed import HandlerFailed
from .job_files import UnsafeFile
from .job_listing import list_files
from .lease import Lease
from .log_file import LogFile
from .remove_tree import remove_tree
from .slot_user import SlotUser
from .storage import Storage, upload_all

# The control plane refuses them: they lead elsewhere on another system, or speak to a terminal.
_UNSAFE = re.compile(r"[\\\x00-\x1f\x7f]")
MAX_OUTPUTS = 100_000
"""Files and folders of an artifact: the agent keeps their names in memory."""
_SHOWN = 5
"""Names in one line of the log."""


@dataclass(frozen=True)
class Outputs:
    """What a handler left in its output folder, by paths below that, with slashes."""

    files: list[str]
    left_out: list[str]
    """Links and special files."""
    has_manifest: bool
    """It wrote a manifest.json of its own. That name is the control plane's: it is not sent."""


class HandlerFolder:
    """The folder that one try of a handler may write to, and the job file beside it.

    What the handler left is only read by job_files.
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
        """What the agent laid beside it for the handler to read."""
        beside = (self.job_file, self.path.with_name("inputs"), self.resume)
        return [path for path in beside if path.exists()]

    def create(self, user: SlotUser | None = None) -> None:
        """Makes what is missing. No process of a handler may run there.

        The user owns what it may write to, and can read the rest.
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
                give(path, user.uid)

    def describe(
        self,
        lease: Lease,
        inputs: Mapping[str, Path],
        resume_from: Path | None,
        teachers: Mapping[str, Mapping[str, str]],
        git_commit: str | None = None,
    ) -> None:
        """Writes the job file: what the handler knows of its job (docs/agent.md)."""
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
        """The files of the artifact. Raises HandlerFailed for odd names, UnsafeFile for links."""
        entries = list_files(self.path, self.output.name, MAX_OUTPUTS)
        files = [entry.name for entry in entries if entry.is_regular]
        names = [name for name in files if name.lower() != "manifest.json"]
        for name in names:
            try:
                name.encode()
            except UnicodeEncodeError:
                message = f"{name!r}: the name of a file must be UTF-8"
                raise HandlerFailed(message, transient=False) from None
            if _UNSAFE.search(name):
                message = f"{name!r}: the name of a file has no backslash or control character"
                raise HandlerFailed(message, transient=False)
        left_out = [entry.name for entry in entries if not entry.is_regular]
        return Outputs(names, left_out, has_manifest=len(names) < len(files))

    def upload(self, storage: Storage, log: LogFile) -> None:
        """Stores the artifact's files. Raises HandlerFailed for what may not be sent."""
        try:
            outputs = self.outputs()
            if outputs.has_manifest:
                log.say("manifest.json is left out: the control plane writes its own")
            if outputs.left_out:
                shown = ", ".join(f"output/{name!a}" for name in outputs.left_out[:_SHOWN])
                log.say(f"{len(outputs.left_out)} links or special files are left out: {shown}")
            size = upload_all(storage, outputs.files, self.path, self.output.name)
        except UnsafeFile as error:
            raise HandlerFailed(str(error), transient=False) from error
        log.say(f"uploaded {len(outputs.files)} files, {size} bytes")

    def forget(self) -> None:
        """Frees what a try that failed has left, but for its checkpoints."""
        for folder in (self.output, self.temporary):
            remove_tree(folder)
