"""What an artifact was made from, and what was made from it."""

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
    """Of an artifact its kind, of a job its type."""
    name: str | None = None
    status: str | None = None
    created_at: str | None = None
    deleted_at: str | None = None

    @classmethod
    def parse(cls, value: object) -> "LineageNode":
        """Raises ForgeHTTPError."""
        entry = table(value, "nodes")
        more = {
            name: found
            for name in ("kind", "name", "status", "created_at", "deleted_at")
            if isinstance(found := entry.get(name), str)
        }
        return cls(text_of(entry, "id"), text_of(entry, "type"), **more)


@dataclass(frozen=True)
class LineageEdge:
    """Data goes from the source to the target."""

    source: str
    target: str
    relation: str
    """`input` of a job, `output` of one, or the `step` of a pipeline."""

    @classmethod
    def parse(cls, value: object) -> "LineageEdge":
        """Raises ForgeHTTPError."""
        entry = table(value, "edges")
        return cls(text_of(entry, "from"), text_of(entry, "to"), text_of(entry, "relation"))


@dataclass(frozen=True)
class Lineage:
    artifact_id: str
    nodes: Mapping[str, LineageNode]
    edges: tuple[LineageEdge, ...]
    truncated: bool
    """There is more than the API tells at once."""
    answer: Mapping[str, Any]
    """All that the API said."""

    @classmethod
    def parse(cls, answer: Mapping[str, Any]) -> "Lineage":
        """Raises ForgeHTTPError."""
        nodes = [LineageNode.parse(entry) for entry in entries_of(answer.get("nodes"), "nodes")]
        return cls(
            artifact_id=text_of(answer, "artifact_id"),
            nodes={node.id: node for node in nodes},
            edges=tuple(
                LineageEdge.parse(entry) for entry in entries_of(answer.get("edges"), "edges")
            ),
            truncated=answer.get("truncated") is True,
            answer=answer,
        )
