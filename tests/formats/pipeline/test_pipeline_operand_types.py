"""TY101 to TY105: values of a type with which a step fails, or a comparison never holds."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.given import given

from quire.diagnostics import edits_of
from quire.formats.pipeline import operand_types
from quire.formats.pipeline.check import check
from quire.formats.pipeline.operand_types import argument_problem
from quire.library.check import DocumentCheck
from quire.plan.built_in_tools import BUILT_IN_TOOLS
from quire.schema import Enum
from quire.source import Source

INPUTS = """pipeline: p
dialect: quire
input:
  n: {type: number}
  t: {type: string}
  b: {type: bool}
  xs: {type: list, of: {type: string}}
  ns: {type: list, of: {type: number}}
  kind: {type: enum, values: [bill, letter]}
  tray: {type: enum, values: [left, right]}
  half: {type: enum, values: [left, up]}
  extra: {type: number, required: false}
steps:
"""


def found_in(steps: str, prefix: str = "TY") -> list[tuple[str, str]]:
    findings = check(Source.of(INPUTS + steps, "p.yaml"))
    assert [one.message for one in findings if one.code.severity == "error"] == []
    return [(one.code.id, one.message) for one in findings if one.code.id.startswith(prefix)]


def codes_in(value: str) -> list[str]:
    return [code for code, _ in found_in(f'- transform: {{value: "{value}"}}\n')]


@pytest.mark.parametrize(
    "value",
    [
        "ctx.t + ctx.n",
        "ctx.n + ctx.t",
        "ctx.n + 1 + ctx.t",
        "ctx.n - ctx.t",
        "ctx.t * 2",
        "ctx.b + 1",
        "ctx.xs + 'a'",
        "ctx.xs + ctx.n",
        "{a: 1} + {b: 2}",
        "null + 1",
        "-ctx.t",
        "count(ctx.t)",
        "sum(ctx.xs)",
        "join(ctx.ns, ', ')",
        "join(ctx.xs, 1)",
        "map(ctx.n, x -> x)",
        "any(ctx.t, x -> x)",
        "map(ctx.xs, x -> x + 1)",
        "1 - (ctx.t + 'a')",
        "pipe - 1 + 'a'",
    ],
)
def test_operands_that_fail(value: str) -> None:
    assert codes_in(value) == ["TY101"]


@pytest.mark.parametrize(
    "value",
    [
        "ctx.n + 1",
        "ctx.t + 'a' + ctx.t",
        "ctx.xs + ['a'] + ctx.xs",
        "ctx.n / 2 - 1",
        "-ctx.n",
        "count(ctx.xs)",
        "sum(ctx.ns)",
        "join(ctx.xs, ', ')",
        "map(ctx.ns, x -> x + 1)",
        "text(ctx.n) + ctx.t",
        "ctx.kind + ctx.t",
        "find(ctx.ns, x -> x > 1) == null",
        "pipe + 1",
        "map(parse(ctx.t), x -> x + 'a')",
    ],
)
def test_operands_that_fit(value: str) -> None:
    assert codes_in(value) == []


def test_the_place_and_the_help_of_an_operand() -> None:
    text = INPUTS + "- transform: {value: \"'pages: ' + ctx.n\"}\n"
    [finding] = [one for one in check(Source.of(text, "p.yaml")) if one.code.id == "TY101"]
    assert text[finding.span.start : finding.span.end] == "ctx.n"
    assert finding.message == "+ needs two numbers, two texts or two lists, not a text and a number"
    assert "text(…)" in finding.help


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("get(ctx, 'extra') + 1", ["TY102"]),
        ("get(ctx, 'extra') > 1", ["TY102"]),
        ("-get(ctx, 'extra')", ["TY102"]),
        ("count(get(ctx, 'more'))", ["TY102"]),
        ("find(ctx.ns, x -> x > 1) + 1", ["TY102"]),
        ("get(ctx, 'extra', 0) + 1", []),
        ("get(ctx, 'extra') == 1", []),
        ("get(ctx, 'extra') and get(ctx, 'extra') + 1", []),
        ("(find(ctx.ns, x -> x > 1) or 0) + 1", []),
        ("map(filter(pipe, x -> get(x, 'n')), x -> get(x, 'n') + 1)", []),
    ],
)
def test_values_that_may_be_null(value: str, found: list[str]) -> None:
    assert codes_in(value) == found


def test_a_when_may_have_looked_at_the_value() -> None:
    step = "- transform: {value: \"get(ctx, 'extra') + 1\", when: \"get(ctx, 'extra')\"}\n"
    assert found_in(step) == []


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("ctx.kind == 'Bill'", ["TY105"]),
        ("'Bill' != ctx.kind", ["TY105"]),
        ("ctx.kind == ctx.tray", ["TY105"]),
        ("ctx.n == '1'", ["TY105"]),
        ("ctx.xs == 'a'", ["TY105"]),
        ("ctx.b == 'true'", ["TY105"]),
        ("ctx.kind == 'bill'", []),
        ("ctx.kind == ctx.kind", []),
        ("ctx.n == 1", []),
        ("ctx.b == 1", []),
        ("ctx.t == 'a'", []),
        ("ctx.kind == ctx.t", []),
        ("ctx.kind == null", []),
        ("pipe == 'a'", []),
        ("'a' == 'b'", []),
    ],
)
def test_comparisons_that_never_hold(value: str, found: list[str]) -> None:
    assert codes_in(value) == found


def test_a_comparison_says_which_values_there_are() -> None:
    text = INPUTS + "- transform: {value: '1', when: \"ctx.kind == 'Bill'\"}\n"
    [finding] = [one for one in check(Source.of(text, "p.yaml")) if one.code.id == "TY105"]
    assert finding.message == "== never holds: the value is never Bill"
    assert finding.help == "it is one of bill, letter"


@pytest.mark.parametrize(
    ("word", "meant"), [("Bill", "bill"), ("leter", "letter"), ("invoice", None), ("b\\\\u0069ll ", None)]
)
def test_a_misspelled_word_is_corrected(word: str, meant: str | None) -> None:
    text = INPUTS + f"- transform: {{value: '1', when: \"ctx.kind == '{word}'\"}}\n"
    source = Source.of(text, "p.yaml")
    [finding] = [one for one in check(source) if one.code.id == "TY105"]
    edits = edits_of(source, finding)
    assert [edit.new for edit in edits] == ([meant] if meant else [])


def in_workspace(folder: Path, steps: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(folder)
    given({"quire.toml": "", "playbooks/file_it.playbook.md": PLAYBOOK}, folder)
    text = INPUTS + steps
    (folder / "p.yaml").write_text(text)
    found = DocumentCheck().of(Source.of(text, str(folder / "p.yaml")))
    return [one.code.id for one in found if one.code.id.startswith("TY") or one.code.id in ("PL113", "PL114")]


PLAYBOOK = """# File it

