"""Files to and from the control plane: in parts, checked, going on where they broke off."""

import hashlib
import logging
import os
from collections.abc import Iterator, Mapping
from io import BufferedReader
from pathlib import Path
from typing import Any

from .control_plane import TRANSFER_TIMEOUT_S, ControlPlane, ControlPlaneAway, Refused
from .lease import Lease

logger = logging.getLogger(__name__)

PART_BYTES = 8 * 1024 * 1024
_READ_BYTES = 1024 * 1024
_BEYOND = 416
_MAX_MISMATCHES = 3
_HASHED_BYTES_PER_S = 50e6
# A store that can't be reached from here is not asked again: the control plane passes the bytes on.
_DIRECT_TRIES = 2


class TransferFailed(Exception):
    """The bytes that arrive are not the ones that were sent; again and again."""


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def upload(
    control_plane: ControlPlane, lease: Lease, url: str, file: BufferedReader, name: str
) -> None:
    """Sends an open file, while the job is ours and however often the connection breaks.

    Never by its path: another file may be there by now. `name` is for messages. Raises
    JobStopped, Refused, and TransferFailed.
    """
    size = os.fstat(file.fileno()).st_size
    file.seek(0)
    checksum = hashlib.file_digest(file, "sha256").hexdigest()
    headers = {"X-Checksum-Sha256": checksum}
    for _ in range(_MAX_MISMATCHES):
        try:
            if size <= PART_BYTES:
                file.seek(0)
                _upload_whole(control_plane, lease, url, file.read(size), headers)
            else:
                _upload_parts(control_plane, lease, url, file, size, headers)
            return
        except Refused as error:
            if error.code != "checksum_mismatch":
                raise
            logger.warning("%s arrived changed: %s", name, error)
    raise TransferFailed(f"{name} arrived changed {_MAX_MISMATCHES} times")


def _upload_whole(
    control_plane: ControlPlane, lease: Lease, url: str, content: bytes, headers: Mapping[str, str]
) -> None:
    lease.persist(lambda: control_plane.put(url, lease.claim, headers, content), _log_away)


def _upload_parts(
    control_plane: ControlPlane,
    lease: Lease,
    url: str,
    file: BufferedReader,
    size: int,
    headers: Mapping[str, str],
) -> None:
    def send(content: bytes, content_range: str) -> dict[str, Any]:
        return control_plane.put(
            url, lease.claim, {**headers, "Content-Range": content_range}, content, patience_s
        )

    def ask() -> dict[str, Any]:
        return lease.persist(lambda: send(b"", f"bytes */{size}"), _log_away)

    # The last part is answered when the control plane has read the whole file once more.
    patience_s = TRANSFER_TIMEOUT_S + size / _HASHED_BYTES_PER_S

    answer = ask()
    for _ in range(_DIRECT_TRIES):
        if answer["complete"] or "upload" not in answer:
            break
        _upload_direct(control_plane, lease, answer["upload"], file, patience_s)
        answer = ask()
    while not answer["complete"]:
        start = int(answer["received"])
        file.seek(start)
        content = file.read(PART_BYTES)
        lease.require()
        try:
            answer = send(content, f"bytes {start}-{start + len(content) - 1}/{size}")
        except ControlPlaneAway as error:
            # How much of the part arrived is not known here.
            _log_away(error)
            lease.sleep(0.5)
            answer = ask()
        except Refused as error:
            if error.status != 416:
                raise
            answer = ask()


def _upload_direct(
    control_plane: ControlPlane,
    lease: Lease,
    signed: Mapping[str, Any],
    file: BufferedReader,
    timeout_s: float,
) -> None:
    """Sends the whole file past the control plane; what comes of it, that is asked for next."""

    def content() -> Iterator[bytes]:
        file.seek(0)
        while chunk := file.read(_READ_BYTES):
            lease.require()
            yield chunk

    try:
        control_plane.put_elsewhere(str(signed["url"]), signed["headers"], content(), timeout_s)
    except ControlPlaneAway as error:
        _log_away(error)


def download(
    control_plane: ControlPlane, lease: Lease, file: Mapping[str, Any], target: Path
) -> None:
    """Fetches a file of `{url, size_bytes, sha256}`, for as long as the job is ours.

    Raises JobStopped, Refused, and TransferFailed.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.part")
    partial.unlink(missing_ok=True)
    size, checksum = int(file["size_bytes"]), file.get("sha256")
    urls = [str(file["url"])] * _DIRECT_TRIES
    urls.append(str(file.get("fallback_url") or file["url"]))

    def fetch() -> None:
        # The last one is kept to.
        url = urls.pop(0) if len(urls) > 1 else urls[0]
        start = partial.stat().st_size if partial.exists() else 0
        if start >= size > 0:
            return
        with (
            control_plane.get(url, lease.claim, start) as response,
            partial.open("ab" if response.status_code == 206 else "wb") as output,
        ):
            if response.status_code == _BEYOND:
                raise ControlPlaneAway(f"{target.name} has changed there")
            for chunk in response.iter_bytes(_READ_BYTES):
                lease.require()
                output.write(chunk)
        arrived = partial.stat().st_size
        if arrived < size:
            raise ControlPlaneAway(f"{target.name}: {arrived} of {size} bytes came")

    for _ in range(_MAX_MISMATCHES):
        lease.persist(fetch, _log_away)
        is_right = partial.stat().st_size == size
        if is_right and (checksum is None or sha256_of(partial) == checksum):
            partial.replace(target)
            return
        partial.unlink()
    raise TransferFailed(f"{target.name} is not what the control plane says it is")


def _log_away(error: Exception) -> None:
    logger.warning("transfer broke off, and will go on: %s", error)
