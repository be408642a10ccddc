"""The JSON of a flowchart: nodes with the paths of their steps, lines between them, and folds that can be opened."""

from __future__ import annotations

from typing import cast

from inline_snapshot import snapshot
from tests.plan.test_graph_folds import flat
from tests.plan.test_graph_pipeline import PAGE

from quire.display.flowchart_drawing import chart_data
from quire.library.document import read
from quire.source import Source
from quire.values import Value, encode


def parts(data: dict[str, Value], name: str) -> list[dict[str, Value]]:
    return cast("list[dict[str, Value]]", data[name])


def test_nodes_lines_and_groups() -> None:
    data = chart_data(read(Source.of(PAGE, "p.yaml")).runnable())
    ids = {str(node["id"]) for node in parts(data, "nodes")}
    assert {str(edge[end]) for edge in parts(data, "edges") for end in ("from", "to")} == ids
    assert {group["id"]: group["path"] for group in parts(data, "groups")} == {
        "s3fold": "3",
        "s4each": "4",
        "s4dopar": "4/for_each",
    }
    assert data["folded"] is False


def test_one_node_and_one_line() -> None:
    data = chart_data(read(Source.of("pipeline: one\nsteps:\n- agent: {prompt: hi}\n", "p.yaml")).runnable())
    assert parts(data, "nodes")[1] == snapshot(
        {
            "id": "s1model",
            "path": "1",
            "kind": "model",
            "label": "Step 1 - Ask the model",
            "what": "model",
            "lines": ["Step 1 - Ask the model", "model"],
            "titles": 1,
            "x": 20.0,
            "y": 110,
            "w": 206.8,
            "h": 56,
        }
    )
    assert parts(data, "edges")[0] == snapshot(
        {
            "from": "start",
            "to": "s1model",
            "label": "",
            "label_at": [123.4, 96],
            "points": [[123.4, 58], [123.4, 58], [123.4, 110]],
            "route": "M123.4 58V110",
            "back": False,
        }
    )


def test_a_long_chart_is_folded_and_small() -> None:
    data = chart_data(flat(800))
    assert data["folded"] is True and len(encode(data)) < 20_000
    first = parts(data, "nodes")[1]
    assert (first["path"], first["until"], first["fold"], first["steps"]) == ("1", "20", "1..20", 20)
    assert len(parts(chart_data(flat(800), opened=["1..20"]), "nodes")) == len(parts(data, "nodes")) + 19
