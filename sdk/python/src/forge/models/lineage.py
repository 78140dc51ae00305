"""The lineage of an artifact: its sources and everything derived from it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .files import entries_of, table, text_of


@dataclass(frozen=True)
class LineageNode:
    id: str
    type: str
    """`artifact`, `job`, `pipeline` or `external`."""
    kind: str | None = None
    """An artifact's kind, or a job's type."""
    name: str | None = None
    status: str | None = None
    created_at: str | None = None
    deleted_at: str | None = None

    @classmethod
    def parse(cls, value: object) -> "LineageNode":
        """Parses a node. Raises ForgeHTTPError if a required field is missing or invalid."""
        entry = table(value, "nodes")
        more = {
            name: found
            for name in ("kind", "name", "status", "created_at", "deleted_at")
            if isinstance(found := entry.get(name), str)
        }
        return cls(text_of(entry, "id"), text_of(entry, "type"), **more)


@dataclass(frozen=True)
class LineageEdge:
    """A directed edge. Data flows from `source` to `target`.

    For the relation `step`, `source` is the pipeline and `target` is its job.
    """

    source: str
    target: str
    relation: str
    """`input` of a job, `output` of a job, or `step` of a pipeline."""

    @classmethod
    def parse(cls, value: object) -> "LineageEdge":
        """Parses an edge. Raises ForgeHTTPError if a required field is missing or invalid."""
        entry = table(value, "edges")
        return cls(text_of(entry, "from"), text_of(entry, "to"), text_of(entry, "relation"))


@dataclass(frozen=True)
class Lineage:
    artifact_id: str
    nodes: Mapping[str, LineageNode]
    edges: tuple[LineageEdge, ...]
    truncated: bool
    """Whether the API has left out a part of the lineage."""
    answer: Mapping[str, Any]
    """The whole response of the API."""

    @classmethod
    def parse(cls, answer: Mapping[str, Any]) -> "Lineage":
        """Parses a lineage. Raises ForgeHTTPError if a required field is missing or invalid."""
        nodes = list(map(LineageNode.parse, entries_of(answer.get("nodes"), "nodes")))
        return cls(
            artifact_id=text_of(answer, "artifact_id"),
            nodes={node.id: node for node in nodes},
            edges=tuple(map(LineageEdge.parse, entries_of(answer.get("edges"), "edges"))),
            truncated=answer.get("truncated") is True,
            answer=answer,
        )
