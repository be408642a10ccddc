"""How often a document can ask a model, a tool, a person: counted without running it."""

from __future__ import annotations

import pytest

from quire.library.document import read
from quire.plan.bounds import Allowance, PlanBounds, Range, bounds, with_inputs
from quire.plan.nodes import Plan, Sequence, Step
from quire.plan.thread import Thread
from quire.source import Source
from quire.values import Value

PIPE = "collect: {transform: {value: pipe}}"
TOOL = "{tool: {name: t}}"
ONE = Range(1, 1)


def pipeline(*steps: str, name: str = "p") -> Plan:
    plan = read(Source.of(f"pipeline: {name}\nsteps:\n" + "".join(f"- {step}\n" for step in steps), "p.yaml")).plan
    assert plan is not None
    return plan


def playbook(*steps: str) -> Plan:
    text = "# T\n\n## INPUTS\n\n- `a` (string: x): A\n\n" + "\n\n".join(steps)
    plan = read(Source.of(text, "p.playbook.md")).plan
    assert plan is not None
    return plan


@pytest.mark.parametrize(
    ("step", "models", "tools", "questions"),
    [
        ("transform: {value: '1'}", "0", "0", "0"),
        ("tool: {name: t}", "0", "1", "0"),
        ("shell: {command: ls}", "0", "1", "0"),
        ("tool: {name: ask, args: {prompt: hi}}", "0", "0", "1"),
        ("agent: {prompt: hi, capabilities: {tools: []}}", "1", "0", "0"),
        ("agent: {prompt: hi, schema: S, capabilities: {tools: []}}", "1 to 3", "0", "0"),
        ("agent: {prompt: hi, capabilities: {tools: [t]}}", "1 to 26", "0 to ∞", "0"),
        ("agent: {prompt: hi, schema: S, capabilities: {tools: [t, ask]}}", "1 to 28", "0 to ∞", "0 to ∞"),
        ("agent: {prompt: hi, capabilities: {tools: [ask]}}", "1 to 26", "0", "0 to ∞"),
        ("agent: {prompt: hi, capabilities: {tools: ['*']}}", "1 to 26", "0 to ∞", "0 to ∞"),
        ("agent: {prompt: hi}", "1 to 26", "0 to ∞", "0 to ∞"),
        (f"for_each: {{over: ctx.l, on_error: abort, do: {TOOL}, {PIPE}}}", "0", "0 to ∞", "0"),
        (f"for_each: {{over: ctx.l, max_items: 5, on_error: abort, do: {TOOL}, {PIPE}}}", "0", "0 to 5", "0"),
        (f"for_each: {{items: [1, 2, 3], on_error: abort, do: {TOOL}, {PIPE}}}", "0", "3", "0"),
        (f"for_each: {{items: [1, 2, 3], on_error: retry(2), do: {TOOL}, {PIPE}}}", "0", "3 to 9", "0"),
        (f"for_each: {{items: [1, 2, 3], on_error: continue, do: {TOOL}, {PIPE}}}", "0", "0 to 3", "0"),
        (f"for_each: {{items: [1], on_error: abort, do: {{call: {{pipeline: nil}}}}, collect: {TOOL}}}", "0", "1", "0"),
        (f"fold: {{items: [1, 2, 3], max_items: 2, init: '0', do: {TOOL}, output: x}}", "0", "2", "0"),
        (f"fold: {{over: ctx.l, max_items: 2, init: '0', do: {TOOL}, output: x}}", "0", "0 to 2", "0"),
        (f"fold: {{init: '0', do: {TOOL}, output: x}}", "0", "0 to ∞", "0"),
        (f"parallel: {{branches: {{a: {TOOL}, b: {TOOL}}}, {PIPE}}}", "0", "2", "0"),
        (f"parallel: {{on_error: retry(1), branches: {{a: {TOOL}, b: {TOOL}}}, {PIPE}}}", "0", "2 to 4", "0"),
        (f"for_each: {{items: [1, 2], on_error: retry(1), do: {{for_each: {{over: item, max_items: 10, "
         f"on_error: retry(1), do: {TOOL}, {PIPE}}}}}, {PIPE}}}", "0", "0 to 80", "0"),
        ("call: {pipeline: two}", "0", "2", "0"),
        ("match: {on: x, cases: {a: {pipeline: two}, b: {pipeline: asks}}}", "0", "0 to 2", "0 to 1"),
        ("match: {on: x, cases: {a: {pipeline: two}}, default: {pipeline: four}}", "0", "2 to 4", "0"),
    ],
)  # fmt: skip
def test_of_a_step(step: str, models: str, tools: str, questions: str) -> None:
    callees = {
        "two": pipeline("tool: {name: t}", "tool: {name: t}"),
        "four": pipeline("call: {pipeline: two}", "call: {pipeline: two}"),
        "nil": pipeline("transform: {value: '1'}"),
        "asks": pipeline("tool: {name: ask, args: {prompt: hi}}"),
    }
    found = bounds(pipeline(step), callees)
    assert (str(found.model_calls), str(found.tool_calls), str(found.questions)) == (models, tools, questions)
    assert found.unknown == ()


