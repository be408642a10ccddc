"""JSON of a flowchart with its layout, for a page that draws it and colours its nodes by the state of a run.

Coordinates are pixels from the upper left corner; a box is given by its upper left corner, its width and its height.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from quire.display.flowchart_layout import Chart, Placed, Route, Track, layout
from quire.display.flowchart_marks import NO_OVERLAY, Overlay, on_nodes
from quire.display.flowchart_svg import points_path, route_path
from quire.plan.flowchart import MOST_NODES, Node, graph
from quire.plan.flowchart_folds import fold_id

if TYPE_CHECKING:
    from quire.plan.nodes import Plan
    from quire.values import Value


def chart_data(
    plan: Plan, most: int | None = MOST_NODES, opened: Collection[str] = (), overlay: Overlay = NO_OVERLAY
) -> dict[str, Value]:
    """Return the chart of a plan. More than `most` nodes are folded; `opened` are the values of `fold` of those nodes
    that are to be drawn with all they hold. `overlay` has marks and ways by the paths of steps: a chart without any has
    no `marks` and no `ways`."""
    items = graph(plan, most, opened)
    chart = layout(items, on_nodes(overlay, items, [path for path, _ in plan.steps()]))
    return {
        "width": _px(chart.width),
        "height": _px(chart.height),
        "folded": any(isinstance(one.item, Node) and one.item.folds for one in chart.nodes),
        "nodes": [_node(one) for one in chart.nodes],
        "edges": _edges(chart),
        "groups": [
            {
                "id": one.item.name,
                "path": one.item.path,
                "label": one.item.head,
                "what": one.item.what,
                "lines": list(one.head),
                **_box(one),
            }
            for one in chart.boxes
        ],
        **({"ways": [_way(track) for track in chart.tracks]} if chart.tracks else {}),
    }


def _node(placed: Placed) -> Value:
    item = placed.item
    assert isinstance(item, Node)  # noqa: S101  # boxes are groups
    return {
        "id": item.name,
        "path": item.path or None,
        "kind": item.shape,
        "label": item.head,
        "what": item.what,
        "lines": [*placed.head, *placed.what],
        "titles": len(placed.head),
        **_box(placed),
        **({"marks": [{"kind": kind, "text": line} for kind, line in placed.marks]} if placed.marks else {}),
        **({"fold": fold_id(item.path, item.until), "until": item.until, "steps": item.folds} if item.folds else {}),
    }


def _edges(chart: Chart) -> list[Value]:
    return [_edge(route) for route in chart.routes]


def _edge(route: Route) -> Value:
    return {
        "from": route.start,
        "to": route.end,
        "label": route.label,
        "label_at": [_px(route.at[0]), _px(route.at[1])],
        "points": [[_px(x), _px(y)] for x, y in route.points],
        "route": route_path(route),
        "back": route.back,
    }


def _way(track: Track) -> Value:
    return {
        "kind": track.kind,
        "from": track.start,
        "to": track.end,
        "label": track.label,
        "label_at": [_px(track.at[0]), _px(track.at[1])],
        "route": points_path(track.points),
        "end": [_px(track.points[-1][0]), _px(track.points[-1][1])],
    }


def _box(placed: Placed) -> dict[str, Value]:
    left = placed.x - placed.width / 2
    return {"x": _px(left), "y": _px(placed.y), "w": _px(placed.width), "h": _px(placed.height)}


def _px(value: float) -> Value:
    return round(value, 1)
