"""Compares an artifact's files with its manifest."""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from . import paths
from .errors import ForgeError
from .models import MANIFEST_FILE, ArtifactFile, files_of
from .retry_policy import parse_json

_READ_BYTES = 1024 * 1024


class Outcome(str, Enum):
    OK = "ok"
    CHANGED = "changed"
    SIZE_DIFFERS = "size_differs"
    MISSING = "missing"
    EXTRA = "extra"

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True)
class FileCheck:
    path: str
    outcome: Outcome
    detail: str | None = None


OnCheck = Callable[[FileCheck], None]
"""Called after each file's check."""


@dataclass(frozen=True)
class Verification:
    artifact_id: str
    verified: bool
    """The manifest's `verified`. False: the control plane could not read some of the files."""
    checks: tuple[FileCheck, ...]

    @property
    def ok(self) -> bool:
        return self.verified and all(check.outcome is Outcome.OK for check in self.checks)

    def as_json(self) -> dict[str, Any]:
        return {
            "artifact_id": self.artifact_id,
            "ok": self.ok,
            "verified": self.verified,
            "files": [
                {"path": check.path, "outcome": str(check.outcome), "detail": check.detail}
                for check in self.checks
            ],
        }


def verify(
    artifact_id: str,
    manifest: Mapping[str, Any],
    check_file: Callable[[ArtifactFile], FileCheck],
    stored_manifest: Callable[[], bytes | None],
    extra: Callable[[], Iterable[str]],
    on_check: OnCheck | None,
) -> Verification:
    """Checks the manifest's files and the stored manifest.json.

    `extra` returns the paths of files that are not in the manifest. Each is reported as EXTRA.
    Raises the errors of `files_of` and of the functions that the caller passes.
    """

    def checks() -> Iterator[FileCheck]:
        yield from map(check_file, files_of(manifest))
        yield _check_manifest(manifest, stored_manifest())
        for path in extra():
            yield FileCheck(path, Outcome.EXTRA)

    found = []
    for check in checks():
        found.append(check)
        if on_check:
            on_check(check)
    # `verified` may have any value in the response. Only a literal true means verified.
    return Verification(artifact_id, manifest.get("verified") is True, tuple(found))


def check_content(file: ArtifactFile, chunks: Iterable[bytes]) -> FileCheck:
    """Compares received bytes with the manifest. Stops when there are too many bytes."""
    digest, size = hashlib.sha256(), 0
    for chunk in chunks:
        size += len(chunk)
        if size > file.size_bytes:
            return FileCheck(file.path, Outcome.SIZE_DIFFERS, f"more than {file.size_bytes} bytes")
        digest.update(chunk)
    if size != file.size_bytes:
        return FileCheck(file.path, Outcome.SIZE_DIFFERS, f"{size} bytes, not {file.size_bytes}")
    if digest.hexdigest() != file.sha256:
        detail = f"SHA-256 {digest.hexdigest()}, not {file.sha256}"
        return FileCheck(file.path, Outcome.CHANGED, detail)
    return FileCheck(file.path, Outcome.OK)


def check_local(root: Path, file: ArtifactFile) -> FileCheck:
    """Compares a file below a root with the manifest. Raises OSError and UnsafePathError."""
    place = paths.find(root, file.path)
    if place is None:
        return FileCheck(file.path, Outcome.MISSING)
    size = place.stat().st_size
    if size != file.size_bytes:
        return FileCheck(file.path, Outcome.SIZE_DIFFERS, f"{size} bytes, not {file.size_bytes}")
    with place.open("rb") as content:
        return check_content(file, iter(lambda: content.read(_READ_BYTES), b""))


def verify_local(
    artifact_id: str, manifest: Mapping[str, Any], root: Path, on_check: OnCheck | None
) -> Verification:
    """Compares the files in a folder with the manifest.

    Raises ForgeError if the folder does not exist. Also raises OSError and UnsafePathError.
    """
    if not root.is_dir():
        raise ForgeError(f"{root} is not a directory")
    known = {file.path for file in files_of(manifest)} | {MANIFEST_FILE}

    def stored_manifest() -> bytes | None:
        place = paths.find(root, MANIFEST_FILE)
        return place.read_bytes() if place else None

    return verify(
        artifact_id,
        manifest,
        lambda file: check_local(root, file),
        stored_manifest,
        lambda: sorted(_files_below(root) - known),
        on_check,
    )


def _files_below(root: Path) -> set[str]:
    """The paths of all files below a root, including links to folders."""

    def fail(error: OSError) -> None:
        raise error

    found: set[str] = set()
    for folder, folders, names in os.walk(root, onerror=fail):
        links = [name for name in folders if Path(folder, name).is_symlink()]
        found.update(Path(folder, name).relative_to(root).as_posix() for name in names + links)
    return found


def _check_manifest(manifest: Mapping[str, Any], stored: bytes | None) -> FileCheck:
    if stored is None:
        return FileCheck(MANIFEST_FILE, Outcome.MISSING)
    try:
        is_same = _is_same(parse_json(stored), dict(manifest))
    except RecursionError:
        is_same = False
    if is_same:
        return FileCheck(MANIFEST_FILE, Outcome.OK)
    return FileCheck(MANIFEST_FILE, Outcome.CHANGED, "not the manifest in the registry")


def _is_same(a: object, b: object) -> bool:
    """JSON equality: 1 equals 1.0, but unlike in Python, 1 does not equal true."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_is_same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_is_same, a, b))
    return isinstance(a, bool) == isinstance(b, bool) and a == b
