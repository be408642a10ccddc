"""How often a document calls models and tools and asks people: proven without running it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tests.analysis.soundness.oracle import SimulatedWorld
from tests.plan.test_bounds import PIPE, pipeline, playbook

from quire.analysis.proof import Bound, Proof, prove
from quire.analysis.quantities import quantities
from quire.engine.premises import Premises
from quire.library.document import read
from quire.library.foresight import Foresight
from quire.models.choose import Unpriced
from quire.plan.nodes import Plan, Sequence, Step
from quire.plan.pipeline_work import Agent
from quire.plan.thread import Thread
from quire.source import Source
from quire.values import Value

TOOL = "{tool: {name: t}}"


class _AllTools(Foresight):
    """Agents may use all tools that their steps name."""

    def tools_of(self, agent: Agent) -> tuple[str, ...]:
        return ("*",) if agent.tools is None else agent.tools


def proven(plan: Plan, callees: Mapping[str, Plan] | None = None) -> Proof:
    return _AllTools(None, callees or {}).proof(plan)


def counts(proof: Proof) -> list[str]:
    return [_written(proof.bound(kind)) for kind in ("model_calls", "tool_calls", "questions")]


def _written(bound: Bound) -> str:
    most = str(bound.most)
    return most if most == str(bound.least) else f"{bound.least} to {most}"


@pytest.mark.parametrize(
    ("step", "models", "tools", "questions"),
    [
        ("transform: {value: '1'}", "0", "0", "0"),
        ("tool: {name: t}", "0", "1", "0"),
        ("shell: {command: ls}", "0", "1", "0"),
        ("tool: {name: ask, args: {prompt: hi}}", "0", "0", "1"),
        ("agent: {prompt: hi, capabilities: {tools: []}}", "1", "0", "0"),
        ("agent: {prompt: hi, schema: S, capabilities: {tools: []}}", "1 to 3", "0", "0"),
        ("agent: {prompt: hi, capabilities: {tools: [t]}}", "1 to 26", "0 to 5,000", "0"),
        ("agent: {prompt: hi, schema: S, capabilities: {tools: [t, ask]}}", "1 to 28", "0 to 5,000", "0 to 5,000"),
        ("agent: {prompt: hi, capabilities: {tools: [ask]}}", "1 to 26", "0", "0 to 5,000"),
        ("agent: {prompt: hi, capabilities: {tools: ['*']}}", "1 to 26", "0 to 5,000", "0 to 5,000"),
        ("agent: {prompt: hi}", "1 to 26", "0 to 5,000", "0 to 5,000"),
        (f"for_each: {{over: ctx.l, on_error: abort, do: {TOOL}, {PIPE}}}", "0", "0 to |l|", "0"),
        (f"for_each: {{over: ctx.l, max_items: 5, on_error: abort, do: {TOOL}, {PIPE}}}", "0", "0 to 5", "0"),
        (f"for_each: {{items: [1, 2, 3], on_error: abort, do: {TOOL}, {PIPE}}}", "0", "3", "0"),
        (f"for_each: {{items: [1, 2, 3], on_error: retry(2), do: {TOOL}, {PIPE}}}", "0", "3 to 9", "0"),
        (f"for_each: {{items: [1, 2, 3], on_error: continue, do: {TOOL}, {PIPE}}}", "0", "0 to 3", "0"),
        (f"for_each: {{items: [1], on_error: abort, do: {{call: {{pipeline: nil}}}}, collect: {TOOL}}}", "0", "1", "0"),
        (f"fold: {{items: [1, 2, 3], max_items: 2, init: '0', do: {TOOL}, output: x}}", "0", "2", "0"),
        (f"fold: {{over: ctx.l, max_items: 2, init: '0', do: {TOOL}, output: x}}", "0", "0 to 2", "0"),
        (f"fold: {{init: '0', do: {TOOL}, output: x}}", "0", "0", "0"),
        (f"parallel: {{branches: {{a: {TOOL}, b: {TOOL}}}, {PIPE}}}", "0", "2", "0"),
        (f"parallel: {{on_error: retry(1), branches: {{a: {TOOL}, b: {TOOL}}}, {PIPE}}}", "0", "2 to 4", "0"),
        (f"for_each: {{items: [[1], [2, 3]], on_error: retry(1), do: {{for_each: {{over: item, max_items: 10, "
         f"on_error: retry(1), do: {TOOL}, {PIPE}}}}}, {PIPE}}}", "0", "0 to 16", "0"),
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
    proof = proven(pipeline(step), callees)
    assert counts(proof) == [models, tools, questions]
    assert proof.unknown == ()


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
    assert counts(proven(playbook(*steps))) == [models, tools, questions]


def test_of_a_thread() -> None:
    plan = Plan("d", "directive", (), Sequence((Step(1, "thread", "d", work=Thread("d", limits={"turns": 3})),)))
    assert counts(proven(plan))[0] == "1 to 3"


def test_a_callee_that_is_not_there_can_be_anything() -> None:
    proof = proven(pipeline("tool: {name: t}", "call: {pipeline: gone}"))
    assert proof.unknown == ("gone",)
    assert counts(proof) == ["0 to ∞", "1 to ∞", "0 to ∞"]


@pytest.mark.parametrize("first", ["transform: {value: '1'}", "agent: {prompt: hi, capabilities: {tools: []}}"])
def test_a_callee_that_is_not_there_can_say_and_cost_anything(first: str) -> None:
    proof = proven(pipeline(first, "call: {pipeline: gone}"))

    def rate_of(model: str) -> Unpriced:
        return Unpriced(model, "not known")

    found = {one.name: one for one in quantities(proof, Premises(spawns=None), rate_of)}
    for name in ("input_tokens", "output_tokens", "money", "time"):
        assert found[name].most.is_endless, name
        assert found[name].number is None
    assert "gone is not found" in found["money"].most.reasons[0].why


@pytest.mark.parametrize(
    ("given", "tools"),
    [
        ("{{topic}}", "0 to ‖topic‖"),
        ('["{{topic}}", 2]', "0 to 2"),
        ("{{none:string:[1,2,3,4]}}", "0 to 9"),
        ("{{words}}", "0 to 10,000"),
    ],
)
def test_a_text_that_a_tool_gets_as_json_may_be_a_list(given: str, tools: str) -> None:
    """Text of an input has one item as a text, and may have any number as JSON."""
    text = f"""# Title
