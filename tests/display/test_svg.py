"""Flowcharts as pictures: every part has a place of its own, and no text of a document is anything but text."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot
from tests.plan.test_graph_pipeline import PAGE

from quire.display.flowchart_drawing import svg
from quire.display.flowchart_layout import Placed, layout
from quire.expr import compile, parse
from quire.library.document import read
from quire.plan.flowchart import graph
from quire.plan.nodes import (
    Ask,
    Case,
    Comparison,
    Match,
    Plan,
    Sequence,
    Step,
    Template,
    Think,
    UseTool,
    Work,
)
from quire.plan.pipeline_work import (
    Call,
    Formula,
    OnError,
    Parallel,
    Select,
    Transform,
)
from quire.plan.thread import Thread
from quire.source import Source

NESTED = """pipeline: nest
steps:
  - fold:
      over: ctx.xs
      init: "0"
      output: t
      do:
        for_each:
          over: item
          on_error: retry(1)
          do:
            parallel:
              branches:
                one: {fold: {over: pipe, init: "0", do: {agent: {prompt: x}}, output: y}}
                two: {match: {on: pipe, cases: {a: {pipeline: x}, b: {pipeline: y}}}}
              collect: {transform: {value: pipe}}
          collect: {match: {on: pipe, cases: {a: {pipeline: x}, b: {pipeline: y}}}}
  - parallel: {branches: {p: {tool: {name: a}}, q: {tool: {name: b}}}, collect: {tool: {name: c}}}
"""
LOW, HIGH = Comparison("tier", "==", "low"), Comparison("tier", "==", "high")
THINK = Think(Template(("text",)))
BRANCHES = Plan(
    "Book",
    "playbook",
    (),
    Sequence(
        (
            Step(1, "1", "Ask", ask=Ask("confirm", Template(("ok?",))), work=UseTool("shop", "buy", {})),
            Step(
                2,
                "2",
                "Either",
                work=THINK,
                match=Match((Case(LOW, Sequence((Step(1, "2a", "Low", work=THINK),))),), decide_first=True),
            ),
            Step(
                3,
                "3",
                "Or",
                match=Match(
                    (Case(LOW, Sequence(())), Case(HIGH, Sequence((Step(1, "3a", "High", work=THINK),)))),
                    decide_first=False,
                ),
            ),
        )
    ),
)


def plan(text: str) -> Plan:
    return read(Source.of(text, "p.yaml")).runnable()


def inside(outer: Placed, inner: Placed) -> bool:
    return (
        outer.x - outer.width / 2 <= inner.x - inner.width / 2
        and inner.x + inner.width / 2 <= outer.x + outer.width / 2
        and outer.y <= inner.y
        and inner.y + inner.height <= outer.y + outer.height
    )


def apart(one: Placed, other: Placed) -> bool:
    return (
        abs(one.x - other.x) >= (one.width + other.width) / 2
        or one.y + one.height <= other.y
        or other.y + other.height <= one.y
    )


@pytest.mark.parametrize("drawn", [plan(PAGE), plan(NESTED), BRANCHES], ids=["all", "nested", "branches"])
def test_nothing_stands_on_anything_else(drawn: Plan) -> None:
    chart = layout(graph(drawn))
    assert all(apart(one, other) for one, other in combinations(chart.nodes, 2))
    assert all(apart(box, node) or inside(box, node) for box in chart.boxes for node in chart.nodes)
    assert all(
        apart(one, other) or inside(one, other) or inside(other, one) for one, other in combinations(chart.boxes, 2)
    )
    for route in chart.routes:
        assert all(0 <= x <= chart.width and 0 <= y <= chart.height for x, y in route.points)
        # A line goes through no node but those that it joins.
        for x, y in route.points[1:-1]:
            spot = Placed(x, y, 0, 0, chart.nodes[0].item, [], [])
            assert all(apart(node, spot) for node in chart.nodes), (route, x, y)


def test_which_nodes_a_box_holds() -> None:
    chart = layout(graph(plan(PAGE)))
    held = {box.item.name: [node.item.name for node in chart.nodes if inside(box, node)] for box in chart.boxes}
    assert held == {
        "s3fold": ["s3dovalue"],
        "s4each": ["s4dob1value", "s4dob2tool", "s4docollectvalue"],
        "s4dopar": ["s4dob1value", "s4dob2tool"],
    }


def test_the_file() -> None:
    text = svg(plan("pipeline: two\nsteps:\n- agent: {prompt: hi}\n- tool: {name: ask, args: {prompt: ok?}}\n"))
    bare = re.sub(r' (?:fill|stroke|font|paint|text)[a-z-]*="[^"]*"', "", text)
    assert re.sub(r"<style>.*</defs>", "…", bare, flags=re.DOTALL) == snapshot("""\
