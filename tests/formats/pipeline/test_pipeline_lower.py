"""From trees to plans: one node for a step, prompts taken apart, names that are passed."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.formats.pipeline.reading import file_of, steps

from quire.engine.interpreter.callees import Environment
from quire.engine.interpreter.pipeline.interpret import interpret_pipeline
from quire.engine.requests import ModelRequest
from quire.expr import EvalError
from quire.formats.pipeline.lower import lower
from quire.formats.pipeline.prompt_references import template
from quire.formats.pipeline.syntax import Name
from quire.plan.nodes import (
    Capture,
    Plan,
    Reference,
    Work,
)
from quire.plan.pipeline_work import (
    Agent,
    Call,
    Fold,
    ForEach,
    Formula,
    Invoke,
    Literal,
    OnError,
    Parallel,
    Select,
    Transform,
)
from quire.values import Value


def plan_of(text: str) -> Plan:
    file = file_of(text)
    return lower(file, file.pipelines[0])


def test_a_tree_that_differs_in_anything_has_a_plan_of_its_own() -> None:
    file = file_of("pipeline: p\ndialect: quire\nsteps:\n  - transform: {value: '1'}\n")
    (pipeline,) = file.pipelines
    assert lower(file, replace(pipeline)) == lower(file, pipeline)
    others = [
        replace(pipeline, name=Name("q", pipeline.name.span)),
        replace(pipeline, description="other"),
        replace(pipeline, steps=(*pipeline.steps, *pipeline.steps)),
        replace(pipeline, input=()),
    ]
    for one in others:
        other = lower(file, one)
        assert (other.title, other.description, len(other.body.steps), other.declared) == (
            one.name.text,
            one.description,
            len(one.steps),
            one.input,
        )
    assert lower(file, pipeline, {"p": "space/p"}).title == "space/p"
    assert lower(file, pipeline).title == "p"


def work_of(step: str) -> Work:
    work = plan_of(steps(step)).body.steps[0].work
    assert work is not None
    return work


def test_the_plan() -> None:
    text = "schema: R\nfields: {a: {type: bool}}\n---\npipeline: p\ndescription: D.\nsteps:\n"
    plan = plan_of(text + "- transform: {value: ctx.n + 1, output: m}\n- agent: {prompt: 'x {m}', schema: R}\n")
    assert (plan.title, plan.format, plan.description, plan.inputs) == ("p", "pipeline", "D.", ())
    assert list(plan.schemas) == ["R"]
    first, second = plan.body.steps
    assert (first.position, first.label, first.title, first.kind) == (1, "1", "", "transform")
    assert first.capture == Capture("m", None, (), None) and second.capture is None
    assert isinstance(first.work, Transform) and first.work.value.compiled.evaluate({"ctx": {"n": 1}}) == 2
    assert text[first.span.start : first.span.end] == ""
    assert second.work == Agent(template("x {m}"), None, None, "R")


def test_tools() -> None:
    work = work_of("tool: {name: t, args: {a: [1], b: !expr ctx.x}, output: o}")
    assert isinstance(work, Invoke) and work.tool == "t"
    (a, literal), (b, formula) = work.arguments
    assert (a, literal, b) == ("a", Literal([1]), "b") and isinstance(formula, Formula) and formula.text == "ctx.x"
    shell = work_of("shell: {command: [ls, -l], schema: S}")
    assert shell == Invoke("shell", (("command", Literal(["ls", "-l"])),), "S")


def test_compositions_have_labels_and_defaults() -> None:
    each = work_of("for_each: {on_error: continue, do: {tool: {name: t}}, collect: {transform: {value: pipe}}}")
    assert isinstance(each, ForEach)
    assert (each.source, each.on_error, each.max_parallel, each.max_items) == (None, OnError("continue"), 8, None)
    assert (each.do.label, each.collect.label, each.do.position) == ("1.do", "1.collect", 1)
    both = work_of("parallel: {branches: {a: {tool: {name: t}}}, collect: {transform: {value: pipe}}}")
    assert isinstance(both, Parallel) and both.on_error == OnError("abort")
    assert [(name, step.label) for name, step in both.branches] == [("a", "1.a")]
    fold = work_of("fold: {items: [1, 2], init: '0', do: {transform: {value: acc}}, output: t}")
    assert isinstance(fold, Fold) and fold.source == Literal([1, 2]) and fold.max_items is None


def test_every_step_of_a_plan_is_walked() -> None:
    inner = "for_each: {on_error: abort, do: {tool: {name: t}}, collect: {transform: {value: pipe}}}"
    plan = plan_of(steps(f"parallel: {{branches: {{a: {{{inner}}}}}, collect: {{transform: {{value: pipe}}}}}}"))
    assert [path for path, _ in plan.steps()] == [
        "1",
        "1/parallel[a]",
        "1/parallel[a]/for_each",
        "1/parallel[a]/collect",
        "1/collect",
    ]


def test_a_passed_name_is_a_store_and_nothing_else() -> None:
    call = work_of("call: {pipeline: q, pass: [a-b, item]}")
    assert isinstance(call, Call) and call.document == "q"
    (first, hyphen), (second, item) = call.passes
    assert (first, second) == ("a-b", "item")
    assert hyphen.compiled.evaluate({"ctx": {"a-b": 3}}) == 3
    with pytest.raises(EvalError, match="ctx has no item"):
        item.compiled.evaluate({"ctx": {}, "item": 1})


def test_match() -> None:
    work = work_of("match: {on: x, cases: {true: {pipeline: a, pass: {n: item}}}, default: {pipeline: b}}")
    assert isinstance(work, Select)
    assert work.cases[0][0] == "True" and [call.document for call in work.calls()] == ["a", "b"]
    assert work.default == Call("b")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", []),
        ("plain", ["plain"]),
        ("{ctx.a.b}", [("ctx.a.b", "{ctx.a.b}")]),
        ("a {pipe} b {item}{acc}", ["a ", ("pipe", "{pipe}"), " b ", ("item", "{item}"), ("acc", "{acc}")]),
        ("{review.passed} {foo}", [("review.passed", "{review.passed}"), " ", ("foo", "{foo}")]),
        ('Reply like {"passed": true}', ['Reply like {"passed": true}']),
        ("{ctx.n + 1} { ctx.a } {} {1} {a.} {.a} {a-b}", ["{ctx.n + 1} { ctx.a } {} {1} {a.} {.a} {a-b}"]),
        ("{{ctx.x}} and {{pipe}}", ["{ctx.x} and {pipe}"]),
        ("{{known.x}} {{a}}", [("known.x", "{{known.x}}"), " ", ("a", "{{a}}")]),
        ("{{{ctx.x}}}", ["{{ctx.x}}"]),
        ("{ctx.x}}", [("ctx.x", "{ctx.x}"), "}"]),
        ("{ä}", ["{ä}"]),
    ],
)
def test_templates(text: str, parts: list[str | tuple[str, str]]) -> None:
    found = [(part.name, part.raw) if isinstance(part, Reference) else part for part in template(text).parts]
    assert found == parts


@pytest.mark.parametrize(
    ("inputs", "prompt", "sent"),
    [
        ({"topic": "tea"}, "{topic} {{topic}} {{topic.x}}", "tea {topic} {topic.x}"),
        ({}, "{topic} {{topic}} {{topic.x}}", "{topic} {{topic}} {{topic.x}}"),
        ({}, "{made} {{made}} {later} {{later}}", "1 {made} {later} {{later}}"),
        ({}, "{{ctx.gone}} {{item}} {{pipe}}", "{ctx.gone} {item} {pipe}"),
    ],
)
def test_double_braces_are_an_escape_exactly_where_single_ones_are_a_reference(
    inputs: dict[str, Value], prompt: str, sent: str
) -> None:
    plan = plan_of(
        steps(
            "transform: {value: '1', output: made}",
            f"agent: {{prompt: '{prompt}'}}",
            "transform: {value: '2', output: later}",
        )
    )
    walk = interpret_pipeline(plan, inputs, Environment())
    asked = next(walk)
    while not isinstance(asked, ModelRequest):
        asked = walk.send({})
    assert asked.messages[0].content == sent
