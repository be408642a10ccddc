"""Decisions of pipelines and of the dialect, and the walks that take them."""

from __future__ import annotations

import pytest
from tests.formats.pipeline.reading import dialect
from tests.testing.coverage.measured import Case, decisions, labels, missing
from tests.testing.scripted import Scripted, down

from quire.engine.interpreter.callees import Environment, Profile
from quire.source import Source
from quire.values import Value

MATCH = """pipeline: p
steps:
- match:
    on: ctx.kind
    cases:
      bug: {pipeline: fix, pass: [kind]}
      5: {pipeline: fix, pass: [kind]}
"""
FAN = """pipeline: p
dialect: quire
steps:
- for_each:
    over: ctx.l
    on_error: %s
    do: {tool: {name: t, args: {x: !expr item}}}
    collect: {transform: {value: "count(pipe) > 1 and count(errors) == 0"}}
"""


def run(**inputs: Value) -> tuple[dict[str, Value], Scripted]:
    return inputs, Scripted()


def failing(text: str, times: int) -> Scripted:
    """A tool that fails so many times for an item, and then works."""
    left = {text: times}

    class Failing(Scripted):
        def _tool(self, request):  # type: ignore[no-untyped-def]
            if left.get(str(request.arguments.get("x")), 0) > 0:
                left[str(request.arguments["x"])] -= 1
                raise down()
            return super()._tool(request)

    return Failing()


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ([], ["step 1: 1 item", "step 1: several items"]),
        (["a"], ["step 1: 0 items", "step 1: several items"]),
        (["a", "b"], ["step 1: 0 items", "step 1: 1 item"]),
    ],
)
@pytest.mark.parametrize("loop", ["for_each", "fold", "pipe"])
def test_items_of_loops(given: list[Value], left: list[str], loop: str) -> None:
    texts = {
        "for_each": FAN % "abort",
        "fold": dialect("fold: {over: ctx.l, init: '0', do: {transform: {value: acc + 1}}, output: n}"),
        "pipe": dialect(
            "transform: {value: ctx.l}",
            "for_each: {on_error: abort, do: {transform: {value: item}}, collect: {transform: {value: pipe}}}",
        ),
    }
    wanted = [one.replace("step 1", "step 2") if loop == "pipe" else one for one in left]
    assert missing(texts[loop], "fans", run(l=given)) == wanted


def test_a_list_that_is_written_down_decides_nothing() -> None:
    text = dialect(
        "for_each: {items: [1], on_error: abort, do: {transform: {value: item}}, collect: {transform: {value: pipe}}}"
    )
    assert labels(text, "fans") == []


@pytest.mark.parametrize(
    ("policy", "times", "left"),
    [
        ("continue", 0, ["step 1: an item is dropped"]),
        ("continue", 1, []),
        ("retry(2)", 0, ["step 1: a retry of an item succeeds", "step 1: an item fails after all retries"]),
        ("retry(2)", 2, ["step 1: an item fails after all retries"]),
        ("retry(2)", 3, ["step 1: a retry of an item succeeds"]),
        ("retry(1), continue", 2, ["step 1: a retry of an item succeeds"]),
        ("abort", 1, []),
    ],
)
def test_failures_of_items(policy: str, times: int, left: list[str]) -> None:
    text = FAN % policy
    assert missing(text, "errors", ({"l": ["a", "b"]}, failing("a", times))) == left


@pytest.mark.parametrize(
    ("policy", "times", "left"),
    [
        ("continue", 1, []),
        ("retry(2)", 1, ["step 1: a failure fails after all retries"]),
        ("retry(2)", 3, ["step 1: a retry of a failure succeeds"]),
        ("retry(2)", 0, ["step 1: a retry of a failure succeeds", "step 1: a failure fails after all retries"]),
    ],
)
@pytest.mark.parametrize("deep", [False, True])
def test_failures_of_steps(policy: str, times: int, left: list[str], deep: bool) -> None:
    step = f"tool: {{name: t, args: {{x: 'a'}}, on_error: '{policy}'}}"
    if deep:
        step = f"for_each: {{items: [1], on_error: abort, do: {{{step}}}, collect: {{transform: {{value: pipe}}}}}}"
        left = [one.replace("step 1", "step 1.do") for one in left]
    assert missing(dialect(step), "errors", ({}, failing("a", times))) == left


def test_a_step_whose_time_is_over_has_failed() -> None:
    text = dialect("agent: {prompt: Hi, timeout: 5s, on_error: continue}")
    assert missing(text, "errors", ({}, Scripted(seconds=6.0))) == []
    assert missing(text, "errors", ({}, Scripted(seconds=4.0))) == ["step 1: a failure is dropped"]


def test_labels_of_match_its_default_and_its_failure() -> None:
    none = "step 1: none of the cases (without default)"
    assert labels(MATCH, "arms") == ["step 1: case bug", "step 1: case 5", none]
    assert missing(MATCH, "arms", run(kind="bug")) == labels(MATCH, "arms")[1:]
    assert missing(MATCH, "arms", run(kind=5), run(kind="other")) == ["step 1: case bug"]
    quire = dialect("match: {on: ctx.k, cases: {a: {steps: [{transform: {value: '1'}}]}}, default: 'null', output: o}")
    both = run(k="a"), run(k="b")
    assert (labels(quire, "arms"), missing(quire, "arms", *both)) == (["step 1: case a", "step 1: default"], [])
    assert missing(quire, "steps", both[1]) == ["step 1.a.1 (Compute)"]


