"""The fewest model calls of a document, and the rest of one."""

from __future__ import annotations

import pytest

from quire.library.document import read
from quire.plan.bounds import least_model_calls, rest_of
from quire.plan.nodes import Plan, Sequence, Step
from quire.plan.thread import Thread
from quire.source import Source
from quire.values import Value

PIPE = "collect: {transform: {value: pipe}}"
AGENT = "{agent: {prompt: hi}}"
QUIRE = "dialect: quire\n"


def pipeline(*steps: str, name: str = "p", dialect: str = "") -> Plan:
    text = f"pipeline: {name}\n{dialect}steps:\n" + "".join(f"- {step}\n" for step in steps)
    plan = read(Source.of(text, "p.yaml")).plan
    assert plan is not None
    return plan


def playbook(*steps: str) -> Plan:
    text = "# T\n\n## INPUTS\n\n- `a` (string: x): A\n\n" + "\n\n".join(steps)
    plan = read(Source.of(text, "p.playbook.md")).plan
    assert plan is not None
    return plan


@pytest.mark.parametrize(
    ("step", "least"),
    [
        ("transform: {value: '1'}", 0),
        ("tool: {name: t}", 0),
        ("agent: {prompt: hi}", 1),
        ("agent: {prompt: hi, when: ctx.a}", 0),
        ("agent: {prompt: hi, on_error: continue}", 0),
        ("agent: {prompt: hi, on_error: retry(2)}", 1),
        (f"for_each: {{over: ctx.l, on_error: abort, do: {AGENT}, {PIPE}}}", 0),
        (f"for_each: {{items: [1, 2, 3], on_error: abort, do: {AGENT}, {PIPE}}}", 3),
        (f"for_each: {{items: [1, 2, 3], on_error: continue, do: {AGENT}, collect: {AGENT}}}", 1),
        (f"fold: {{items: [1, 2, 3], max_items: 2, init: '0', do: {AGENT}, output: x}}", 2),
        (f"fold: {{init: '0', do: {AGENT}, output: x}}", 0),
        (f"parallel: {{branches: {{a: {AGENT}, b: {AGENT}}}, {PIPE}}}", 2),
        (f"parallel: {{on_error: continue, branches: {{a: {AGENT}, b: {AGENT}}}, {PIPE}}}", 0),
        ("call: {pipeline: two}", 2),
        ("call: {pipeline: gone}", 0),
        ("match: {on: x, cases: {a: {pipeline: two}, b: {pipeline: nil}}}", 0),
        ("match: {on: x, cases: {a: {pipeline: two}}, default: {pipeline: four}}", 2),
    ],
)
def test_of_a_step(step: str, least: int) -> None:
    callees = {
        "two": pipeline("agent: {prompt: a}", "agent: {prompt: b}"),
        "four": pipeline("call: {pipeline: two}", "call: {pipeline: two}"),
        "nil": pipeline("transform: {value: '1'}"),
    }
    assert least_model_calls(pipeline(step, dialect=QUIRE), callees) == least


def test_steps_after_one_that_may_stop_may_not_run() -> None:
    steps = ("agent: {prompt: a}", "stop: {when: ctx.done}", "agent: {prompt: b}")
    assert least_model_calls(pipeline(*steps, dialect=QUIRE)) == 1


@pytest.mark.parametrize(
    ("step", "least"),
    [
        ("## STEP 1: A\n\nThink.", 1),
        ("## STEP 1: A\n\n{{a}}", 0),
        ("## STEP 1: A\n\n@tool(quire, two, {})", 2),
        ('## STEP 1: A\n\n```if a == "x"```\n\n### STEP 1a: B\n\nThink.\n\n```endif```', 0),
        (
            '## STEP 1: A\n\n```if a == "x"```\n\n### STEP 1a: B\n\nThink.\n\n```else```\n\n'
            "### STEP 1b: C\n\nThink.\n\n```endif```",
            1,
        ),
    ],
)
def test_of_a_playbook(step: str, least: int) -> None:
    assert least_model_calls(playbook(step), {"two": pipeline(*["agent: {prompt: a}"] * 2)}) == least


def test_of_a_thread() -> None:
    assert least_model_calls(Plan("d", "directive", (), Sequence((Step(1, "thread", "d", work=Thread("d")),)))) == 1


def test_a_circle_ends() -> None:
    circle = pipeline("agent: {prompt: a}", "call: {pipeline: p}")
    assert least_model_calls(pipeline("call: {pipeline: p}"), {"p": circle}) == 1


def test_each_document_is_counted_once() -> None:
    callees = {f"d{n}": pipeline(*[f"call: {{pipeline: d{n + 1}}}"] * 10) for n in range(60)}
    callees["d60"] = pipeline("agent: {prompt: a}")
    assert least_model_calls(pipeline("call: {pipeline: d0}"), callees) == 10**60


def test_a_long_chain_of_calls_ends() -> None:
    callees = {f"d{n}": pipeline("agent: {prompt: a}", f"call: {{pipeline: d{n + 1}}}") for n in range(1000)}
    assert least_model_calls(pipeline("call: {pipeline: d0}"), callees) == 100


@pytest.mark.parametrize(
    ("over", "before", "least"),
    [
        ("ctx.tickets", (), 3),
        ("tickets", (), 3),
        ("ctx.day.tickets", (), 2),
        ("batch", ("transform: {value: ctx.tickets, output: batch}",), 3),
        ("batch", ("transform: {value: ctx.tickets, when: ctx.word, output: batch}",), 0),
        ("ctx.tickets", ("tool: {name: t, output: tickets}",), 0),
        ("ctx.tickets", ("steps: {do: [{tool: {name: t, output: tickets}}]}",), 0),
        ("batch", ('transform: {value: "ctx.tickets + [4]", output: batch}',), 0),
        ("ctx.nothing", (), 0),
        ("ctx.word", (), 0),
    ],
)
def test_lists_that_come_straight_from_the_inputs_are_counted(over: str, before: tuple[str, ...], least: int) -> None:
    step = f"{{for_each: {{over: {over}, on_error: abort, do: {AGENT}, {PIPE}}}}}"
    inputs: dict[str, Value] = {"tickets": [1, 2, 3], "day": {"tickets": [1, 2]}, "word": "abc"}
    plan = pipeline(*before, step, dialect=QUIRE)
    assert least_model_calls(plan, inputs=inputs) == least
    assert least_model_calls(plan) == 0


def test_the_rest_of_a_document_has_only_the_arm_of_its_first_step() -> None:
    plan = playbook(
        '## STEP 1: A\n\n```if a == "x"```\n\n### STEP 1a: B\n\nThink.\n\n### STEP 1b: C\n\nThink.\n\n```else```'
        "\n\n### STEP 1c: D\n\nThink.\n\n```endif```",
        "## STEP 2: E\n\nThink.",
    )
    paths = [path for path, _ in plan.steps()]
    found = [[step.title for step in rest_of(plan.body, path).steps] for path in paths]
    assert found == [["A", "E"], ["B", "C", "E"], ["C", "E"], ["D", "E"], ["E"]]
