"""Artifacts: metadata, lineage and files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from .. import pull as pulling
from .. import verification
from ..async_transport import AsyncTransport
from ..errors import ForgeAPIError, ForgeError
from ..in_thread import R, T, run_in_thread
from ..listing import PageRequest
from ..models import (
    MANIFEST_FILE,
    Artifact,
    ArtifactFile,
    DownloadTicket,
    Lineage,
    RetentionRules,
    StorageUsage,
    TablePreview,
    files_of,
)
from ..operation import Async, M, Resource, Sync, listing, operation
from ..paths import segments_of
from ..pull import OnProgress, Progress, Pulled
from ..request import Request, get, path_of
from ..transport import Transport
from ..verification import FileCheck, OnCheck, Outcome, Verification

_GONE = {(404, "file_not_found"), (410, "artifact_deleted")}

Files = tuple[ArtifactFile, ...]


class ArtifactsOperations(Resource[M]):
    """The methods of `client.artifacts` that `Forge` and `AsyncForge` share."""

    @listing
    def list(
        self,
        *,
        type: str | None = None,
        kind: str | None = None,
        job_id: str | None = None,
        source: str | None = None,
        name: str | None = None,
        q: str | None = None,
        created_after: datetime | str | None = None,
        created_before: datetime | str | None = None,
        deleted: bool | None = None,
        user_id: str | None = None,
        limit: int | None = None,
        page_size: int | None = None,
    ) -> PageRequest[Artifact]:
        """Lists artifacts, newest first. `limit`: maximum number in total."""
        query = {
            "type": type,
            "kind": kind,
            "job_id": job_id,
            "source": source,
            "name": name,
            "q": q,
            "created_after": created_after,
            "created_before": created_before,
            "deleted": deleted,
            "user_id": user_id,
        }
        return PageRequest("/api/artifacts", "artifacts", Artifact, query, limit, page_size)

    @operation
    def get(self, artifact_id: str) -> Request[Artifact]:
        """Reads an artifact with its manifest."""
        return get(path_of("/api/artifacts/{}", artifact_id), Artifact)

    @operation
    def delete(self, artifact_id: str) -> Request[Artifact]:
        """Deletes the artifact's files. Keeps the artifact's entry and manifest.

        Raises ConflictError if the artifact is in use.
        """
        return Request("DELETE", path_of("/api/artifacts/{}", artifact_id), Artifact)

    @operation
    def manifest(self, artifact_id: str) -> Request[dict[str, Any]]:
        """Reads the manifest from the registry.

        `verify` compares it with the manifest.json in the artifact's folder.
        """
        return get(path_of("/api/artifacts/{}/manifest", artifact_id), dict)

    @operation
    def files(self, artifact_id: str) -> Request[Files]:
        """Lists the files in the artifact's manifest."""
        return get(path_of("/api/artifacts/{}/files", artifact_id), files_of)

    @operation
    def download_ticket(self, artifact_id: str, path: str) -> Request[DownloadTicket]:
        """Creates a link to one file, for a browser.

        The link needs no key, and works for one minute. Its `url` is a path of the API: put the
        client's `base_url` in front of this path.
        """
        address = path_of("/api/artifacts/{}/tickets", artifact_id)
        return Request("POST", address, DownloadTicket, body={"path": path})

    @operation
    def lineage(self, artifact_id: str) -> Request[Lineage]:
        """Reads the artifact's lineage: its sources and everything derived from it."""
        return get(path_of("/api/artifacts/{}/lineage", artifact_id), Lineage.parse)

    @operation
    def preview(self, artifact_id: str, path: str | None = None) -> Request[TablePreview]:
        """Reads the first rows of a table, and statistics of its columns."""
        address = path_of("/api/artifacts/{}/preview", artifact_id)
        return Request("GET", address, TablePreview, {"path": path}).slow()

    @operation
    def storage(
        self, period: str | None = None, *, user_id: str | None = None
    ) -> Request[StorageUsage]:
        """Reads how much storage the artifacts use: the current size, and one month's usage.

        The size is in bytes, and the month's usage in GB-months (gigabytes multiplied by months).

        `period`: a month in UTC, such as `2026-11`. Default: this month.
        """
        return get("/api/storage", StorageUsage, period=period, user_id=user_id)

    @operation
    def retention(self, *, user_id: str | None = None) -> Request[RetentionRules]:
        """Reads the retention rules."""
        return get("/api/retention", RetentionRules, user_id=user_id)

    @operation
    def set_retention(
        self, rules: Sequence[Mapping[str, Any]], *, user_id: str | None = None
    ) -> Request[RetentionRules]:
        """Replaces the retention rules: `[{"kind": "raw_dataset", "keep_days": 30}]`."""
        query = {"user_id": user_id}
        body = {"rules": [dict(rule) for rule in rules]}
        return Request("PUT", "/api/retention", RetentionRules, query, body)


