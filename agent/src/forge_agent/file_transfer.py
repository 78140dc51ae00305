"""Transfers files to and from the control plane: in parts, with checksums, resumable."""

import hashlib
import logging
import os
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from io import BufferedReader
from pathlib import Path
from typing import Any

from .control_plane import TRANSFER_TIMEOUT_S, ControlPlane, ControlPlaneUnavailable, Refused
from .lease import Lease

logger = logging.getLogger(__name__)

PART_BYTES = 8 * 1024 * 1024
_READ_BYTES = 1024 * 1024
_MAX_MISMATCHES = 3
_HASHED_BYTES_PER_S = 50e6
# Number of tries to transfer a file directly to or from the store. If all fail, the control plane
# forwards the bytes.
_DIRECT_TRIES = 2


class TransferFailed(Exception):
    """Several transfers of a file had a wrong checksum or size."""


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def upload(
    control_plane: ControlPlane, lease: Lease, url: str, file: BufferedReader, name: str
) -> None:
    """Uploads an open file. Retries after lost connections until the lease stops.

    Takes an open file, because the job could replace the file at a path. `name` is for messages.
    Raises JobStopped, Refused and TransferFailed.
    """
    size = os.fstat(file.fileno()).st_size
    file.seek(0)
    headers = {"X-Checksum-Sha256": hashlib.file_digest(file, "sha256").hexdigest()}
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
            logger.warning("%s: checksum mismatch: %s", name, error)
    raise TransferFailed(f"{name}: checksum mismatch {_MAX_MISMATCHES} times")


def _upload_whole(
    control_plane: ControlPlane, lease: Lease, url: str, content: bytes, headers: Mapping[str, str]
) -> None:
    lease.retry(lambda: control_plane.put(url, lease.proof, headers, content), _log_unavailable)


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
            url, lease.proof, {**headers, "Content-Range": content_range}, content, final_timeout_s
        )

    def query() -> dict[str, Any]:
        return lease.retry(lambda: send(b"", f"bytes */{size}"), _log_unavailable)

    # The control plane hashes the whole file before it responds to the last part, so the timeout
    # grows with the file's size.
    final_timeout_s = TRANSFER_TIMEOUT_S + size / _HASHED_BYTES_PER_S

    answer = query()
    for _ in range(_DIRECT_TRIES):
        if answer["complete"] or "upload" not in answer:
            break
        _upload_direct(control_plane, lease, answer["upload"], file, final_timeout_s)
        answer = query()
    while not answer["complete"]:
        start = int(answer["received"])
        file.seek(start)
        content = file.read(PART_BYTES)
        lease.require()
        try:
            answer = send(content, f"bytes {start}-{start + len(content) - 1}/{size}")
        except ControlPlaneUnavailable as error:
            # Part of the request may have arrived, so query the received length.
            _log_unavailable(error)
            lease.sleep(0.5)
            answer = query()
        except Refused as error:
            if error.status != 416:
                raise
            answer = query()


def _upload_direct(
    control_plane: ControlPlane,
    lease: Lease,
    signed: Mapping[str, Any],
    file: BufferedReader,
    timeout_s: float,
) -> None:
    """Uploads the whole file directly to the store. Only logs a failure of the store.

    The caller asks the control plane whether the file has arrived.
    """

    def content() -> Iterator[bytes]:
        file.seek(0)
        while chunk := file.read(_READ_BYTES):
            lease.require()
            yield chunk

    try:
        control_plane.put_elsewhere(str(signed["url"]), signed["headers"], content(), timeout_s)
    except ControlPlaneUnavailable as error:
        _log_unavailable(error)


def download(
    control_plane: ControlPlane, lease: Lease, file: Mapping[str, Any], target: Path
) -> None:
    """Downloads a file described by `{url, size_bytes, sha256}`. Retries until the lease stops.

    Raises JobStopped, Refused and TransferFailed.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.part")
    partial.unlink(missing_ok=True)
    size, checksum = int(file["size_bytes"]), file.get("sha256")
    urls = [str(file["url"])] * _DIRECT_TRIES
    urls.append(str(file.get("fallback_url") or file["url"]))

    def fetch() -> None:
        # Each try takes the next URL of the list. The last URL is never removed: after the direct
        # tries, all further tries use it.
        url = urls.pop(0) if len(urls) > 1 else urls[0]
        start = partial.stat().st_size if partial.exists() else 0
        if start >= size > 0:
            return
        with (
            control_plane.get(url, lease.proof, start) as response,
            partial.open("ab" if response.status_code == 206 else "wb") as output,
        ):
            if response.status_code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                raise ControlPlaneUnavailable(f"{target.name} has changed in the store")
            for chunk in response.iter_bytes(_READ_BYTES):
                lease.require()
                output.write(chunk)
        arrived = partial.stat().st_size
        if arrived < size:
            raise ControlPlaneUnavailable(f"{target.name}: received {arrived} of {size} bytes")

    for _ in range(_MAX_MISMATCHES):
        lease.retry(fetch, _log_unavailable)
        has_size = partial.stat().st_size == size
        if has_size and (checksum is None or sha256_of(partial) == checksum):
            partial.replace(target)
            return
        partial.unlink()
    raise TransferFailed(f"{target.name} does not match its size or checksum")


def _log_unavailable(error: Exception) -> None:
    logger.warning("transfer interrupted, retrying: %s", error)