@pytest.mark.parametrize(
    ("steps", "models", "tools", "questions"),
    [
        (["## STEP 1: A\n\nThink."], "1", "0", "0"),
        (["## STEP 1: A\n\n{{a}}"], "0 to 1", "0", "0"),
        (["## STEP 1: A\n\n@tool(s, t, {})"], "0", "1", "0"),
        (["## STEP 1: A\n\nThink.\n\n@elicit(confirm, \"Ok?\")"], "1", "0", "1"),
        (['## STEP 1: A\n\n```if a == "x"```\n\n### STEP 1a: B\n\nThink.\n\n```endif```'], "0 to 1", "0", "0"),
        (['## STEP 1: A\n\n```if a == "x"```\n\n### STEP 1a: B\n\nThink.\n\n### STEP 1b: B\n\nThink.\n\n```else```\n\n'
          "### STEP 1c: C\n\n@tool(s, t, {})\n\n```endif```"], "0 to 2", "0 to 1", "0"),
    ],
)  # fmt: skip
def test_of_a_playbook(steps: list[str], models: str, tools: str, questions: str) -> None:
    found = bounds(playbook(*steps))
    assert (str(found.model_calls), str(found.tool_calls), str(found.questions)) == (models, tools, questions)


def test_of_a_thread() -> None:
    def plan(thread: Thread) -> Plan:
        return Plan("d", "directive", (), Sequence((Step(1, "thread", "d", work=thread),)))

    usual = bounds(plan(Thread("d")))
    assert (usual.model_calls, usual.threads, usual.tool_calls) == (Range(1, 25), Range(0, 50), Range(0, None))
    small = bounds(plan(Thread("d", limits={"turns": 3, "spawns": 0})))
    assert (small.model_calls, small.threads) == (Range(1, 3), Range())
    assert bounds(plan(Thread("d")), allowance=Allowance(thread_turns=7)).model_calls == Range(1, 7)


def test_a_callee_that_is_not_there_can_be_anything() -> None:
    found = bounds(pipeline("tool: {name: t}", "call: {pipeline: gone}"))
    assert found.unknown == ("gone",)
    assert found.model_calls == Range(0, None) and found.tool_calls == Range(1, None)


def test_a_circle_ends() -> None:
    assert bounds(pipeline("call: {pipeline: p}"), {"p": pipeline("call: {pipeline: p}")}).unknown == ("p",)


def test_each_document_is_counted_once() -> None:
    callees = {f"d{n}": pipeline(*[f"call: {{pipeline: d{n + 1}}}"] * 10) for n in range(60)}
    callees["d60"] = pipeline("tool: {name: t}")
    assert bounds(pipeline("call: {pipeline: d0}"), callees).tool_calls == Range(10**60, 10**60)


def test_a_long_chain_of_calls_ends() -> None:
    callees = {f"d{n}": pipeline(f"call: {{pipeline: d{n + 1}}}") for n in range(1000)}
    assert bounds(pipeline("call: {pipeline: d0}"), callees).unknown == ("d100",)