class Artifacts(ArtifactsOperations[Sync]):
    """`Forge.artifacts`."""

    _transport: Transport

    def download(
        self, artifact_id: str, path: str, target: Path | str, on_progress: OnProgress | None = None
    ) -> Path:
        """Downloads one file of the manifest. Resumes after a lost connection.

        Raises IntegrityError if the file does not match the manifest, and ForgeError if the
        manifest has no such file. In both cases, the target is not written.
        """
        files = files_of(self.manifest(artifact_id))
        file = next((file for file in files if file.path == path), None)
        if file is None:
            raise ForgeError(f"the manifest of {artifact_id} has no file {path!r}")
        done = 0

        def advance(path: str, count: int) -> None:
            nonlocal done
            done += count
            if on_progress:
                on_progress(Progress(path, done, file.size_bytes))

        with closing(self._transport.stream(_file_address(artifact_id, path))) as chunks:
            pulling.save(file, pulling.counted(chunks, path, advance), Path(target))
        return Path(target)

    def pull(
        self, artifact_id: str, directory: Path | str, on_progress: OnProgress | None = None
    ) -> Pulled:
        """Downloads all files and manifest.json. Skips files that are already correct.

        Raises IntegrityError if a file does not match the manifest, and UnsafePathError if a path
        is unsafe, for example because it leads out of the directory.
        """
        return pulling.pull(
            self.manifest(artifact_id),
            lambda path: self._transport.stream(_file_address(artifact_id, path)),
            Path(directory),
            on_progress,
        )

    def archive(self, artifact_id: str, target: Path | str) -> Path:
        """Downloads all files as one tar file. Does not verify them: prefer `pull`."""
        return pulling.save_unchecked(
            self._transport.stream(path_of("/api/artifacts/{}/archive", artifact_id)), Path(target)
        )

    def verify(self, artifact_id: str, on_check: OnCheck | None = None) -> Verification:
        """Downloads all files and compares them with the manifest, without storing them."""

        def check(file: ArtifactFile) -> FileCheck:
            try:
                with closing(
                    self._transport.stream(_file_address(artifact_id, file.path))
                ) as chunks:
                    return verification.check_content(file, chunks)
            except ForgeAPIError as error:
                _require_gone(error)
                return FileCheck(file.path, Outcome.MISSING, error.message)

        def stored_manifest() -> bytes | None:
            try:
                return b"".join(self._transport.stream(_file_address(artifact_id, MANIFEST_FILE)))
            except ForgeAPIError as error:
                _require_gone(error)
                return None

        manifest = self.manifest(artifact_id)
        return verification.verify(
            artifact_id, manifest, check, stored_manifest, lambda: (), on_check
        )

    def verify_local(
        self, artifact_id: str, directory: Path | str, on_check: OnCheck | None = None
    ) -> Verification:
        """Compares the files in a directory with the registry's manifest.

        Raises ForgeError if there is no such directory.
        """
        manifest = self.manifest(artifact_id)
        return verification.verify_local(artifact_id, manifest, Path(directory), on_check)


class AsyncArtifacts(ArtifactsOperations[Async]):
    """`AsyncForge.artifacts`. Transfers and checks files in threads."""

    _transport: AsyncTransport

    async def _in_thread(
        self, method: Callable[..., R], on_progress: Callable[[T], None] | None, *args: object
    ) -> R:
        """Runs a method of `Artifacts` in a thread.

        The method's last argument is a callback. When the method calls this callback,
        `on_progress` is called in the event loop.
        """
        return await run_in_thread(
            self._transport.wire,
            lambda transport, report: method(Artifacts(transport), *args, report),
            on_progress,
        )

    async def download(
        self, artifact_id: str, path: str, target: Path | str, on_progress: OnProgress | None = None
    ) -> Path:
        """Downloads one file of the manifest. Resumes after a lost connection.

        Raises IntegrityError if the file does not match the manifest, and ForgeError if the
        manifest has no such file. In both cases, the target is not written.
        """
        return await self._in_thread(Artifacts.download, on_progress, artifact_id, path, target)

    async def pull(
        self, artifact_id: str, directory: Path | str, on_progress: OnProgress | None = None
    ) -> Pulled:
        """Downloads all files and manifest.json. Skips files that are already correct.

        Raises IntegrityError if a file does not match the manifest, and UnsafePathError if a path
        is unsafe, for example because it leads out of the directory.
        """
        return await self._in_thread(Artifacts.pull, on_progress, artifact_id, directory)

    async def archive(self, artifact_id: str, target: Path | str) -> Path:
        """Downloads all files as one tar file. Does not verify them: prefer `pull`."""
        wire = self._transport.wire
        return await run_in_thread(
            wire, lambda transport, _: Artifacts(transport).archive(artifact_id, target), None
        )

    async def verify(self, artifact_id: str, on_check: OnCheck | None = None) -> Verification:
        """Downloads all files and compares them with the manifest, without storing them."""
        return await self._in_thread(Artifacts.verify, on_check, artifact_id)

    async def verify_local(
        self, artifact_id: str, directory: Path | str, on_check: OnCheck | None = None
    ) -> Verification:
        """Compares the files in a directory with the registry's manifest.

        Raises ForgeError if there is no such directory.
        """
        return await self._in_thread(Artifacts.verify_local, on_check, artifact_id, directory)


def _require_gone(error: ForgeAPIError) -> None:
    if (error.status, error.code) not in _GONE:
        raise error


def _file_address(artifact_id: str, path: str) -> str:
    names = (quote(name, safe="") for name in segments_of(path))
    return path_of("/api/artifacts/{}/files", artifact_id) + "/" + "/".join(names)
