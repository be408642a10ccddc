"""Declared inputs: read, written, shown and checked."""

from __future__ import annotations

from typing import Any, cast

import pytest
from tests.formats.pipeline.reading import Workspace, checked, file_of, problems

from quire.formats.pipeline.fields import ADD_DIALECT
from quire.formats.pipeline.inputs import further_inputs, needed_inputs
from quire.formats.pipeline.lower import lower
from quire.formats.pipeline.parse import parse
from quire.formats.pipeline.write import pipeline_tree, write
from quire.schema import Enum, Field, Kind, ListOf, Ref, Simple
from quire.source import Source

TEXT = Simple(Kind.STRING)
HEAD = "pipeline: p\ndialect: quire\n"
FULL = """\
schema: Person
fields: {name: {type: string}}
---
pipeline: greet
dialect: quire
input:
  readers: {type: list, of: {type: string}, max_items: 20, description: "Who reads it."}
  tone: {type: enum, values: [warm, dry], default: dry}
  times: {type: number, minimum: 1, required: false}
  author: {type: ref, schema: Person, default: {name: Ann}}
steps:
  - agent: {prompt: "{ctx.readers} {ctx.tone} {ctx.author.name}"}
  - transform: {value: "get(ctx, 'times')"}
"""


def document(inputs: str, *steps: str) -> str:
    listed = "".join(f"- {step}\n" for step in steps or ("transform: {value: ctx}",))
    return f"{HEAD}input: {inputs}\nsteps:\n{listed}"


def test_inputs_are_read_lowered_and_written() -> None:
    file = file_of(FULL)
    [pipeline] = file.pipelines
    assert pipeline.input == (
        Field("readers", ListOf(TEXT, 20), description="Who reads it."),
        Field("tone", Enum(("warm", "dry")), default="dry"),
        Field("times", Simple(Kind.NUMBER, 1), required=False),
        Field("author", Ref("Person"), default={"name": "Ann"}),
    )
    assert lower(file, pipeline).declared == pipeline.input
    assert (needed_inputs(pipeline), further_inputs(pipeline)) == (("readers",), ("tone", "times", "author"))
    assert file_of(write(file)).pipelines[0].input == pipeline.input
    assert checked(FULL) == []


def test_inputs_in_the_syntax_tree() -> None:
    [tree] = cast("list[Any]", pipeline_tree(parse(Source.of(FULL)))["pipelines"])
    assert tree["input"]["tone"] == {"type": "enum", "values": ["warm", "dry"], "required": True, "default": "dry"}
    assert tree["input"]["readers"]["description"] == "Who reads it."
    [tree] = cast("list[Any]", pipeline_tree(parse(Source.of(document("{}", "transform: {value: '1'}"))))["pipelines"])
    assert tree["input"] == {}


def test_an_empty_declaration_is_kept() -> None:
    file = file_of(document("{}", "transform: {value: '1'}"))
    assert file.pipelines[0].input == ()
    assert file_of(write(file)).pipelines[0].input == ()


def test_without_the_dialect_input_stays_refused_and_names_the_line() -> None:
    [found] = parse(
        Source.of("pipeline: p\ninput: {a: {type: string}}\nsteps: [{transform: {value: ctx.a}}]")
    ).diagnostics
    assert found.code.id == "PL006"
    assert found.help.startswith(ADD_DIALECT)


@pytest.mark.parametrize("key", ["defaults", "refine"])
def test_other_planned_keys_stay_refused_in_the_dialect(key: str) -> None:
    assert problems(f"{HEAD}{key}: {{}}\nsteps: [{{transform: {{value: '1'}}}}]") == [("PL006", key)]


@pytest.mark.parametrize(
    ("inputs", "code", "pointed"),
    [
        ("[a]", "PL013", "[a]"),
        ("null", "PL013", "null"),
        ("{a: string}", "PL043", "string"),
        ("{a: {type: text}}", "PL043", "text"),
        ("{a: {type: string, defualt: x}}", "PL044", "defualt"),
        ("{'a b': {type: string}}", "PL041", "'a b'"),
        ("{a: {type: ref, schema: Nope}}", "PL140", "Nope"),
        ("{a: {type: enum, values: [warm, dry], default: sober}}", "PL049", "sober"),
        ("{a: {type: string, default: null}}", "PL049", "null"),
        ("{a: {type: number, minimum: 3, default: 2}}", "PL049", "2"),
        ("{a: {type: list, of: {type: string}, max_items: 1, default: [x, y]}}", "PL049", "[x, y]"),
        ("{a: {type: object, fields: {x: {type: bool}}, default: {x: 1}}}", "PL049", "{x: 1}"),
        ("{a: {type: string, default: !expr 1 + 1}}", "YM010", "!expr 1 + 1"),
        ("{a: {type: object, fields: {x: {type: bool, default: true}}}}", "PL044", "default"),
    ],
)
def test_a_wrong_declaration(inputs: str, code: str, pointed: str) -> None:
    assert (code, pointed) in problems(document(inputs))