def test_what_a_profile_leaves() -> None:
    found = bounds(pipeline("agent: {prompt: hi}"), tools_of=lambda agent: ())
    assert found == PlanBounds(model_calls=ONE)


@pytest.mark.parametrize(
    ("over", "before", "most"),
    [
        ("ctx.tickets", (), 3),
        ("tickets", (), 3),
        ("ctx.day.tickets", (), 2),
        ("batch", ("{transform: {value: ctx.tickets, output: batch}}",), 3),
        ("ctx.tickets", ("{tool: {name: t, output: tickets}}",), None),
        ("batch", ('{transform: {value: "ctx.tickets + [4]", output: batch}}',), None),
        ("ctx.nothing", (), None),
        ("ctx.word", (), None),
    ],
)
def test_lists_that_come_straight_from_the_inputs_are_counted(
    over: str, before: tuple[str, ...], most: int | None
) -> None:
    step = f"{{for_each: {{over: {over}, on_error: abort, do: {{agent: {{prompt: x}}}}, {PIPE}}}}}"
    inputs: dict[str, Value] = {"tickets": [1, 2, 3], "day": {"tickets": [1, 2]}, "word": "abc"}
    plan = pipeline(*before, step)
    assert bounds(with_inputs(plan, inputs), tools_of=lambda agent: ()).model_calls.most == most
    assert bounds(plan, tools_of=lambda agent: ()).model_calls.most is None


DECLARED = """\
schema: Box
fields: {names: {type: list, of: {type: string}, max_items: 4}}
---
pipeline: p
dialect: quire
input:
  l: {type: list, of: {type: string}, max_items: 20}
  box: {type: ref, schema: Box}
  free: {type: list, of: {type: string}}
steps:
"""


@pytest.mark.parametrize(
    ("steps", "tools"),
    [
        ([f"for_each: {{over: ctx.l, on_error: abort, do: {TOOL}, {PIPE}}}"], "0 to 20"),
        ([f"for_each: {{over: l, max_items: 5, on_error: abort, do: {TOOL}, {PIPE}}}"], "0 to 5"),
        ([f"for_each: {{over: l, max_items: 50, on_error: abort, do: {TOOL}, {PIPE}}}"], "0 to 20"),
        ([f"for_each: {{over: box.names, on_error: abort, do: {TOOL}, {PIPE}}}"], "0 to 4"),
        ([f"for_each: {{over: box.nothing, on_error: abort, do: {TOOL}, {PIPE}}}"], "0 to ∞"),
        ([f"for_each: {{over: free, on_error: abort, do: {TOOL}, {PIPE}}}"], "0 to ∞"),
        ([f"fold: {{over: l, init: '0', do: {TOOL}, output: x}}"], "0 to 20"),
        (
            [
                f"for_each: {{over: l, on_error: abort, do: {{fold: {{over: box.names, init: '0', do: {TOOL},"
                f" output: x}}}}, {PIPE}}}"
            ],
            "0 to 80",
        ),
        (
            [
                "transform: {value: '[1]', output: l}",
                f"for_each: {{over: l, on_error: abort, do: {TOOL}, {PIPE}}}",
            ],
            "0 to ∞",
        ),
    ],
)
def test_a_declared_list_bounds_what_is_done_for_its_items(steps: list[str], tools: str) -> None:
    plan = read(Source.of(DECLARED + "".join(f"- {step}\n" for step in steps), "p.yaml")).runnable()
    assert str(bounds(plan).tool_calls) == tools
    called = bounds(pipeline("call: {pipeline: p}", name="caller"), {"p": plan})
    assert str(called.tool_calls) == tools


def test_the_limits_of_a_callee_are_not_those_of_its_caller() -> None:
    callee = read(Source.of(f"{DECLARED}- transform: {{value: l}}\n", "p.yaml")).runnable()
    step = f"for_each: {{over: ctx.l, on_error: abort, do: {TOOL}, {PIPE}}}"
    assert str(bounds(pipeline("call: {pipeline: p}", step, name="caller"), {"p": callee}).tool_calls) == "0 to ∞"
