"""The names that a step of a pipeline reads from outside."""

from __future__ import annotations

import pytest

from quire.library.document import read
from quire.runs.step_reads import reads_at
from quire.source import Source

KEPT = "collect: {transform: {value: pipe}}"


@pytest.mark.parametrize(
    ("step", "path", "names"),
    [
        ('fold: {over: l, init: i, do: {transform: {value: "[acc, item, pipe, x]"}}, output: t}', "1", "l i pipe x"),
        ('fold: {init: i, do: {transform: {value: "pipe"}}, output: t}', "1/fold", "pipe"),
        (
            f"for_each: {{on_error: continue, default: '[item, d]', do: {{transform: {{value: x}}}}, {KEPT}}}",
            "1",
            "d pipe x",
        ),
        (
            f"parallel: {{branches: {{a: {{transform: {{value: x}}}}}}, on_error: continue, default: d, {KEPT}}}",
            "1",
            "d x",
        ),
        ("parallel: {branches: {a: {transform: {value: x}}}, collect: {transform: {value: '[a, ctx.a]'}}}", "1", "x a"),
        ("repeat: {do: {transform: {value: '[acc, round, pipe]', output: w}}, until: w == u, max: 2}", "1", "u pipe"),
        ("steps: [{transform: {value: x, output: y}}, {transform: {value: '[pipe, y, z]'}}]", "1", "x z"),
        ("steps: [{transform: {value: x, output: y}}, {transform: {value: '[pipe, y, z]'}}]", "1/steps/2", "pipe y z"),
        ("stop: {}", "1", "pipe"),
    ],
)
def test_names_from_outside(step: str, path: str, names: str) -> None:
    plan = read(Source.of(f"pipeline: p\ndialect: quire\nsteps:\n- {step}\n", "p.yaml")).plan
    assert plan is not None
    assert reads_at(plan, path) == names.split()