## INPUTS
- `topic` (text): What
## STEP 1: Think
Think of {{{{topic}}}}.
@output(words)
## STEP 2: Use
@tool(quire, part, {{"rows": {given}}})
"""
    plan = read(Source.of(text, "p.playbook.md")).runnable()
    part = pipeline(f"for_each: {{over: ctx.rows, on_error: abort, do: {TOOL}, {PIPE}}}")
    assert counts(proven(plan, {"part": part}))[1] == tools
    inside = pipeline(f"for_each: {{over: ctx.rows.deep, on_error: abort, do: {TOOL}, {PIPE}}}")
    assert "|" not in counts(proven(plan, {"part": inside}))[1]


def test_a_reason_in_a_callee_has_the_way_to_its_step() -> None:
    between = pipeline("transform: {value: '1'}", "call: {pipeline: gone, output: x}")
    plan = pipeline("tool: {name: t}", "tool: {name: t}", "call: {pipeline: between}", 'agent: {prompt: "{pipe}"}')
    proof = prove(plan, SimulatedWorld({"between": between}))
    for kind in ("model_calls", "span", "bytes of "):
        assert [one.text for one in proof.cost.amount(kind).reasons if "gone" in one.why] == [
            "step 3 › 2: gone is not found, so it can do anything"
        ]


ROWS = "{rows: {type: list, of: {type: number}, default: [1, 2, 3]}}"
EACH = "fold: {over: ctx.rows, init: '0', do: {tool: {name: t}}, output: n}"


@pytest.mark.parametrize(
    ("given", "tools"),
    [
        ("", "3"),
        (", pass: {rows: 'null'}", "3"),
        (", pass: {rows: '[1]'}", "0 to 1"),
        (", pass: {rows: 'ctx.x'}", "0 to |x| + 3"),
        (", pass: {rows: \"get(ctx, 'x')\"}", "0 to |x| + 3"),
    ],
)
def test_a_default_takes_the_place_of_a_null(given: str, tools: str) -> None:
    head = f"dialect: quire\ninput: {ROWS}\n"
    callee = pipeline(EACH, name="rows", dialect=head)
    proof = proven(pipeline(f"call: {{pipeline: rows{given}}}", dialect="dialect: quire\n"), {"rows": callee})
    assert counts(proof)[1] == tools


def test_a_circle_ends() -> None:
    assert proven(pipeline("call: {pipeline: p}"), {"p": pipeline("call: {pipeline: p}")}).unknown == ("p",)


def test_a_long_chain_of_calls_ends() -> None:
    callees = {f"d{n}": pipeline(f"call: {{pipeline: d{n + 1}}}") for n in range(200)}
    assert proven(pipeline("call: {pipeline: d0}"), callees).unknown == ("d100",)


@pytest.mark.parametrize(
    ("over", "before", "count"),
    [
        ("ctx.tickets", (), "3"),
        ("tickets", (), "3"),
        ("ctx.day.tickets", (), "2"),
        ("batch", ("{transform: {value: ctx.tickets, output: batch}}",), "3"),
    ],
)
def test_lists_that_come_straight_from_the_inputs_are_counted(over: str, before: tuple[str, ...], count: str) -> None:
    plan = pipeline(*before, f"{{for_each: {{over: {over}, on_error: abort, do: {TOOL}, {PIPE}}}}}")
    inputs: dict[str, Value] = {"tickets": [1, 2, 3], "day": {"tickets": [1, 2]}}
    assert str(Foresight(None).bounds(plan, inputs=inputs).tool_calls) == count
    assert Foresight(None).bounds(plan).tool_calls.most is None


def test_the_rest_of_a_document_may_get_any_values() -> None:
    steps = [f"{{for_each: {{over: {over}, on_error: abort, do: {TOOL}, {PIPE}}}}}" for over in ("pipe", "ctx.made")]
    for step in steps:
        assert Foresight(None).bounds(pipeline(step), inputs={}, is_rest=True).tool_calls.most is None


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
  n: {type: number, maximum: 6.5}
  each: {type: list, of: {type: number, maximum: 2}, max_items: 3}
steps:
"""


