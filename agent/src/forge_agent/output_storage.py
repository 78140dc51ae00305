"""Stores the files of a job's artifact."""

import logging
import os
import shutil
import uuid
from io import BufferedReader
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

from .config import AgentConfig, S3Config
from .control_plane import ControlPlane
from .file_transfer import upload
from .job_files import open_file
from .job_inputs import below, local_path
from .lease import Lease
from .s3_bucket import call_store, open_bucket

logger = logging.getLogger(__name__)


class Storage(Protocol):
    """Stores the files of one job's artifact."""

    @property
    def artifacts_uri(self) -> str: ...

    def upload(self, file: BufferedReader, name: str) -> None:
        """Stores an open file. `name`: its path in the artifact, with slashes."""


class BridgeStorage:
    """Uploads files to the control plane, so the worker needs no credentials for a store."""

    def __init__(self, control_plane: ControlPlane, lease: Lease) -> None:
        self._control_plane = control_plane
        self._lease = lease
        self.artifacts_uri = str(lease.job["uploads"]["artifacts_uri"])

    def upload(self, file: BufferedReader, name: str) -> None:
        url = f"{self._lease.job['uploads']['artifacts_url']}{quote(name)}"
        upload(self._control_plane, self._lease, url, file, name)


class LocalStorage:
    """Stores files in a directory of this machine, which may be the control plane's store."""

    def __init__(self, root: Path, lease: Lease) -> None:
        self._root = root
        self.artifacts_uri = str(lease.job["uploads"]["artifacts_uri"])

    def upload(self, file: BufferedReader, name: str) -> None:
        target = below(local_path(self._root, self.artifacts_uri), name)
        target.parent.mkdir(parents=True, exist_ok=True)
        # Rename at the end: a file with its final name is always complete.
        partial = target.with_name(f".{uuid.uuid4()}.part")
        try:
            with partial.open("xb") as output:
                shutil.copyfileobj(file, output)
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)


class S3Storage:
    """Stores files in a bucket, with the worker's own credentials. Uploads large files in parts."""

    def __init__(self, config: S3Config, lease: Lease) -> None:
        self._config = config
        self._lease = lease
        self._prefix = str(lease.job["uploads"]["artifacts_uri"]).partition("://")[2]
        self.artifacts_uri = f"{config.scheme}://{config.bucket}/{self._prefix}"

    def upload(self, file: BufferedReader, name: str) -> None:
        import obstore  # imported here to save memory in agents without a bucket

        store = open_bucket(self._config)

        def put() -> object:
            file.seek(0)
            return obstore.put(store, f"{self._prefix}{name}", file)

        self._lease.retry(
            lambda: call_store(put),
            lambda error: logger.warning("upload interrupted, retrying: %s", error),
        )


class MirroredStorage:
    """Stores each file in the worker's own store and in the control plane.

    Users and other workers read the files from the control plane.
    """

    def __init__(self, own: Storage, control_plane: Storage) -> None:
        self._own = own
        self._control_plane = control_plane
        self.artifacts_uri = own.artifacts_uri

    def upload(self, file: BufferedReader, name: str) -> None:
        self._own.upload(file, name)
        file.seek(0)
        self._control_plane.upload(file, name)


def storage_for(config: AgentConfig, control_plane: ControlPlane, lease: Lease) -> Storage:
    """Chooses where the job's files are stored.

    A worker with its own bucket or directory stores them there, and also in the control plane if
    `artifacts_upload` is true. Any other worker stores them in the control plane, or in the local
    directory `artifacts/` if the control plane accepts no files.
    """
    own: Storage | None = None
    if config.s3:
        own = S3Storage(config.s3, lease)
    elif config.artifacts_dir:
        own = LocalStorage(config.artifacts_dir, lease)
    if "artifacts_url" not in lease.job["uploads"]:
        return own or LocalStorage(Path("artifacts").resolve(), lease)
    bridge = BridgeStorage(control_plane, lease)
    if own is None:
        return bridge
    return MirroredStorage(own, bridge) if config.artifacts_upload else own


def upload_all(storage: Storage, names: list[str], root: Path, folder: str) -> int:
    """Uploads the files with these names from `folder`, a subfolder of the job's folder `root`.

    Returns their total size in bytes.

    Raises UnsafeFile if the job has replaced a file with a link or a special file.
    """
    size = 0
    for name in names:
        with open_file(root, f"{folder}/{name}") as file:
            size += os.fstat(file.fileno()).st_size
            storage.upload(file, name)
    return size
