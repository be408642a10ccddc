"""Reading pipelines: what is in the tree, everything that is refused, and where the finger points."""

from __future__ import annotations

import pytest
from tests.formats.pipeline.reading import file_of, pipeline_of, problems, step_of, steps
from tests.growth import within

from quire.formats.pipeline.parse import parse
from quire.formats.pipeline.syntax import (
    AgentBody,
    CallBody,
    ExpressionText,
    FoldBody,
    ForEachBody,
    Literal,
    MatchBody,
    ParallelBody,
    ShellBody,
    ToolBody,
    TransformBody,
)
from quire.plan.pipeline_work import OnError
from quire.source import Source

DO = "do: {transform: {value: item}}"
COLLECT = "collect: {transform: {value: pipe}}"


def test_the_whole_shape() -> None:
    file = file_of(
        """\
schema: Review
fields: {passed: {type: bool}}
---
pipeline: review_and_report
description: Review a document.
steps:
  - agent: {prompt: "Review {ctx.doc}.", identity: me, capabilities: {tools: [file__read]}, schema: Review, output: r}
  - tool: {name: file__write, args: {path: a.txt, n: 2, deep: {a: [1, null]}, content: !expr r.notes}, output: w}
"""
    )
    (pipeline,) = file.pipelines
    assert (pipeline.name.text, pipeline.description) == ("review_and_report", "Review a document.")
    assert [schema.name for schema in file.schemas] == ["Review"]
    agent, tool = (step.body for step in pipeline.steps)
    assert isinstance(agent, AgentBody) and isinstance(tool, ToolBody)
    assert agent.prompt.text == "Review {ctx.doc}." and agent.identity and agent.identity.text == "me"
    assert [name.text for name in agent.tools or ()] == ["file__read"]
    values = {name.text: value.value if isinstance(value, Literal) else value.text for name, value in tool.args}
    assert values == {"path": "a.txt", "n": 2, "deep": {"a": [1, None]}, "content": "r.notes"}
    assert [step.output.text if step.output else None for step in pipeline.steps] == ["r", "w"]


def test_compositions() -> None:
    fold = step_of("fold: {items: [1, {a: b}], init: '0', do: {transform: {value: acc}}, output: t, max_items: 3}").body
    assert isinstance(fold, FoldBody) and isinstance(fold.source, Literal)
    assert (fold.source.value, fold.init.text, fold.max_items) == ([1, {"a": "b"}], "0", 3)
    each = step_of(f"for_each: {{over: xs, on_error: retry(2), max_parallel: 4, max_items: 9, {DO}, {COLLECT}}}").body
    assert isinstance(each, ForEachBody) and isinstance(each.source, ExpressionText)
    assert (each.on_error, each.max_parallel, each.max_items) == (OnError("retry", 2), 4, 9)
    assert isinstance(each.collect.body, TransformBody)
    both = step_of(
        f"parallel: {{branches: {{a: {{call: {{pipeline: k.x}}}}, collect: {{shell: {{command: ls}}}}}}, {COLLECT}}}"
    ).body
    assert isinstance(both, ParallelBody) and both.on_error is None
    assert [(name.text, type(step.body)) for name, step in both.branches] == [("a", CallBody), ("collect", ShellBody)]


def test_labels_are_the_text_that_python_makes_of_them() -> None:
    body = step_of(
        "match: {on: x, cases: {true: {pipeline: a}, null: {pipeline: a}, 2.0: {pipeline: a}, on: {pipeline: a}}}"
    ).body
    assert isinstance(body, MatchBody)
    assert [label.text for label, _ in body.cases] == ["True", "None", "2.0", "on"]


def test_what_may_be_left_empty() -> None:
    tool = step_of("tool: {name: t, args: }").body
    call = step_of("call: {pipeline: q, pass: }").body
    agent = step_of("agent: {prompt: hi, capabilities: {tools: []}}").body
    assert isinstance(tool, ToolBody) and tool.args == ()
    assert isinstance(call, CallBody) and call.target.passes == ()
    assert isinstance(agent, AgentBody) and agent.tools == ()


