"""Folded flowcharts: a long document has few nodes, every step is in one of them, and each fold can be opened."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from quire.expr import compile, parse
from quire.plan.flowchart import Line, Node, graph
from quire.plan.flowchart_folds import SPAN, fold_id
from quire.plan.nodes import (
    Case,
    Comparison,
    Match,
    Plan,
    Sequence,
    Step,
    Template,
    Think,
)
from quire.plan.pipeline_work import (
    Fold,
    ForEach,
    Formula,
    OnError,
    Parallel,
    Transform,
)

PURE = Transform(Formula("1", compile(parse("1"))))
ABORT = OnError("abort")


def leaf(at: int) -> Step:
    return Step(at, str(at), "x", work=PURE)


def flat(count: int) -> Plan:
    return Plan("p", "pipeline", (), Sequence(tuple(leaf(at) for at in range(1, count + 1))))


def nodes(plan: Plan, most: int | None, *opened: str) -> list[Node]:
    return [item for item in graph(plan, most, opened) if isinstance(item, Node)]


@st.composite
def steps(draw: st.DrawFn, depth: int = 0) -> Step:
    kind = draw(st.sampled_from(["leaf", "for_each", "fold", "parallel", "match"] if depth < 3 else ["leaf"]))
    inner = steps(depth + 1)
    match kind:
        case "for_each":
            return Step(1, "e", "each", work=ForEach(None, draw(inner), draw(inner), ABORT))
        case "fold":
            return Step(1, "f", "fold", work=Fold(None, PURE.value, draw(inner)))
        case "parallel":
            branches = draw(st.lists(inner, min_size=1, max_size=4))
            named = tuple((f"b{at}", one) for at, one in enumerate(branches))
            return Step(1, "p", "par", work=Parallel(named, draw(inner), ABORT))
        case "match":
            test = Comparison("a", "==", "b")
            cases = [Case(test, numbered(draw(st.lists(inner, max_size=3)))) for _ in range(draw(st.integers(1, 3)))]
            return Step(1, "m", "match", work=Think(Template(("x",))), match=Match(tuple(cases), draw(st.booleans())))
    return leaf(1)


def numbered(found: list[Step]) -> Sequence:
    from msgspec.structs import replace

    return Sequence(tuple(replace(one, position=at) for at, one in enumerate(found, 1)))


plans = st.lists(steps(), max_size=12).map(lambda found: Plan("p", "pipeline", (), numbered(found)))


def holds(node: Node, path: str) -> bool:
    """Tell whether the step at a path is drawn by this node, or folded into it."""
    if not node.folds:
        return node.path == path
    firsts = [str(at) for at in range(int(node.path), int(node.until) + 1)] if SPAN in fold_of(node) else [node.path]
    return any(path == one or path.startswith(f"{one}/") for one in firsts)


def fold_of(node: Node) -> str:
    return fold_id(node.path, node.until)


@given(plans, st.integers(1, 30))
def test_every_step_is_drawn_or_folded_once(plan: Plan, most: int) -> None:
    found = nodes(plan, most)
    folded = [node for node in found if node.folds]
    whole = {node.path for node in nodes(plan, None)}
    for path, _ in plan.steps():
        within = [node for node in folded if holds(node, path)]
        assert len(within) <= 1
        assert within or path not in whole or any(node.path == path for node in found)
    total = sum(node.folds for node in folded)
    assert total == sum(1 for path, _ in plan.steps() if any(holds(node, path) for node in folded))


@given(plans, st.integers(1, 30))
def test_lines_join_nodes_that_are_there(plan: Plan, most: int) -> None:
    items = graph(plan, most)
    names = {item.name for item in items if isinstance(item, Node)}
    lines = [item for item in items if isinstance(item, Line)]
    assert {end for line in lines for end in (line.start, line.end)} <= names
    assert names - {"start"} <= {line.end for line in lines}


@given(plans, st.integers(1, 30))
def test_opening_all_folds_gives_the_whole_chart(plan: Plan, most: int) -> None:
    opened: set[str] = set()
    while folds := {fold_of(node) for node in nodes(plan, most, *opened) if node.folds}:
        assert not folds & opened
        opened |= folds
    assert nodes(plan, most, *opened) == nodes(plan, None)


def test_a_short_document_is_not_folded() -> None:
    assert nodes(flat(150), 152) == nodes(flat(150), None)


def test_a_flat_document_is_folded_in_runs() -> None:
    found = nodes(flat(800), 150)
    assert len(found) == 42
    assert (found[1].head, found[1].what, found[1].folds) == ("Steps 1 to 20", "20 steps, folded", 20)
    assert [node.path for node in nodes(flat(800), 150, "1..20")[1:4]] == ["1", "2", "3"]


def test_the_largest_steps_are_folded_first() -> None:
    wide = Parallel(tuple((f"b{at}", leaf(1)) for at in range(100)), leaf(1), ABORT)
    plan = Plan("p", "pipeline", (), Sequence((leaf(1), Step(2, "2", "wide", work=wide), leaf(3))))
    found = {node.path: node.folds for node in nodes(plan, 20)}
    assert found == {"": 0, "1": 0, "2": 102, "3": 0}
    inside = [node for node in nodes(plan, 20, "2") if node.folds]
    assert len(inside) == 33 and inside[0].head == "Steps 1 to 1"