<svg xmlns="http://www.w3.org/2000/svg" class="chart" width="246.8" height="384" viewBox="0 0 246.8 384" role="group">
<title>two</title>
…
<rect class="paper" width="246.8" height="384"/>
<g>
</g>
<g>
<path class="line" marker-end="url(#tip)" d="M123.4 58V110"/>
<path class="line" marker-end="url(#tip)" d="M123.4 166V218"/>
<path class="line" marker-end="url(#tip)" d="M123.4 274V326"/>
</g>
<g>
</g>
<g class="node end" data-id="start" role="img">
<title>two</title>
<rect class="shape" x="70.4" y="20" width="106" height="38" rx="19"/>
<text x="123.4" y="43">two</text>
</g>
<g class="node model" data-id="s1model" data-path="1" role="img">
<title>Step 1 - Ask the model (model)</title>
<rect class="shape" x="20" y="110" width="206.8" height="56" rx="4"/>
<text x="123.4" y="133">Step 1 - Ask the model</text>
<text class="what" x="123.4" y="151">model</text>
</g>
<g class="node ask" data-id="s2ask" data-path="2" role="img">
<title>Step 2 - ask (asks)</title>
<polygon class="shape" points="67,218 189.8,218 179.8,274 57,274"/>
<text x="123.4" y="241">Step 2 - ask</text>
<text class="what" x="123.4" y="259">asks</text>
</g>
<g class="node end" data-id="done" role="img">
<title>done</title>
<rect class="shape" x="70.4" y="326" width="106" height="38" rx="19"/>
<text x="123.4" y="349">done</text>
</g>
<g>
</g>
</svg>
""")


def test_the_branches() -> None:
    found = re.findall(r'<text class="label"[^>]*>(.*)</text>', svg(BRANCHES))
    low, high = "tier == &quot;low&quot;", "tier == &quot;high&quot;"
    assert sorted(found) == sorted(["yes", low, "no", low, high, "otherwise"])


def test_a_directive() -> None:
    drawn = Plan("d", "directive", (), Sequence((Step(1, "thread", "d", work=Thread("d")),)))
    assert "a thread: model and tools in turn" in svg(drawn)


def test_light_and_dark_and_nothing_from_elsewhere() -> None:
    text = svg(plan(PAGE))
    assert "@media (prefers-color-scheme: dark)" in text
    assert not re.search(
        r"<script|<foreignObject|<image|href|@import|https?://(?!www\.w3\.org/2000/svg)|\son\w+=", text
    )
    assert text == svg(plan(PAGE))


@given(
    st.text(max_size=40)
    | st.sampled_from(
        ["</text><script>alert(1)</script>", "]]>", "&amp;", '" onload="x', "\x00\x1b\u202e\ud800", "漢字" * 30]
    )
)
def test_any_text_is_text(text: str) -> None:
    formula = Formula(text, compile(parse("1")))
    leaf = Step(1, text, text, work=Transform(formula))
    works: tuple[Work, ...] = (
        Select(formula, ((text, Call(text)),), Call(text)),
        Parallel(((text, leaf), ("b", leaf)), leaf, OnError("abort")),
        UseTool(text, text, {}),
    )
    steps = tuple(Step(at, text, text, work=work) for at, work in enumerate(works, 1))
    drawn = svg(Plan(text, "pipeline", (), Sequence(steps)))
    names = {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(drawn.encode("utf-8")).iter()}
    assert names <= {"svg", "g", "title", "style", "defs", "marker", "path", "rect", "polygon", "text"}


def test_without_a_style_the_look_is_in_attributes_alone() -> None:
    text = svg(plan(PAGE), dark=False)
    assert "<style" not in text and "style=" not in text
    root = ElementTree.fromstring(text)
    inherited = {one for group in root.iter() for one in group if group.get("fill")}
    for shape in root.iter():
        if shape.tag.rpartition("}")[2] in ("rect", "polygon", "path") and shape not in inherited:
            assert shape.get("fill"), ElementTree.tostring(shape)
    assert re.sub(r"<style>.*</style>\n", "", svg(plan(PAGE)), flags=re.DOTALL) == text


def test_nodes_say_which_step_they_stand_for() -> None:
    nodes = [one for one in ElementTree.fromstring(svg(plan(PAGE))).iter() if one.get("role") == "img"]
    named = {one.get("data-id"): (one.get("data-path"), one[0].text) for one in nodes}
    assert named["s4dob1value"] == ("4/for_each/parallel[a-b]", "Step 4.do.a-b - Compute (pipe)")
    assert named["start"] == (None, "all")


def test_a_long_document_is_drawn_quickly() -> None:
    many = tuple(Step(at, str(at), "x", work=Transform(Formula("1", compile(parse("1"))))) for at in range(1, 3_001))
    assert svg(Plan("p", "pipeline", (), Sequence(many))).count("<text ") == 6_002
