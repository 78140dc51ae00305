"""Prints a lineage as a text tree."""

from collections.abc import Iterator, Mapping

from ..models import Lineage, LineageNode

_STEP = "step"


def lineage_lines(lineage: Lineage, *, is_ascii: bool) -> Iterator[str]:
    """Yields the lines: the artifact with its sources, then everything derived from it.

    If a node occurs several times, for example in a cycle, only its first occurrence has the
    description and the branches. Later occurrences have only the id and "(see above)".
    """
    described = _Descriptions(lineage)
    flow = [edge for edge in lineage.edges if edge.relation != _STEP]
    seen = {lineage.artifact_id}
    yield described.line(lineage.artifact_id)
    back = _grouped((edge.target, edge.source) for edge in flow)
    yield from _branches(lineage.artifact_id, back, described, seen, is_ascii)
    onward = _grouped((edge.source, edge.target) for edge in flow)
    if lineage.artifact_id in onward:
        yield ""
        yield "Made from it:"
        yield from _branches(lineage.artifact_id, onward, described, seen, is_ascii)
    if lineage.truncated:
        yield ""
        yield "The server has left out a part of the lineage."


class _Descriptions:
    def __init__(self, lineage: Lineage) -> None:
        self._nodes = lineage.nodes
        steps = (edge for edge in lineage.edges if edge.relation == _STEP)
        self._pipelines = _grouped((edge.target, edge.source) for edge in steps)

    def line(self, node_id: str) -> str:
        node = self._nodes.get(node_id)
        if node is None:  # not in the server's response
            return node_id
        kind = f"{node.kind} job" if node.type == "job" and node.kind else node.kind or node.type
        words = [node.id, kind, _quoted(node), node.status, node.created_at]
        if node.deleted_at:
            words.append(f"deleted {node.deleted_at}")
        words += [f"in pipeline {self._name(each)}" for each in self._pipelines.get(node_id, [])]
        return "  ".join(word for word in words if word)

    def _name(self, pipeline_id: str) -> str:
        node = self._nodes.get(pipeline_id)
        return " ".join(filter(None, [pipeline_id, _quoted(node) if node else None]))


def _quoted(node: LineageNode) -> str | None:
    return f'"{node.name}"' if node.name else None


def _grouped(pairs: Iterator[tuple[str, str]]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for key, value in pairs:
        group = groups.setdefault(key, [])
        if value not in group:
            group.append(value)
    return groups


def _branches(
    root: str,
    children: Mapping[str, list[str]],
    described: _Descriptions,
    seen: set[str],
    is_ascii: bool,
) -> Iterator[str]:
    """Yields the lines below a node. Not recursive: a chain may be longer than Python's stack."""
    fork, end, down = ("|-- ", "`-- ", "|   ") if is_ascii else ("├── ", "└── ", "│   ")

    def below(node_id: str, indent: str) -> list[tuple[str, str, str]]:
        ids = children.get(node_id, [])
        last = len(ids) - 1
        marks = [(end, "    ") if index == last else (fork, down) for index in range(len(ids))]
        entries = [(each, indent + a, indent + b) for each, (a, b) in zip(ids, marks, strict=True)]
        return entries[::-1]

    waiting = below(root, "")
    while waiting:
        node_id, start, indent = waiting.pop()
        if node_id in seen:
            yield f"{start}{node_id}  (see above)"
            continue
        seen.add(node_id)
        yield start + described.line(node_id)
        waiting += below(node_id, indent)
