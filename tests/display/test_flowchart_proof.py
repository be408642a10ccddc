"""Effects and flows on flowcharts: as words and lines in each picture, and nothing where there are none."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from itertools import combinations
from typing import cast

import pytest
from inline_snapshot import snapshot
from tests.analysis.rules.rule_cases import proof_of
from tests.plan.test_graph_folds import flat

from quire.display.flowchart_drawing import chart_data, mermaid, svg
from quire.display.flowchart_layout import layout
from quire.display.flowchart_marks import MOST_MARKS, Mark, Overlay, Way, on_nodes, overlay_of
from quire.library.document import read
from quire.plan.flowchart import graph
from quire.source import Source
from quire.values import Value

DIGEST = """pipeline: digest
dialect: quire
steps:
  - tool: {name: http__get, args: {url: "https://example.org/feed"}, output: page}
  - agent: {prompt: "Sum up: {ctx.page}", output: summary, capabilities: {tools: []}}
  - tool: {name: ask, args: {type: confirm, prompt: "Publish?"}, output: ok}
  - shell: {when: ctx.ok == 'yes', command: !expr "['publish', ctx.summary]"}
  - tool: {name: file__write, args: {path: reports/x.md, content: !expr ctx.summary}}
"""
PLAIN = "pipeline: plain\nsteps:\n- agent: {prompt: hi, capabilities: {tools: []}}\n- transform: {value: pipe}\n"
TREE = "{http://www.w3.org/2000/svg}"


def overlay(text: str) -> Overlay:
    return overlay_of(proof_of(text))


def test_steps_and_the_ways_between_them() -> None:
    found = overlay(DIGEST)
    assert {path: [mark.text for mark in marks if mark.kind == "effect"] for path, marks in found.marks.items()} == (
        snapshot({"1": ["reads, elevated"], "4": ["writes, elevated"], "5": ["writes"]})
    )
    assert [(way.start, way.end) for way in found.ways if way.kind == "flow"] == [("1", "2"), ("2", "4"), ("2", "5")]
    assert Mark("outside", "text from outside enters here") in found.marks["1"]


def test_what_a_fan_collects_goes_on() -> None:
    found = overlay(
        "pipeline: p\ndialect: quire\nsteps:\n"
        '  - tool: {name: http__get, args: {url: "https://example.org/"}, output: page}\n'
        "  - for_each:\n      over: ctx.readers\n      on_error: continue\n      output: all\n"
        '      do: {agent: {prompt: "For {item}: {ctx.page}", capabilities: {tools: []}}}\n'
        "      collect: {transform: {value: pipe}}\n"
        "  - tool: {name: file__write, args: {path: a.json, content: !expr json(ctx.all)}}\n"
    )
    assert [(way.start, way.end) for way in found.ways] == [("1", "2/for_each"), ("2/for_each", "3")]


GATED = "  - shell: {when: ctx.ok == 'yes', command: [publish]}\n"


@pytest.mark.parametrize(
    ("steps", "marks", "guards"),
    [
        (GATED, {"2": ("asked", "after a yes in step 1")}, [("1", "2")]),
        ("  - shell: {command: [publish]}\n", {"2": ("unasked", "asked, but a no comes through")}, []),
        ("", {}, []),
    ],
    ids=["gated", "ignored", "nothing"],
)
def test_gates(steps: str, marks: dict[str, tuple[str, str]], guards: list[tuple[str, str]]) -> None:
    ask = "  - tool: {name: ask, args: {type: confirm, prompt: 'Go?'}, output: ok}\n"
    found = overlay(f"pipeline: p\ndialect: quire\nsteps:\n{ask}{steps}")
    told = {path: (one.kind, one.text) for path, several in found.marks.items() for one in several}
    assert told == marks
    assert [(way.start, way.end) for way in found.ways if way.kind == "guard"] == guards


def test_an_effect_that_nobody_is_asked_about_is_marked() -> None:
    found = overlay("pipeline: p\nsteps:\n  - shell: {command: [publish]}\n")
    assert found.marks["1"][-1] == Mark("unasked", "no question before it")
    plan = read(Source.of("pipeline: p\nsteps:\n  - shell: {command: [publish]}\n", "p.yaml")).runnable()
    text = mermaid(plan, found)
    assert "    class s1tool unasked\n" in text


def test_a_guard_looks_unlike_a_flow() -> None:
    plan = read(Source.of(DIGEST, "p.yaml")).runnable()
    drawn = svg(plan, overlay=overlay(DIGEST))
    guard = next(line for line in drawn.splitlines() if 'class="way guard"' in line)
    flow = next(line for line in drawn.splitlines() if 'class="way flow"' in line)
    assert 'data-from="s3ask" data-to="s4tool"' in guard
    assert 'stroke-dasharray="2 3"' in guard and 'stroke-dasharray="9 4"' in flow
    assert '    s3ask -.->|"guards"| s4tool\n' in mermaid(plan, overlay(DIGEST))


HOOKED = """<directive name="watch" version="1.0.0">
  <metadata>
    <description>Watches.</description>
    <category>tests</category>
    <author>tests</author>
    <model tier="general"/>
    <limits turns="3" tokens="1000"/>
    <permissions><execute><tool>rye.file-system.write</tool></execute></permissions>
  </metadata>