def test_passing_by_list_and_by_mapping() -> None:
    by_list = step_of("call: {pipeline: q, pass: [a, b-c]}").body
    by_mapping = step_of('call: {pipeline: q, pass: {a: "item * 2"}}').body
    assert isinstance(by_list, CallBody) and isinstance(by_mapping, CallBody)
    assert [(one.name.text, one.value) for one in by_list.target.passes] == [("a", None), ("b-c", None)]
    assert [(one.name.text, one.value.text if one.value else "") for one in by_mapping.target.passes] == [
        ("a", "item * 2")
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", [("PL001", "")]),
        ("schema: A\nfields: {x: {type: string}}\n", [("PL001", "")]),
        ("name: a\nsteps: [{transform: {value: '1'}}]\n", [("PL002", "name")]),
        ("- a\n- b\n", [("PL002", "- a\n- b")]),
        ("just text", [("PL002", "just text")]),
        (steps("transform: {value: '1'}") + "---\n" + steps("transform: {value: '2'}"), [("PL003", "pipeline")]),
        ("pipeline: p\ndescripton: x\nsteps: [{transform: {value: '1'}}]\n", [("PL005", "descripton")]),
        ("pipeline: p\ninput: {}\ndefaults: 1\nrefine: []\nsteps: [{transform: {value: '1'}}]\n",
         [("PL006", "input"), ("PL006", "defaults"), ("PL006", "refine")]),
        ("pipeline: my pipe\nsteps: [{transform: {value: '1'}}]\n", [("PL007", "my pipe")]),
        ("pipeline: 5\nsteps: [{transform: {value: '1'}}]\n", [("PL007", "5")]),
        ("pipeline:\nsteps: [{transform: {value: '1'}}]\n", [("PL007", "pipeline")]),
        ("pipeline: p\n", [("PL012", "pipeline")]),
        ("pipeline: p\nsteps: []\n", [("PL013", "[]")]),
        ("pipeline: p\nsteps:\n", [("PL013", "steps")]),
        ("pipeline: p\nsteps: {transform: {value: '1'}}\n", [("PL013", "{transform: {value: '1'}}")]),
        ("pipeline: p\ndescription: 5\nsteps: [{transform: {value: '1'}}]\n", [("PL013", "5")]),
        ("pipeline: p\nsteps: [\n", [("YM001", "")]),
        ("pipeline: p\npipeline: q\nsteps: [{transform: {value: '1'}}]\n", [("YM005", "pipeline")]),
    ],
)  # fmt: skip
def test_documents(text: str, found: list[tuple[str, str]]) -> None:
    assert problems(text) == found


