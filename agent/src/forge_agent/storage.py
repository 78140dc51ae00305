"""Fetches a job's inputs and stores its artifact's files."""

import logging
import os
import shutil
import uuid
from collections.abc import Callable, Mapping
from datetime import timedelta
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from urllib.parse import quote, unquote, urlsplit

from .config import AgentConfig, S3Config
from .control_plane import ControlPlane
from .file_transfer import download, upload
from .job_files import UnsafeFile, open_file
from .job_listing import list_files
from .lease import Lease, Unavailable

if TYPE_CHECKING:
    from obstore.store import S3Store

logger = logging.getLogger(__name__)

_T = TypeVar("_T")


class NoSuchInput(Exception):
    """This worker can't read an input. A retry helps only if `transient` is true."""

    def __init__(self, message: str, *, transient: bool = False) -> None:
        super().__init__(message)
        self.transient = transient


class Storage(Protocol):
    """Stores the files of one job's artifact."""

    @property
    def artifacts_uri(self) -> str: ...

    def upload(self, file: BufferedReader, name: str) -> None:
        """Stores an open file. `name`: its path in the artifact, with slashes."""


class BridgeStorage:
    """Uploads through the control plane: the worker needs no credentials of a store."""

    def __init__(self, control_plane: ControlPlane, lease: Lease) -> None:
        self._control_plane = control_plane
        self._lease = lease
        self.artifacts_uri = str(lease.job["uploads"]["artifacts_uri"])

    def upload(self, file: BufferedReader, name: str) -> None:
        url = f"{self._lease.job['uploads']['artifacts_url']}{quote(name)}"
        upload(self._control_plane, self._lease, url, file, name)


class LocalStorage:
    """A directory of this machine. The control plane may share it."""

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
    """A bucket with the worker's own credentials. Large files are uploaded in parts."""

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
            lambda: _call_store(put),
            lambda error: logger.warning("upload interrupted, retrying: %s", error),
        )


class MirroredStorage:
    """Stores files twice: in the worker's own store, and in the control plane for other readers."""

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


def open_bucket(config: S3Config, bucket: str | None = None) -> "S3Store":
    from obstore.store import S3Store

    return S3Store(
        bucket or config.bucket,
        access_key_id=config.access_key_id,
        secret_access_key=config.secret_access_key,
        region=config.region or "us-east-1",
        endpoint=config.endpoint,
        client_options={"allow_http": True},
        retry_config={"max_retries": 2, "retry_timeout": timedelta(seconds=10)},
    )


def _call_store(call: Callable[[], _T]) -> _T:
    """Raises Unavailable if the store can't be reached, OSError if it refuses the call."""
    from obstore.exceptions import BaseError, GenericError

    try:
        return call()
    except FileNotFoundError:
        raise
    except GenericError as error:
        raise Unavailable(f"the bucket can't be reached: {type(error).__name__}") from error
    except BaseError as error:
        raise OSError(f"the bucket refuses the request: {type(error).__name__}") from error


def local_path(root: Path, uri: str) -> Path:
    """Resolves forge://artifacts/<key> or file://<path below the root> to a local path.

    Raises NoSuchInput for another scheme, and for a path outside of the directory.
    """
    parts = urlsplit(uri)
    if parts.scheme == "forge" and parts.netloc == "artifacts":
        path = root / unquote(parts.path).lstrip("/")
    elif parts.scheme == "file" and parts.netloc == "":
        path = Path(unquote(parts.path))
    else:
        raise NoSuchInput(f"this worker has no store for {parts.scheme}://{parts.netloc}")
    path = path.resolve()
    if not path.is_relative_to(root.resolve()):
        raise NoSuchInput(f"{uri} is not below the artifacts directory")
    return path


