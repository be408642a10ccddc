"""Declared inputs before a run: checked with all problems at once, completed with defaults, converted from text."""

from __future__ import annotations

import pytest

from quire.engine.declared_inputs import checking_work, complete_declared, typed
from quire.errors import BadInputs
from quire.library.document import read
from quire.plan.nodes import Plan
from quire.schema import Enum, FieldType, Kind, ListOf, Object, Ref, Simple
from quire.source import Source
from quire.values import Value

TEXT, NUMBER, BOOL = Simple(Kind.STRING), Simple(Kind.NUMBER), Simple(Kind.BOOL)
DOCUMENT = """\
schema: Person
fields: {name: {type: string, max_length: 5}}
---
pipeline: greet
dialect: quire
input:
  readers: {type: list, of: {type: ref, schema: Person}, max_items: 2, description: "Who\\n reads."}
  tone: {type: enum, values: [warm, dry, null], default: dry}
  times: {type: number, minimum: 1, required: false}
  code: {type: string, pattern: '^[ab]+$', default: a}
steps:
  - transform: {value: ctx}
"""
ANN: Value = {"name": "Ann"}


def plan(text: str = DOCUMENT) -> Plan:
    return read(Source.of(text, "p.yaml")).runnable()


@pytest.mark.parametrize(
    ("given", "complete"),
    [
        ({"readers": []}, {"readers": [], "tone": "dry", "code": "a"}),
        ({"readers": [ANN], "tone": "warm"}, {"readers": [ANN], "tone": "warm", "code": "a"}),
        ({"readers": [], "tone": None}, {"readers": [], "tone": None, "code": "a"}),
        ({"readers": [], "code": None, "times": None}, {"readers": [], "tone": "dry", "code": "a"}),
        ({"times": 2.5, "readers": []}, {"readers": [], "tone": "dry", "times": 2.5, "code": "a"}),
        (
            {"readers": [{"name": "A", "extra": 1}]},
            {"readers": [{"name": "A", "extra": 1}], "tone": "dry", "code": "a"},
        ),
    ],
)
def test_values_and_defaults(given: dict[str, Value], complete: dict[str, Value]) -> None:
    assert complete_declared(plan(), given) == complete


@pytest.mark.parametrize(
    ("given", "problems"),
    [
        ({}, ["missing input readers (list of Person (at most 2)): Who reads."]),
        ({"readers": None}, ["missing input readers (list of Person (at most 2)): Who reads."]),
        ({"readers": [], "tune": 1}, ["unknown input tune (did you mean tone?)"]),
        ({"readers": [], "x": 1}, ["unknown input x: the pipeline declares readers, tone, times, code"]),
        ({"readers": [ANN] * 3}, ["input readers must have at most 2 items, not 3"]),
        (
            {"readers": [{}, {"name": "Annabel"}], "times": 0, "code": "c"},
            [
                "input readers[0].name is missing; readers[1].name must have at most 5 characters, not 7",
                "input times must be at least 1, not 0",
                'input code must match ^[ab]+$, not "c"',
            ],
        ),
        ({"readers": [], "__proto__": 1, "constructor": 2}, ["unknown input __proto__", "unknown input constructor"]),
    ],
)
def test_all_problems_at_once(given: dict[str, Value], problems: list[str]) -> None:
    with pytest.raises(BadInputs) as caught:
        complete_declared(plan(), given)
    assert len(caught.value.problems) == len(problems)
    for said, expected in zip(caught.value.problems, problems, strict=True):
        assert said.startswith(expected)
    assert len(caught.value.inputs) == len(problems)


def test_many_problems_of_one_input_are_cut() -> None:
    text = DOCUMENT.replace("max_items: 2, ", "")
    with pytest.raises(BadInputs) as caught:
        complete_declared(plan(text), {"readers": [1] * 5000})
    [problem] = caught.value.problems
    assert problem.endswith("readers[19] must be an object, not 1; and more problems")


def test_many_unknown_names_take_no_long_time() -> None:
    inputs = ", ".join(f"name{at}: {{type: number, default: 1}}" for at in range(2000))
    many = plan(f"pipeline: p\ndialect: quire\ninput: {{{inputs}}}\nsteps: [{{transform: {{value: ctx}}}}]")
    with pytest.raises(BadInputs) as caught:
        complete_declared(many, {f"nme{at}": 1 for at in range(2000)})
    assert len(caught.value.problems) == 2000
    assert caught.value.problems[0] == "unknown input nme0 (did you mean name0?)"
    assert caught.value.problems[-1] == "unknown input nme1999"


def test_a_pipeline_without_a_declaration_takes_anything() -> None:
    undeclared = plan("pipeline: p\nsteps: [{transform: {value: ctx}}]")
    assert complete_declared(undeclared, {"x": None}) == {"x": None}


@pytest.mark.parametrize(
    ("type", "text", "value"),
    [
        (TEXT, "3", "3"),
        (TEXT, "", ""),
        (TEXT, ' {"a": 1}\n', ' {"a": 1}\n'),
        (NUMBER, "3", 3),
        (NUMBER, " 1.10 ", 1.1),
        (NUMBER, "1e3", 1000.0),
        (NUMBER, "1e999", "1e999"),
        (NUMBER, "three", "three"),
        (BOOL, "yes", True),
        (BOOL, "OFF", False),
        (BOOL, "2", "2"),
        (Enum(("warm", "1", 2, True)), " warm\n", "warm"),
        (Enum(("warm", "1", 2, True)), "1", "1"),
        (Enum(("warm", "1", 2, True)), "2", 2),
        (Enum(("warm", "1", 2, True)), "true", True),
        (Enum(("warm", "1", 2, True)), "cold", "cold"),
        (ListOf(TEXT), '["a", "b,c"]', ["a", "b,c"]),
        (ListOf(TEXT), "a, b,,c", ["a", "b", "c"]),
        (ListOf(TEXT), "a, b\nc\n\n", ["a, b", "c"]),
        (ListOf(TEXT), "one\n", ["one"]),
        (ListOf(TEXT), "", []),
        (ListOf(NUMBER), "1,2.5,x", [1, 2.5, "x"]),
        (ListOf(NUMBER), "7", [7]),
        (ListOf(Ref("Person")), "a,b", "a,b"),
        (Object(()), '{"a": 1}', {"a": 1}),
        (Object(()), "a", "a"),
    ],
)
def test_text_becomes_a_value_of_the_type(type: FieldType, text: str, value: Value) -> None:
    made = typed(type, text)
    assert made == value
    assert isinstance(made, bool) == isinstance(value, bool)


def test_checking_is_counted_as_work() -> None:
    """A call in a loop over a long list must not be free."""
    long = checking_work(plan(), {"readers": [ANN] * 1000})
    assert long > 1000
    plain = plan(DOCUMENT.replace("pattern: '^[ab]+$', ", ""))
    assert checking_work(plan(), {"code": "a" * 1000}) > checking_work(plain, {"code": "a" * 1000}) + 100