## INPUTS

- `tray` (enum: left, right): Where
- `note` (string: none): More

## STEP 1: File

Put it into the tray {{tray}}: {{note}}.
"""


@pytest.mark.parametrize(
    ("step", "found"),
    [
        ("tool: {name: file__read, args: {path: !expr ctx.n}}", ["TY103"]),
        ("tool: {name: file__read, args: {path: !expr ctx.t, limit: !expr ctx.t}}", ["TY103"]),
        ("tool: {name: file__read, args: {path: !expr ctx.t, limit: !expr ctx.n}}", []),
        ("tool: {name: http__get, args: {url: !expr ctx.t, format: !expr ctx.kind}}", ["TY103"]),
        ("tool: {name: state__set, args: {name: a, value: !expr ctx.n}}", []),
        ("shell: {command: !expr ctx.n}", ["TY103"]),
        ("shell: {command: !expr \"['ls', ctx.t]\"}", []),
        ("tool: {name: file__read, args: {path: !expr pipe}}", []),
    ],
)
def test_arguments_of_tools(step: str, found: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert in_workspace(tmp_path, f"- {step}\n", monkeypatch) == found


@pytest.mark.parametrize(
    ("tray", "found"),
    [
        ("ctx.kind", ["TY104"]),
        ("ctx.tray", []),
        ("ctx.half", []),
        ("ctx.t", []),
        ("ctx.b", ["TY104"]),
        ("'up'", ["PL114"]),
    ],
)
def test_inputs_of_playbooks(tray: str, found: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step = f'- call: {{pipeline: file_it, pass: {{tray: "{tray}"}}}}\n'
    assert in_workspace(tmp_path, step, monkeypatch) == found


@pytest.mark.parametrize(
    ("schema", "kind", "wrong"),
    [
        ({"type": "integer"}, "text", True),
        ({"type": ["integer", "null"]}, "number", False),
        ({"anyOf": [{"type": "string"}, {"type": "array"}]}, "map", True),
        ({"anyOf": [{"type": "string"}, {"minLength": 1}]}, "map", False),
        ({"enum": ["a", 1]}, "number", False),
        ({"enum": ["a", "b"]}, "number", True),
        ({}, "map", False),
        ({"$ref": "#/x"}, "map", False),
        ({"type": "string"}, None, False),
    ],
)
def test_schemas_of_arguments(schema: dict[str, object], kind: str | None, wrong: bool) -> None:
    assert bool(argument_problem(schema, None, kind)) == wrong  # type: ignore[arg-type]


def test_an_enum_is_compared_value_by_value() -> None:
    assert argument_problem({"enum": ["a"]}, Enum(("b", "c")), "text")
    assert not argument_problem({"enum": ["a"]}, Enum(("b", "a")), "text")


def test_every_built_in_schema_has_kinds_that_are_known() -> None:
    for tool in BUILT_IN_TOOLS:
        for name, schema in tool.schema["properties"].items():  # type: ignore[union-attr]
            if "type" in schema:  # type: ignore[operator]
                assert argument_problem(schema, None, "none of them"), (tool.name, name)  # type: ignore[arg-type]


def test_a_long_chain_looks_at_each_operand_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[object] = []
    original = operand_types.kind_of_node

    def counted(node: object, infer: object) -> str | None:
        looked.append(node)
        return original(node, infer)  # type: ignore[arg-type]

    monkeypatch.setattr(operand_types, "kind_of_node", counted)
    assert codes_in(" + ".join(["ctx.n"] * 2_000)) == []
    assert len(looked) <= 4_000
