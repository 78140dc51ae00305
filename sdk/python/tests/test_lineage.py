"""Printing a lineage as a tree."""

from typing import Any

import pytest

from forge import ForgeHTTPError
from forge.cli.lineage import lineage_lines
from forge.models import Lineage


def lineage(root: str, nodes: list[dict[str, Any]], edges: str, **more: object) -> Lineage:
    """Builds a lineage. `edges`: like "a>job_1 b>job_1 job_1>c".

    The relation of an edge is `step` if its source begins with `pipe_`, `output` if its source
    begins with `job_`, and `input` otherwise.
    """
    pairs = [edge.split(">") for edge in edges.split()]
    relations = {"pipe": "step", "job": "output"}
    answer = {
        "artifact_id": root,
        "nodes": nodes,
        "edges": [
            {"from": a, "to": b, "relation": relations.get(a.split("_")[0], "input")}
            for a, b in pairs
        ],
        "truncated": False,
        **more,
    }
    return Lineage.parse(answer)


def artifact(node_id: str, **more: object) -> dict[str, Any]:
    return {"id": node_id, "type": "artifact", "kind": "dataset", **more}


def job(node_id: str, kind: str, status: str = "completed") -> dict[str, Any]:
    return {"id": node_id, "type": "job", "kind": kind, "status": status}


WHOLE = lineage(
    "ckpt",
    [
        artifact("raw", name="law", deleted_at="2026-11-02T00:00:00.000Z"),
        artifact("scored"),
        artifact("ckpt", kind="checkpoint", created_at="2026-11-01T00:00:00.000Z"),
        artifact("report", kind="evaluation_report"),
        job("job_1", "audit"),
        job("job_2", "train"),
        job("job_3", "evaluate", "failed"),
        {"id": "hf", "type": "external"},
        {"id": "pipe_1", "type": "pipeline", "name": "nightly"},
    ],
    "raw>job_1 job_1>scored scored>job_2 raw>job_2 hf>job_2 job_2>ckpt ckpt>job_3 job_3>report "
    "pipe_1>job_2",
)


def test_prints_sources_and_derived_artifacts() -> None:
    assert list(lineage_lines(WHOLE, is_ascii=False)) == [
        "ckpt  checkpoint  2026-11-01T00:00:00.000Z",
        '└── job_2  train job  completed  in pipeline pipe_1 "nightly"',
        "    ├── scored  dataset",
        "    │   └── job_1  audit job  completed",
        '    │       └── raw  dataset  "law"  deleted 2026-11-02T00:00:00.000Z',
        "    ├── raw  (see above)",
        "    └── hf  external",
        "",
        "Made from it:",
        "└── job_3  evaluate job  failed",
        "    └── report  evaluation_report",
    ]


def test_prints_ascii() -> None:
    lines = list(lineage_lines(WHOLE, is_ascii=True))
    assert lines[2:4] == ["    |-- scored  dataset", "    |   `-- job_1  audit job  completed"]
    assert all(line.isascii() for line in lines)


def test_a_cycle_ends() -> None:
    circle = lineage("a", [artifact("a"), job("job_1", "audit")], "a>job_1 job_1>a")
    assert list(lineage_lines(circle, is_ascii=False)) == [
        "a  dataset",
        "└── job_1  audit job  completed",
        "    └── a  (see above)",
        "",
        "Made from it:",
        "└── job_1  (see above)",
    ]


def test_names_nodes_that_the_server_left_out() -> None:
    part = lineage("a", [], "job_1>a job_1>a", truncated=True)
    assert list(lineage_lines(part, is_ascii=False)) == [
        "a",
        "└── job_1",
        "",
        "The server has left out a part of the lineage.",
    ]


def test_a_chain_may_be_longer_than_the_stack() -> None:
    edges = " ".join(f"a{n + 1}>a{n}" for n in range(5000))
    assert len(list(lineage_lines(lineage("a0", [], edges), is_ascii=False))) == 5001


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"artifact_id": "a", "nodes": {}, "edges": []},
        {"artifact_id": "a", "nodes": [1], "edges": []},
        {"artifact_id": "a", "nodes": [{"id": "a"}], "edges": []},
        {"artifact_id": "a", "nodes": [], "edges": [{"from": "a", "to": None}]},
    ],
)
def test_refuses_an_invalid_response(answer: dict[str, Any]) -> None:
    with pytest.raises(ForgeHTTPError):
        Lineage.parse(answer)