class Inputs:
    """Fetches a job's inputs into a folder."""

    def __init__(self, config: AgentConfig, control_plane: ControlPlane, lease: Lease) -> None:
        self._config = config
        self._control_plane = control_plane
        self._lease = lease

    def fetch(self, folder: Path) -> dict[str, Path]:
        """Returns the path of each input, by the name of its parameter.

        A parameter with an artifact's id gets a folder. A parameter with a URI gets the file, or a
        folder if there are several files. Skips an id for which the control plane sends neither
        files nor a URI, because the handler may know that id. Raises NoSuchInput for an input that
        this worker can't get.
        """
        found = {}
        for entry in self._lease.job["inputs"]:
            path = self._fetch(entry, folder / str(entry["param"]))
            if path is not None:
                found[str(entry["param"])] = path
        return found

    def fetch_checkpoint(self, folder: Path) -> Path | None:
        """Fetches the checkpoint of an earlier attempt, if there is one."""
        resume = self._lease.job.get("resume_from")
        if not resume:
            return None
        target = folder / Path(str(resume["name"])).name
        download(self._control_plane, self._lease, resume, target)
        return target

    def _fetch(self, entry: Mapping[str, Any], folder: Path) -> Path | None:
        value = str(entry["value"])
        if entry.get("withheld"):
            reason = str(entry.get("reason") or f"{value} does not exist")
            raise NoSuchInput(reason, transient=bool(entry.get("retryable")))
        uri = entry.get("uri") or (value if "://" in value else None)
        files = entry.get("files")
        if files is None and uri is None:
            return None
        if files:
            for file in files:
                download(self._control_plane, self._lease, file, below(folder, str(file["path"])))
        elif uri:
            self._fetch_uri(str(uri), folder)
        return _only_file(folder) if "://" in value else folder

    def _fetch_uri(self, uri: str, folder: Path) -> None:
        scheme, _, rest = uri.partition("://")
        s3 = self._config.s3
        if s3 and scheme == s3.scheme:
            bucket, _, key = rest.partition("/")
            self._lease.retry(
                lambda: _fetch_objects(s3, bucket, unquote(key), folder, uri),
                lambda error: logger.warning("%s: %s", uri, error),
            )
            return
        if self._config.artifacts_dir is None:
            raise NoSuchInput(f"this worker has no store for {scheme}://{rest.partition('/')[0]}")
        path = local_path(self._config.artifacts_dir, uri)
        if path.is_dir():
            _copy(path, None, folder)
        elif path.is_file():
            _copy(path.parent, [path.name], folder)
        else:
            raise NoSuchInput(f"{uri} does not exist")


def _copy(source: Path, names: list[str] | None, target: Path) -> None:
    """Copies files, by default all. Raises NoSuchInput for a link, which could point anywhere."""
    try:
        for name in names or [entry.name for entry in list_files(source)]:
            copy = target / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            with open_file(source, name) as file, copy.open("wb") as output:
                shutil.copyfileobj(file, output)
    except UnsafeFile as error:
        raise NoSuchInput(str(error)) from error


def below(folder: Path, name: str) -> Path:
    """Resolves a name to a path in the folder. Raises NoSuchInput for a path outside of it."""
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise NoSuchInput(f"{name} is not below its folder")
    return path


def _only_file(folder: Path) -> Path:
    """The only file in the folder, or the folder itself if it has several."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return files[0] if len(files) == 1 else folder


def _fetch_objects(config: S3Config, bucket: str, key: str, folder: Path, uri: str) -> None:
    import obstore

    store = open_bucket(config, bucket)

    def fetch() -> bool:
        if not key.endswith("/"):
            _save(obstore.get(store, key), folder / Path(key).name)
            return True
        names = [str(item["path"]) for batch in obstore.list(store, key) for item in batch]
        for name in names:
            _save(obstore.get(store, name), below(folder, name.removeprefix(key)))
        return bool(names)

    try:
        found = _call_store(fetch)
    except FileNotFoundError:
        found = False
    if not found:
        raise NoSuchInput(f"{uri} does not exist")


def _save(result: Any, target: Path) -> None:  # noqa: ANN401 - obstore's type is not exported
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as output:
        for chunk in result.stream():
            output.write(bytes(chunk))