@pytest.mark.parametrize(
    ("steps", "tools"),
    [
        ([f"for_each: {{over: ctx.l, on_error: abort, do: {TOOL}, {PIPE}}}"], "0 to 20"),
        ([f"for_each: {{over: l, max_items: 5, on_error: abort, do: {TOOL}, {PIPE}}}"], "0 to 5"),
        ([f"for_each: {{over: l, max_items: 50, on_error: abort, do: {TOOL}, {PIPE}}}"], "0 to 20"),
        ([f"for_each: {{over: box.names, on_error: abort, do: {TOOL}, {PIPE}}}"], "0 to 4"),
        ([f"for_each: {{over: box.nothing, on_error: abort, do: {TOOL}, {PIPE}}}"], "0 to |box.nothing|"),
        ([f"for_each: {{over: free, on_error: abort, do: {TOOL}, {PIPE}}}"], "0 to |free|"),
        ([f"fold: {{over: l, init: '0', do: {TOOL}, output: x}}"], "0 to 20"),
        ([f"for_each: {{over: range(ctx.n), on_error: abort, do: {TOOL}, {PIPE}}}"], "0 to 7"),
        ([f"for_each: {{over: range(n / 2 + 1), on_error: abort, do: {TOOL}, {PIPE}}}"], "0 to 5"),
        ([f"for_each: {{over: 'range(2, n)', on_error: abort, do: {TOOL}, {PIPE}}}"], "0 to 5"),
        (
            [
                f"for_each: {{over: each, on_error: abort, do: {{for_each: {{over: range(item), on_error: abort,"
                f" do: {TOOL}, {PIPE}}}}}, {PIPE}}}"
            ],
            "0 to 6",
        ),
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
            "0 to 1",
        ),
    ],
)
def test_a_declared_list_bounds_what_is_done_for_its_items(steps: list[str], tools: str) -> None:
    plan = read(Source.of(DECLARED + "".join(f"- {step}\n" for step in steps), "p.yaml")).runnable()
    assert counts(proven(plan))[1] == tools


def test_a_reason_names_the_step_of_its_own_document() -> None:
    """The cost of an agent is remembered for the next proof, but not the place of a reason in it."""
    agent = "- agent: {identity: web, prompt: hi, capabilities: {tools: [web1]}}\n"
    reasons = []
    for steps in (agent, "- transform: {value: '1'}\n" + agent):
        plan = read(Source.of(f"pipeline: p\nsteps:\n{steps}", "p.yaml")).plan
        assert plan is not None
        reasons.append([one.text for one in prove(plan, SimulatedWorld({})).cost.amount("span").reasons])
    assert [[one for one in several if "of the agent" in one] for several in reasons] == [
        ["step 1: nothing bounds how long a tool of the agent takes"],
        ["step 2: nothing bounds how long a tool of the agent takes"],
    ]


LISTING = (
    "for_each: {items: [a], on_error: abort, "
    "do: {agent: {prompt: hi, schema: R, max_tokens: 10, capabilities: {tools: []}}}, "
    "collect: {transform: {value: pipe}}, output: rs}"
)


@pytest.mark.parametrize(
    "over",
    [
        "get(first(rs), 'things')",
        "get(first(reverse(rs)), 'things')",
        "get(first(sort(rs, x -> x.n)), 'things')",
        "get(first(rs + rs), 'things')",
        "get(last(distinct(rs)), 'things')",
        "get(first(flatten([rs, rs])), 'things')",
        "first(values({a: first(rs)}))",
        "get(first(first(zip(rs, rs))), 'things')",
    ],
)
def test_items_of_a_reply_are_not_counted_by_its_tokens(over: str) -> None:
    """A reply of ten tokens may list hundreds of items, wherever in the results of a fan it is."""
    schema = "schema: R\nfields: {n: {type: number}, things: {type: list, of: {type: number}}}\n---\n"
    text = f"{schema}pipeline: p\ndialect: quire\nsteps:\n- {LISTING}\n"
    text += f'- fold: {{over: "{over}", init: "0", do: {{tool: {{name: t}}}}, output: n}}\n'
    plan = read(Source.of(text, "p.yaml")).plan
    assert plan is not None
    assert proven(plan).bound("tool_calls").most.as_number == 1_000_000


@pytest.mark.parametrize(
    ("over", "tools"),
    [
        ("get(ctx, 'x')", "0 to |x|"),
        ("get(ctx, 'x', [1, 2])", "0 to |x| + 2"),
        ("get(ctx, 'x', 'y')", "0 to |x| + 1"),
        ("keys(ctx)", "0 to |ctx|"),
    ],
)
def test_names_that_no_step_writes_may_be_inputs(over: str, tools: str) -> None:
    step = f'fold: {{over: "{over}", init: "0", do: {TOOL}, output: n}}'
    assert counts(proven(pipeline(step, dialect="dialect: quire\n")))[1] == tools