</directive>
"""


def test_a_model_that_may_write_says_with_which_tool() -> None:
    text = f"# Watch\n\n```xml\n{HOOKED}```\n\n<process><step name='look'><action>Look.</action></step></process>\n"
    found = overlay_of(proof_of(text, "watch.md"))
    assert [mark.text for mark in found.marks["1"]] == ["may use file__write: writes", "no question before it"]


def test_a_document_without_effects_is_drawn_as_ever() -> None:
    plan = read(Source.of(PLAIN, "p.yaml")).runnable()
    found = overlay(PLAIN)
    assert found == Overlay()
    assert svg(plan, overlay=found) == svg(plan)
    assert mermaid(plan, found) == mermaid(plan)
    assert chart_data(plan, overlay=found) == chart_data(plan)
    assert "ways" not in chart_data(plan)


def test_mermaid() -> None:
    text = mermaid(read(Source.of(DIGEST, "p.yaml")).runnable(), overlay(DIGEST))
    assert 's1tool[["Step 1 - page (tool http#95;#95;get), reads, elevated, text from outside enters here"]]' in text
    assert '    s2model ==>|"from outside"| s4tool\n' in text
    numbered = [line for line in text.splitlines() if "-->" in line or "==>" in line or "-.->" in line]
    styled = next(line for line in text.splitlines() if line.startswith("    linkStyle") and "#cf222e" in line)
    assert [numbered[int(at)] for at in styled.split()[1].split(",")] == [one for one in numbered if "==>" in one]


def test_a_picture_has_dashes_and_words_beside_colours() -> None:
    plan = read(Source.of(DIGEST, "p.yaml")).runnable()
    tree = ElementTree.fromstring(svg(plan, overlay=overlay(DIGEST)))
    ways = [one for one in tree.iter(f"{TREE}path") if one.get("class") == "way flow"]
    assert len(ways) == 3
    assert all(one.get("stroke-dasharray") and one.get("marker-end") == "url(#tip-flow)" for one in ways)
    labels = [one.text for one in tree.iter(f"{TREE}text") if (one.get("class") or "").startswith("way-label flow")]
    assert labels == ["from outside"] * 3
    titles = [one.text or "" for one in tree.iter(f"{TREE}title")]
    assert any("writes, elevated" in one for one in titles)


def test_ways_pass_beside_nodes_and_beside_each_other() -> None:
    plan = read(Source.of(DIGEST, "p.yaml")).runnable()
    items = graph(plan)
    chart = layout(items, on_nodes(overlay(DIGEST), items, [path for path, _ in plan.steps()]))
    for track in chart.tracks:
        (_, high), (x, _), _, (_, low) = track.points
        high, low = min(high, low), max(high, low)
        passed = [node for node in chart.nodes if node.y <= low and node.y + node.height >= high]
        assert all(x > node.x + node.width / 2 for node in passed)
        assert track.at[0] <= chart.width
    upright = [track.points[1][0] for track in chart.tracks]
    assert all(abs(one - other) > 5 for one, other in combinations(upright, 2))


HOSTILE = '<script>alert(1)</script>"]; click s1tool "javascript:x" %%{init}%%'


@pytest.mark.parametrize("kind", ["effect", "asked", "unasked", "outside"])
def test_a_mark_is_text_and_nothing_else(kind: str) -> None:
    plan = read(Source.of(DIGEST, "p.yaml")).runnable()
    hostile = Overlay({"1": (Mark(kind, HOSTILE),)}, (Way("flow", "1", "2", HOSTILE),))  # type: ignore[arg-type]
    drawn = svg(plan, overlay=hostile)
    ElementTree.fromstring(drawn)
    assert "<script" not in drawn
    text = mermaid(plan, hostile)
    assert "<" not in text
    assert "click s1tool #34;" in text


def test_folded_steps_are_marked_together() -> None:
    plan = flat(400)
    paths = [path for path, _ in plan.steps()]
    several = {path: (Mark("effect", f"writes {path}"), Mark("unasked", "no question")) for path in paths[:10]}
    ways = (Way("flow", paths[0], paths[-1], "x"), Way("flow", "1", "2", "y"))
    data = chart_data(plan, overlay=Overlay(several, ways))
    nodes = cast("list[dict[str, Value]]", data["nodes"])
    first = next(node for node in nodes if node.get("fold"))
    marks = cast("list[dict[str, str]]", first["marks"])
    assert [mark["kind"] for mark in marks] == ["effect"] * MOST_MARKS + ["unasked"]
    assert [mark["text"] for mark in marks[-2:]] == ["and 8 more", "no question"]
    drawn = cast("list[dict[str, str]]", data["ways"])
    # The second way is between steps of one folded node.
    assert [(way["from"], way["to"]) for way in drawn] == [(first["id"], nodes[-2]["id"])]
