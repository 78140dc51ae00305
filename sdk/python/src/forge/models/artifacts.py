"""Artifacts, datasets and their storage usage."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from pydantic import Field

from .base import Model


class Artifact(Model):
    """An artifact of a job, or an uploaded dataset."""

    shown: ClassVar[tuple[str, ...]] = (
        "artifact_id",
        "kind",
        "name",
        "uri",
        "size_bytes",
        "created_at",
        "deleted_at",
    )

    artifact_id: str
    artifact_type: str
    """`dataset`, `checkpoint`, `eval` or `deployment`."""
    kind: str
    uri: str
    name: str | None = None
    created_by: str | None = None
    created_at: datetime | None = None
    source_jobs: list[str] = Field(default_factory=list)
    source_artifacts: list[str] = Field(default_factory=list)
    size_bytes: int | None = None
    deleted_at: datetime | None = None
    manifest: dict[str, Any] = Field(default_factory=dict)


class Dataset(Artifact):
    """An uploaded dataset."""

    shown: ClassVar[tuple[str, ...]] = ("dataset_id", "name", "dataset_uri", "num_rows", "columns")

    dataset_id: str
    dataset_uri: str
    """The URI that audit jobs take. Distill and train jobs take this URI or the dataset's id."""
    num_rows: int | None = None
    # Not `schema`, which is a method of every pydantic model.
    table_schema: dict[str, Any] = Field(default_factory=dict, alias="schema")

    @property
    def columns(self) -> dict[str, str]:
        """The type of each column."""
        entries = self.table_schema.get("columns") or []
        return {str(each.get("name")): str(each.get("dtype")) for each in entries}


class ColumnStatistics(Model):
    """Statistics of one column, over all rows."""

    name: str
    dtype: str
    null_count: int | None = None
    min: Any = None
    max: Any = None
    mean: float | None = None
    stddev: float | None = None
    approx_distinct: int | None = None


class TablePreview(Model):
    """The first rows of a table, and statistics of its columns."""

    shown: ClassVar[tuple[str, ...]] = ("artifact_id", "path", "num_rows", "columns")

    artifact_id: str
    path: str
    num_rows: int
    columns: list[ColumnStatistics] = Field(default_factory=list)
    rows: list[dict[str, Any]] = Field(default_factory=list)
    truncated: bool = False


class StorageUsage(Model):
    """The storage usage of a tenant's artifacts."""

    user_id: str
    period: str
    artifacts: int = 0
    total_bytes: int = 0
    gb_months: float = 0.0
    by_kind: dict[str, dict[str, Any]] = Field(default_factory=dict)


class RetentionRule(Model):
    """How long artifacts of a kind are kept."""

    kind: str
    keep_days: int


class RetentionRules(Model):
    """The retention rules. Kinds without a rule are kept forever."""

    rules: list[RetentionRule] = Field(default_factory=list)


class DownloadTicket(Model):
    """A link to a file, valid for one minute."""

    url: str = Field(repr=False)
    """A path of the API. It gives access to the file without a key."""
    expires_at: datetime
    path: str
    size_bytes: int