@pytest.mark.parametrize(
    ("step", "found"),
    [
        ("transform", [("PL008", "transform")]),
        ("{}", [("PL008", "{}")]),
        ("[1]", [("PL008", "[1]")]),
        ("transform:\n  value: '1'", [("PL010", "transform"), ("PL008", "value")]),
        ("{transform: {value: '1'}, tool: {name: t}}", [("PL008", "tool")]),
        ("loop: {value: '1'}", [("PL009", "loop")]),
        ("{kind: agent, prompt: hi}", [("PL009", "kind")]),
        ("agent: Summarise", [("PL010", "Summarise")]),
        ("transform:", [("PL010", "transform")]),
        ("transform: {value: '1', outptu: x, 3: y}", [("PL011", "outptu"), ("PL011", "3")]),
        ("transform: {output: x}", [("PL012", "transform")]),
        ("tool: {}", [("PL012", "tool")]),
        ("shell: {}", [("PL012", "shell")]),
        ("agent: {identity: me}", [("PL012", "agent")]),
        ("call: {pass: [a]}", [("PL012", "call")]),
        ("match: {}", [("PL012", "match"), ("PL012", "match")]),
        ("fold: {}", [("PL012", "fold")] * 3),
        ("for_each: {}", [("PL012", "for_each")] * 3),
        ("parallel: {}", [("PL012", "parallel")] * 2),
        ("agent: {prompt: hi, capabilities: {}}", [("PL012", "capabilities")]),
        ("match: {on: x, cases: {a: {pass: [b]}}}", [("PL012", "a")]),
        ("tool: {name: 5}", [("PL013", "5")]),
        ("tool: {name: ''}", [("PL013", "''")]),
        ("tool: {name: t, args: [1]}", [("PL013", "[1]")]),
        ("agent: {prompt: {ctx.x}}", [("PL013", "{ctx.x}")]),
        ("agent: {prompt: hi, capabilities: [a]}", [("PL013", "[a]")]),
        ("agent: {prompt: hi, capabilities: {tools: a, more: b}}", [("PL013", "a"), ("PL011", "more")]),
        ("agent: {prompt: hi, capabilities: {tools: [1, ok, '']}}", [("PL013", "1"), ("PL013", "''")]),
        ("call: {pipeline: q, pass: a}", [("PL013", "a")]),
        ("match: {on: x, cases: {}}", [("PL013", "{}")]),
        ("match: {on: x, cases: {a: q}}", [("PL013", "q")]),
        ("match: {on: x, cases: {a: {pipeline: q}}, default: q}", [("PL013", "q")]),
        (f"fold: {{items: 3, init: '0', {DO}, output: t}}", [("PL013", "3")]),
        (f"parallel: {{branches: {{}}, {COLLECT}}}", [("PL013", "{}")]),
        (f"parallel: {{branches: [a], {COLLECT}}}", [("PL013", "[a]")]),
        ("transform: {value: 1}", [("PL014", "1")]),
        ("transform: {value: [a]}", [("PL014", "[a]")]),
        ("transform: {value: }", [("PL014", "value")]),
        (f"fold: {{over: 1, init: 0, {DO}, output: t}}", [("PL014", "1"), ("PL014", "0")]),
        ("match: {on: true, cases: {a: {pipeline: q}}}", [("PL014", "true")]),
        ("call: {pipeline: q, pass: {a: 1}}", [("PL014", "1")]),
        ("call: {pipeline: !expr x}", [("PL015", "!expr x")]),
        ("match: {on: x, cases: {a: {pipeline: !expr x}}}", [("PL015", "!expr x")]),
        (f"fold: {{over: xs, items: [1], init: '0', {DO}, output: t}}", [("PL016", "items")]),
        *((f"for_each: {{items: [1], on_error: {policy}, {DO}, {COLLECT}}}", [("PL017", policy)])
          for policy in ("retry", "retry( 2 )", "retry(-1)", "retry(1.5)", "retry(٣)",
                         "stop", "3", "retry(9999999)", "[a]")),
        *((f"for_each: {{items: [1], on_error: abort, max_parallel: {n}, {DO}, {COLLECT}}}", [("PL018", n)])
          for n in ("0", "-1", "true", "2.0", "'4'", "[4]")),
        (f"fold: {{items: [1], init: '0', {DO}, output: t, max_items: 0}}", [("PL018", "0")]),
        ("match: {on: x, cases: {true: {pipeline: a}, 'True': {pipeline: b}}}", [("PL019", "'True'")]),
        ("transform: {value: '1', output: a.b}", [("PL007", "a.b")]),
        ("transform: {value: '1', output: ''}", [("PL007", "''")]),
        ("transform: {value: '1', output: 5}", [("PL007", "5")]),
        ("transform: {value: '1', output: ä}", [("PL007", "ä")]),
        ("agent: {prompt: hi, identity: the boss}", [("PL007", "the boss")]),
        ("agent: {prompt: hi, schema: My Review}", [("PL007", "My Review")]),
        ("call: {pipeline: a b, pass: [1, b/c]}", [("PL007", "a b"), ("PL007", "1"), ("PL007", "b/c")]),
        ("call: {pipeline: a.b.c}", [("PL007", "a.b.c")]),
        ("call: {pipeline: q, pass: {a.b: x}}", [("PL007", "a.b")]),
        (f"parallel: {{branches: {{a/b: {{transform: {{value: '1'}}}}}}, {COLLECT}}}", [("PL007", "a/b")]),
        (f"parallel: {{branches: {{1: {{transform: {{value: '1'}}}}}}, {COLLECT}}}", [("YM006", "1")]),
        ("tool: {name: t, args: {x: [1, !expr ctx.y]}}", [("YM010", "!expr ctx.y")]),
        (f"fold: {{items: [!expr ctx.x], init: '0', {DO}, output: t}}", [("YM010", "!expr ctx.x")]),
        ("shell: {command: [ls, !expr ctx.x]}", [("YM010", "!expr ctx.x")]),
        ("transform: {value: !expr x, output: !expr y}", [("YM010", "!expr x"), ("YM010", "!expr y")]),
        ("tool: {name: !expr x}", [("YM010", "!expr x")]),
        ("agent: {prompt: !expr x}", [("YM010", "!expr x")]),
    ],
)  # fmt: skip
def test_steps(step: str, found: list[tuple[str, str]]) -> None:
    assert problems(steps(step)) == found


@pytest.mark.parametrize(
    "step",
    [
        f"for_each: {{items: [1], on_error: retry(0), {DO}, {COLLECT}}}",
        "transform: {value: pipe, output: o-1}",
        "agent: {prompt: ''}",
        "shell: {command: !expr '[ctx.a]'}",
        "tool: {name: rye/file-system/write}",
        "call: {pipeline: key.name}",
    ],
)
def test_what_is_accepted(step: str) -> None:
    assert problems(steps(step)) == []


