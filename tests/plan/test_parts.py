"""The parts of the steps of a plan: every expression has a role, and every inner step is at its path."""

from __future__ import annotations

import pytest
from msgspec import Struct
from msgspec.structs import replace
from tests.documents import draw_scenario
from tests.documents.draw import Draw

from quire.library.document import read
from quire.plan.nodes import Plan, Step
from quire.plan.parts import formulas, with_formulas, with_inner, with_steps
from quire.plan.pipeline_work import Formula
from quire.source import Source

TEXT = """pipeline: every
dialect: quire
steps:
- agent: {prompt: go, when: "ctx.b", on_error: continue, default: "ctx.c", output: first}
- tool: {name: x__y, args: {p: !expr "ctx.d", q: 1}}
- call: {pipeline: other, pass: {u: "ctx.e", v: "first"}}
- match: {on: "ctx.f", cases: {one: {pipeline: other, pass: {w: "ctx.g"}}, two: {steps: [{stop: {value: "pipe"}}]}},
    default: {pipeline: third, pass: {z: "pipe"}}}
- match: {on: "ctx.f", cases: {one: {pipeline: other}}, default: "ctx.d"}
- fold: {over: "ctx.list", init: "ctx.i", do: {transform: {value: "acc"}}, output: folded}
- for_each: {over: "folded", do: {transform: {value: "item"}}, on_error: continue, default: "item",
    collect: {transform: {value: "pipe"}}}
- parallel: {branches: {left: {fail: {message: !expr "ctx.m"}}, right: {transform: {value: "1"}}}, on_error: continue,
    default: "ctx.n", collect: {steps: [{transform: {value: "left"}}, {transform: {value: "pipe"}}]}}
- repeat: {init: "ctx.o", do: {transform: {value: "acc"}}, until: "acc == 1", max: 2}
"""


def plan_of(text: str) -> Plan:
    plan = read(Source.of(text, "every.yaml")).plan
    assert plan is not None
    return plan


def test_every_expression_has_a_role() -> None:
    roles = [[role for role, _ in formulas(step)] for step in plan_of(TEXT).body.steps]
    assert roles == [
        ["when", "instead"],
        ["arguments[p]"],
        ["passes[u]", "passes[v]"],
        ["on", "cases[one].passes[w]", "default.passes[z]"],
        ["on", "default"],
        ["source", "init"],
        ["source", "default"],
        ["default"],
        ["init", "until"],
    ]


PLANS = [TEXT, *(draw_scenario(Draw.seeded(seed), "dialect").files["simulated.yaml"] for seed in range(40))]


@pytest.mark.parametrize("text", PLANS)
def test_no_expression_and_no_step_is_missed(text: str) -> None:
    plan = plan_of(text)
    steps = dict(plan.steps())
    listed = [one for step in steps.values() for _, one in formulas(step)]
    assert sorted(map(id, listed)) == sorted(map(id, _all(plan.body)))
    paths: list[str] = []

    def rename(path: str, step: Step) -> Step:
        paths.append(path)
        changed = with_formulas(with_inner(step, path, rename), lambda role, formula: replace(formula, text=role))
        return replace(changed, label=path)

    renamed = replace(plan, body=with_steps(plan.body, "", rename))
    assert sorted(paths) == sorted(steps)
    for path, step in renamed.steps():
        assert step.label == path
        assert [formula.text for _, formula in formulas(step)] == [role for role, _ in formulas(steps[path])]
        assert with_formulas(step, lambda role, formula: formula) is step


def _all(node: object) -> list[Formula]:
    """The expressions anywhere in a value, found by looking at every field."""
    if isinstance(node, Formula):
        return [node]
    inside = [getattr(node, name) for name in node.__struct_fields__] if isinstance(node, Struct) else node
    return [one for part in inside for one in _all(part)] if isinstance(inside, list | tuple) else []


def test_a_step_that_something_needs_cannot_be_dropped() -> None:
    plan = plan_of(TEXT)
    with pytest.raises(ValueError, match=r"step 6\.do is the only one where it stands"):
        with_inner(plan.body.steps[5], "6", lambda path, step: None)
    dropped = with_steps(plan.body, "", lambda path, step: None if path == "2" else step)
    assert [step.position for step in dropped.steps] == [1, *range(3, 10)]
