"""Marks that are put into every text from outside, and into every private one, never reach a place that the analysis
has called clean. `python -m tests.analysis.soundness 5000` looks at more documents."""

from __future__ import annotations

import pytest
from tests.analysis.soundness.cases import KINDS, Case, case_of, problems_of
from tests.depth import depth

from quire.analysis import pipeline_loops
from quire.analysis.labels import AUTHORED, KeptContents, Label
from quire.analysis.scope import Failures, Scope


@pytest.mark.parametrize("kind", KINDS)
def test_no_mark_reaches_a_clean_place(kind: str) -> None:
    found = {seed: problems_of(case_of(kind, seed)) for seed in range(depth(150, 3000))}
    assert {seed: problems for seed, problems in found.items() if problems} == {}


PIPELINE = "pipeline: first\ndialect: quire\nsteps:\n"
FOUND = {
    "the message of a survived failure": PIPELINE
    + '- {steps: {do: [{tool: {name: bad1}}, {transform: {value: "1"}}], on_error: continue, output: g}}\n'
    + "- {tool: {name: sink2, args: {one: !expr errors}}}\n",
    "a value that a failure quotes": PIPELINE
    + "- {tool: {name: web1, output: page}}\n"
    + "- {for_each: {items: [1], on_error: continue, do: {transform: {value: number(page.text)}}, "
    + "collect: {tool: {name: sink2, args: {one: !expr errors}}}}}\n",
    "the result of a pipeline that stops": PIPELINE
    + '- {tool: {name: web1, output: page}}\n- {stop: {when: "true", value: page.text}}\n'
    + "- {transform: {value: \"'last'\"}}\n",
    "a store that a failure has not written": PIPELINE
    + "- {tool: {name: web1, output: x}}\n"
    + "- {steps: {do: [{transform: {value: \"'fine'\", output: x}}, {tool: {name: bad2}}], on_error: continue}}\n"
    + "- {tool: {name: sink3, args: {one: !expr ctx.x}}}\n",
    "all stores at once": PIPELINE
    + "- {tool: {name: web1, output: page}}\n- {tool: {name: sink2, args: {one: !expr ctx}}}\n",
    "an accumulator": PIPELINE
    + "- {fold: {items: [1, 2], init: \"''\", do: {tool: {name: web1, args: {of: !expr acc}}}, output: all}}\n"
    + "- {tool: {name: sink2, args: {one: !expr ctx.all}}}\n",
    "a store that takes four rounds to get it": PIPELINE
    + "- {fold: {items: [1, 2, 3, 4, 5, 6], init: \"''\", output: all, do: {steps: [\n"
    + "".join(
        f"    {{transform: {{value: \"get(ctx, '{name}', '')\", output: {to}}}}},\n"
        for to, name in ("ab", "bc", "cd", "de")
    )
    + "    {tool: {name: sink1, args: {one: !expr ctx.a}}}, {tool: {name: web2, output: e}},\n"
    + "    {transform: {value: ctx.a}}]}}}\n- {tool: {name: sink3, args: {one: !expr ctx.all}}}\n",
    "a part that takes four rounds to get it": PIPELINE
    + "- {fold: {items: [1, 2, 3, 4, 5, 6], init: \"{a: '', b: '', c: '', d: '', e: ''}\", output: all, do: {steps: [\n"
    + "    {tool: {name: sink1, args: {one: !expr acc.a}}}, {tool: {name: web2, output: e}},\n"
    + '    {transform: {value: "{a: acc.b, b: acc.c, c: acc.d, d: acc.e, e: e.text}"}}]}}}\n'
    + "- {tool: {name: sink3, args: {one: !expr ctx.all.a}}}\n",
    "a value that is kept and read again": PIPELINE
    + "- {tool: {name: web1, output: page}}\n"
    + "- {tool: {name: put2, args: {name: k, value: !expr page}}}\n"
    + "- {tool: {name: take3, args: {name: k}, output: x}}\n"
    + "- {tool: {name: sink4, args: {one: !expr ctx.x}}}\n",
    "a value that another item has kept": PIPELINE
    + "- {for_each: {items: [1, 2], on_error: abort, collect: {transform: {value: pipe}}, do: {steps: [\n"
    + "    {tool: {name: take1, args: {name: k}, output: x}}, {tool: {name: sink2, args: {one: !expr ctx.x}}},\n"
    + "    {tool: {name: web3}}, {tool: {name: put4, args: {name: k, value: !expr pipe}}}]}}}\n",
    "an arm of a chosen context": "# P\n\n## INPUTS\n\n- `topic` (string): T\n\n## STEP 1: A\n\n"
    '```if topic == "tea"```\n\n### STEP 1a: B\n\n@tool(sim, web1, {"of": "x"})\n\n```endif```\n\n'
    "## STEP 2: C\n\nThink, site 7: more.\n\n@context(1)\n\n@output(y)\n\n"
    '## STEP 3: D\n\n@tool(sim, sink2, {"one": "{{y}}"})\n',
    "a prompt that a variable holds": "# P\n\n## STEP 1: A\n\n@tool(sim, web1, {})\n\n@output(x)\n\n"
    "## STEP 2: B\n\nThink, site 7: more.\n\n@prompt({{x}})\n\n@context(none)\n\n@output(y)\n\n"
    '## STEP 3: D\n\n@tool(sim, sink2, {"one": "{{y}}"})\n',
}


@pytest.mark.parametrize("rough", [False, True])
@pytest.mark.parametrize("name", FOUND)
def test_flows_that_were_once_lost(name: str, rough: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if rough:
        monkeypatch.setattr(pipeline_loops, "_LEARNED_LOOPS", 0)
    assert problems_of(Case(0, "", {"first": FOUND[name]})) == []


def _forget(failures: Failures, label: Label) -> None:
    """Stands for a walk that does not follow messages of failures."""


def _clean(label: Label, *rest: object) -> Label:
    return AUTHORED


@pytest.mark.parametrize(
    ("place", "name", "instead"),
    [
        (Failures, "add", _forget),
        (Label, "made_by", _clean),
        (Scope, "merge", lambda scope, *rest, **more: None),
        (Scope, "merge_optional", lambda scope, *rest: None),
        (KeptContents, "read", lambda contents, *rest: AUTHORED),
        (KeptContents, "has_more", False),
        (pipeline_loops, "same", lambda *rest: True),
    ],
)
def test_the_marks_find_a_walk_that_loses_a_way(
    monkeypatch: pytest.MonkeyPatch, place: object, name: str, instead: object
) -> None:
    monkeypatch.setattr(place, name, instead)
    cases = [Case(0, "", {"first": text}) for text in FOUND.values()]
    cases += [case_of(kind, seed) for seed in range(50) for kind in KINDS]
    assert any(problems_of(case) for case in cases)