def test_a_declaration_that_cannot_be_read_is_not_reported_twice() -> None:
    assert checked(document("{a: {type: text}}", "transform: {value: ctx.a + 1}")) == [("PL043", "text")]


@pytest.mark.parametrize(
    ("inputs", "step", "expected"),
    [
        ("{name: {type: string}}", "transform: {value: ctx.name + ctx.nmae}", [("PL142", "ctx.nmae")]),
        ("{name: {type: string}}", "transform: {value: name + nmae}", [("PL142", "nmae")]),
        (
            "{name: {type: string}}",
            "transform: {value: \"name + get(ctx, 'x', '')\"}",
            [("PL142", "get(ctx, 'x', '')")],
        ),
        ("{name: {type: string}}", "agent: {prompt: 'Hi {ctx.nmae} {name}'}", [("PL142", "{ctx.nmae}")]),
        ("{name: {type: string}}", "agent: {prompt: 'Hi {nmae} {name}'}", [("PL207", "{nmae}")]),
        ("{name: {type: string}}", "agent: {prompt: '{\"json\": 1} {name} {other}'}", []),
        ("{name: {type: string}}", "transform: {value: '1'}", [("PL240", "name")]),
        ("{name: {type: string}}", "transform: {value: ctx}", []),
        ("{n: {type: number, required: false}}", "transform: {value: n + 1}", [("PL209", "n")]),
        ("{n: {type: number, required: false, default: 1}}", "transform: {value: n + 1}", []),
        ("{n: {type: number, required: false}}", "transform: {value: \"get(ctx, 'n', 0)\"}", []),
        ("{item: {type: number}}", "transform: {value: ctx.item}", [("PL204", "item")]),
        ("{o: {type: object, fields: {a: {type: string}}}}", "transform: {value: o.b}", [("PL109", "b")]),
        ("{xs: {type: list, of: {type: string}}}", "transform: {value: xs < 3}", [("PL110", "xs < 3")]),
        ("{n: {type: number, maximum: 3}}", "transform: {value: \"n + 1 < 'x'\"}", [("PL110", "n + 1 < 'x'")]),
    ],
)
def test_reads_are_checked_against_the_declaration(inputs: str, step: str, expected: list[tuple[str, str]]) -> None:
    assert checked(document(inputs, step)) == expected


def test_a_step_may_write_over_an_input_and_read_its_own_store() -> None:
    steps = (
        "transform: {value: name + '!', output: name}",
        "transform: {value: '1', output: x}",
        "transform: {value: x}",
    )
    assert checked(document("{name: {type: string}}", *steps)) == []


CALLEE = document(
    "{n: {type: number, minimum: 1}, tone: {type: enum, values: [warm, dry], default: dry}}",
    "transform: {value: \"n > 1 and tone or ''\"}",
).replace("pipeline: p", "pipeline: callee")


@pytest.mark.parametrize(
    ("passed", "expected"),
    [
        ("{n: '3'}", []),
        ("{n: '3', tone: \"'warm'\"}", []),
        ("[n]", []),
        ("{tone: \"'warm'\"}", [("PL106", "callee")]),
        ("{n: '3', tune: '1'}", [("PL114", "tune")]),
        ("{n: '0'}", [("PL114", "n")]),
        ("{n: \"'x'\"}", [("PL114", "n")]),
        ("{n: '3', tone: \"'sober'\"}", [("PL114", "tone")]),
        ("{n: text}", [("PL114", "n")]),
        ("{n: n, tone: n}", [("PL114", "tone")]),
        ("{n: n, tone: text}", []),
    ],
)
def test_calls_are_checked_against_the_declaration(passed: str, expected: list[tuple[str, str]]) -> None:
    caller = document(
        "{n: {type: number}, text: {type: string}}",
        "transform: {value: text + text}",
        "transform: {value: n + 1}",
        f"call: {{pipeline: callee, pass: {passed}}}",
    )
    assert checked(caller, Workspace(CALLEE)) == expected


def test_hostile_declarations_take_no_long_time() -> None:
    many = "{" + ", ".join(f"n{at}: {{type: number}}" for at in range(4_000)) + "}"
    assert len(file_of(document(many)).pipelines[0].input or ()) == 4_000
    deep = "{type: object, fields: {x: " * 40 + "{type: bool}" + "}}" * 40
    assert file_of(document(f"{{a: {deep}}}")).pipelines[0].input
    values = ", ".join(f"v{at}" for at in range(15_000))
    assert file_of(document(f"{{a: {{type: enum, values: [{values}], default: v9}}}}")).pipelines[0].input
