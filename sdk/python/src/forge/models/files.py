"""The files in a manifest. Validated, because other code relies on their paths and sizes."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import ForgeHTTPError
from ..paths import segments_of

MANIFEST_FILE = "manifest.json"
"""The name of the manifest in its artifact's folder."""


@dataclass(frozen=True)
class ArtifactFile:
    path: str
    size_bytes: int
    sha256: str

    @classmethod
    def parse(cls, value: object) -> "ArtifactFile":
        """Parses an entry of a manifest.

        Raises ForgeHTTPError for an invalid entry, and UnsafePathError for an unsafe path.
        """
        entry = table(value, "files")
        path, size = text_of(entry, "path"), entry.get("size_bytes")
        sha256 = text_of(entry, "sha256")
        segments_of(path)
        if not isinstance(size, int) or isinstance(size, bool) or size < 0:
            raise ForgeHTTPError(f"size_bytes of {path} is not a size")
        if not re.fullmatch(r"[0-9a-f]{64}", sha256):
            raise ForgeHTTPError(f"sha256 of {path} is not a checksum")
        return cls(path, size, sha256)


def files_of(answer: Mapping[str, Any]) -> tuple[ArtifactFile, ...]:
    """Parses the field `files` of a manifest, or of the API's list of files.

    Raises ForgeHTTPError and UnsafePathError.
    """
    return tuple(map(ArtifactFile.parse, entries_of(answer.get("files") or [], "files")))


def table(value: object, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ForgeHTTPError(f"{name} in the response is not an object")
    return value


def entries_of(value: object, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise ForgeHTTPError(f"{name} in the response is not a list")
    return value


def text_of(answer: Mapping[str, Any], name: str) -> str:
    value = answer.get(name)
    if not isinstance(value, str):
        raise ForgeHTTPError(f"{name} in the response is not a string")
    return value
