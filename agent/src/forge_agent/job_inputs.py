"""Fetches a job's inputs."""

import logging
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from .config import AgentConfig, S3Config
from .control_plane import ControlPlane
from .file_transfer import download
from .job_files import UnsafeFile, open_file
from .job_listing import list_files
from .lease import Lease
from .s3_bucket import call_store, open_bucket

logger = logging.getLogger(__name__)


class NoSuchInput(Exception):
    """This worker can't read an input. A retry helps only if `transient` is true."""

    def __init__(self, message: str, *, transient: bool = False) -> None:
        super().__init__(message)
        self.transient = transient


def local_path(root: Path, uri: str) -> Path:
    """Resolves forge://artifacts/<key> or file://<absolute path> to a path below `root`.

    Raises NoSuchInput for any other URI, and for a path that is not below `root`.
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
    """Copies the files with these names, or all files below `source` if `names` is None.

    Raises NoSuchInput for a link, which could point anywhere.
    """
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
    """Returns the file if the folder has exactly one, else the folder."""
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
        found = call_store(fetch)
    except FileNotFoundError:
        found = False
    if not found:
        raise NoSuchInput(f"{uri} does not exist")


def _save(result: Any, target: Path) -> None:  # noqa: ANN401 - obstore's type is not exported
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as output:
        for chunk in result.stream():
            output.write(bytes(chunk))