@pytest.mark.parametrize(
    ("step", "pointed"),
    [
        ("transform: {value: ctx.a % 2}", "%"),
        ("transform: {value: 'ctx.a % 2'}", "%"),
        ('transform: {value: "ctx.a % 2"}', "%"),
        ("transform: {value: '''a'' % 2'}", "%"),
        ('transform: {value: "\\"a\\" % 2"}', "%"),
        ("transform:\n    value: |\n      ctx.a\n        % 2\n", "%"),
        ("transform:\n    value: >\n      ctx.a\n      % 2\n", "%"),
        ("tool: {name: t, args: {x: !expr ctx.a % 2}}", "%"),
        ("call: {pipeline: q, pass: {a: 'b % 2'}}", "%"),
        ("transform: {value: '1 +'}", ""),
        ("transform: {value: ''}", ""),
    ],
)
def test_the_finger_is_on_the_character_of_an_expression(step: str, pointed: str) -> None:
    assert problems(steps(step)) == [("EX001", pointed)]


def test_the_end_of_an_expression_is_its_closing_quote() -> None:
    text = steps("transform: {value: '1 +'}")
    (found,) = parse(Source.of(text)).diagnostics
    assert found.span.start == text.index("'}")


def test_ten_mistakes_are_ten_findings() -> None:
    text = """\
pipeline: ten mistakes
descripton: x
refine: {}
steps:
  - transform: {value: 1, output: a.b}
  - tol: {name: t}
  - for_each:
      over: ctx.x +
      items: [1]
      do: {agent: {promt: hi}}
      collect: {transform: {value: pipe}}
  - call: {pipeline: !expr x, pass: b}
"""
    found = problems(text)
    assert [code for code, _ in found] == [
        "PL007", "PL005", "PL006", "PL014", "PL007", "PL009", "PL012", "EX001", "PL016", "PL012",
        "PL011", "PL015", "PL013",
    ]  # fmt: skip
    lines = [Source.of(text).position(one.span.start).line for one in parse(Source.of(text)).diagnostics]
    assert lines == sorted(lines)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (steps("transfrom: {value: '1'}"), "did you mean transform"),
        (steps("if: {on: x}"), "did you mean match"),
        (steps("transform: {value: '1', ouput: a}"), "did you mean output"),
        (steps("transform: {value: 1}"), 'write "1"'),
        (steps("transform:\n  value: '1'"), "indent it further"),
        (steps("{kind: agent, prompt: hi}"), "write agent: {prompt: …}"),
        (steps("call: {pipeline: q, pass: a}"), "write [a]"),
        (steps("match: {on: x, cases: {a: q}}"), "write {pipeline: q}"),
        (steps("transform: {value: !expr x}"), "leave !expr out"),
        ("pipline: p\nsteps: [{transform: {value: '1'}}]\n", "did you mean pipeline"),
    ],
)
def test_the_help_says_what_to_write(text: str, words: str) -> None:
    assert any(words in one.help for one in parse(Source.of(text)).diagnostics)


def test_a_registered_file_may_have_several_pipelines_of_different_names() -> None:
    text = steps("call: {pipeline: q}") + "---\n" + steps("transform: {value: '1'}").replace(": p\n", ": q\n", 1)
    assert [one.name.text for one in file_of(text, registered=True).pipelines] == ["p", "q"]
    twice = steps("transform: {value: '1'}") + "---\n" + steps("transform: {value: '2'}")
    reading = parse(Source.of(twice), registered=True)
    assert [one.code.id for one in reading.diagnostics] == ["PL004"]


def test_schemas_are_read_with_the_pipeline() -> None:
    text = "schema: A\nfields: {x: {type: integer}}\n---\nschema: B\nfields: {}\n---\n" + steps("transform: {value: 1}")
    assert [code for code, _ in problems(text)] == ["PL043", "PL040", "PL014"]


def test_one_expression_written_twice_has_two_places() -> None:
    first, second = (
        step.body for step in pipeline_of(steps("transform: {value: ctx.a}", "transform: {value: ctx.a}")).steps
    )
    assert isinstance(first, TransformBody) and isinstance(second, TransformBody)
    assert first.value.expression is second.value.expression and first.value.span != second.value.span


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (steps(f"fold: {{items: [{'1, ' * 1_000_000}1], init: '0', {DO}, output: t}}"), "YM002"),
        (steps(f"tool: {{name: t, args: {{x: {'x' * 3_000_000}}}}}"), "YM002"),
        (steps(f"transform: {{value: '{'(' * 100_000}'}}"), "EX001"),
        (steps(f"transform: {{value: '{'x' * 100_001}'}}"), "EX001"),
        ("a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{f'*a{n - 1},' * 10}]\n" for n in range(1, 12)), "YM008"),
        (steps("for_each: {do: {" * 60), "YM003"),
        (steps("transform: {" + ", ".join(f"key{n}: x" for n in range(9_000)) + "}"), "PL011"),
    ],
)
def test_hostile_texts_are_refused_quickly(text: str, code: str) -> None:
    with within(2):
        found = problems(text)
        assert code in [one for one, _ in found]