@pytest.mark.parametrize(
    ("first", "on", "both"),
    [
        ("ctx.n > 0", "ctx.n > 0 and not ctx.off", True),
        ("ctx.n > 0", "any(ctx.l, x -> x == 1)", True),
        ("ctx.n > 0 or contains('ab', ctx.s)", "many", True),
        ("ctx.n > 0", "ctx.many", True),
        ("ctx.n", "many", False),
        ("ctx.n > 0", "ctx.n", False),
        ("ctx.n > 0", "ctx.n > 0 and ctx.off", False),
    ],
)
def test_a_match_on_something_true_or_false_has_no_other_label(first: str, on: str, both: bool) -> None:
    cases = "'True': {steps: [{transform: {value: '1'}}]}, 'False': {steps: [{transform: {value: '2'}}]}"
    text = dialect(f'transform: {{value: "{first}", output: many}}', f'match: {{on: "{on}", cases: {{{cases}}}}}')
    none = [] if both else ["step 2: none of the cases (without default)"]
    assert labels(text, "arms") == ["step 2: case True", "step 2: case False", *none]
    assert len(labels(text.replace("'False'", "'no'"), "arms")) == 3


def test_every_boolean_part_is_seen_true_and_false() -> None:
    text = dialect(
        "transform: {value: '1', when: ctx.n > 3 and not ctx.off}",
        "transform: {value: \"filter(ctx.l, x -> x == 'a' or x == 'b')\"}",
        "transform: {value: \"get(ctx, 'm') or 'none'\"}",
    )
    assert labels(text, "conditions") == [
        f"{where}: `{part}` {way}"
        for where, part in (
            ("step 1", "ctx.n > 3 and not ctx.off"),
            ("step 1", "ctx.n > 3"),
            ("step 1", "ctx.off"),
            ("step 2", "x == 'a' or x == 'b'"),
            ("step 2", "x == 'a'"),
            ("step 2", "x == 'b'"),
            ("step 3", "get(ctx, 'm')"),
        )
        for way in ("true", "false")
    ]
    one = run(n=4, off=False, l=["a", "b"], m=1)
    assert missing(text, "conditions", one) == [
        "step 1: `ctx.n > 3 and not ctx.off` false",
        "step 1: `ctx.n > 3` false",
        "step 1: `ctx.off` true",
        "step 2: `x == 'a' or x == 'b'` false",
        "step 2: `x == 'b'` false",
        "step 3: `get(ctx, 'm')` false",
    ]
    assert missing(text, "conditions", one, run(n=1, off=False, l=["c"]), run(n=4, off=True, l=[])) == []


def test_a_step_that_its_condition_skips_did_not_run() -> None:
    text = dialect("transform: {value: '1', when: ctx.n}", "transform: {value: '2'}")
    assert missing(text, "steps", run(n=False)) == ["step 1 (Compute)"]


@pytest.mark.parametrize("on_max", ["fail", "keep"])
def test_rounds_end_by_until_or_are_used_up(on_max: str) -> None:
    text = dialect(f"repeat: {{do: {{transform: {{value: round}}}}, until: round == ctx.n, max: 3, on_max: {on_max}}}")
    assert missing(text, "fans", run(n=2)) == ["step 1: 3 rounds are used up"]
    assert missing(text, "fans", run(n=9)) == ["step 1: until holds"]


def test_a_reply_that_is_sent_back() -> None:
    text = "schema: s\nfields: {n: {type: number}}\n---\npipeline: p\nsteps:\n- agent: {prompt: Hi, schema: s}\n"
    back = "step 1: a reply that does not fit is sent back"
    assert missing(text, "errors", ({}, Scripted({"1": '{"n": 1}'}))) == [back]
    assert missing(text, "errors", ({}, Scripted({"1": ["no", '{"n": 1}']}))) == []


def test_questions_of_pipelines() -> None:
    text = dialect(
        "tool: {name: ask, args: {prompt: Sure, type: confirm, default: 'no'}}",
        "tool: {name: ask, args: {prompt: Which, type: select, options: [a, b]}}",
        "tool: {name: ask, args: {prompt: !expr ctx.p}}",
    )
    case = ({"p": "Say"}, Scripted(people={"1": "yes", "2": "b", "3": "x"}))
    left = ["step 1 answered no", "step 1 without a person: its default", "step 2 answered a"]
    assert missing(text, "answers", case) == left


def test_the_tools_that_an_agent_is_granted() -> None:
    text = "pipeline: p\nsteps:\n- agent: {prompt: Hi, capabilities: {tools: [file__read, 'mcp/x/*']}}\n"
    assert labels(text, "grants") == ["step 1: file__read is used", "step 1: mcp/x/* is used"]
    agent = Environment(profiles={"default": Profile(tools=("*",))})
    case: Case = ({}, Scripted({"1": [[("file__read", {"path": "x"})], "done"]}))
    assert missing(text, "grants", case, environment=agent) == ["step 1: mcp/x/* is used"]


def test_places_are_those_of_the_keys() -> None:
    text = FAN % "continue"
    source = Source.of(text)
    lines = {one.label: source.position(one.span.start).line for one in decisions(text)}
    assert lines["step 1 (t)"] == 4
    assert lines["step 1: 0 items"] == 5
    assert lines["step 1: an item is dropped"] == 6
    assert lines["step 1.collect: `count(errors) == 0` false"] == 8
    match = Source.of(MATCH)
    assert [match.position(one.span.start).line for one in decisions(MATCH) if one.kind == "arms"] == [6, 7, 5]
