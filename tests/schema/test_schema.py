from __future__ import annotations

from collections.abc import Callable

import pytest

from quire.schema import (
    MAX_VIOLATIONS,
    Enum,
    Field,
    FieldType,
    Kind,
    ListOf,
    Object,
    Ref,
    Schema,
    Simple,
    cycles,
    refs,
)
from quire.source import Source
from quire.trust.capabilities import Grants
from quire.values import Value

BOOL, STRING, NUMBER = Simple(Kind.BOOL), Simple(Kind.STRING), Simple(Kind.NUMBER)
FILE = Schema("F", (Field("path", STRING),))


def of(**fields: FieldType) -> Schema:
    return Schema("R", tuple(Field(name, type) for name, type in fields.items()))


def found(schema: Schema, value: Value, *others: Schema) -> list[str]:
    known = {one.name: one for one in (schema, *others)}
    return [str(one) for one in schema.violations(value, known.get)]


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        (of(a=BOOL), {"a": True}, []),
        (of(a=BOOL), {"a": 1}, ["a must be true or false, not 1"]),
        (of(a=NUMBER), {"a": True}, ["a must be a number, not true"]),
        (of(a=NUMBER, b=NUMBER), {"a": 1, "b": 1.5}, []),
        (of(a=NUMBER), {"a": "1"}, ['a must be a number, not "1"']),
        (of(a=NUMBER), {"a": 10**400}, []),
        (of(a=STRING), {"a": None}, ["a must be text, not null"]),
        (of(a=STRING), {"a": 10**5000}, ["a must be text, not a large number"]),
        (of(a=STRING), {}, ["a is missing"]),
        (of(a=STRING), {"a": "x", "extra": {"kept": 1}}, []),
        (of(a=STRING), [1], ["the value must be an object, not a list"]),
        (of(a=STRING), None, ["the value must be an object, not null"]),
        (of(a=BOOL), {"a": "y" * 100}, [f'a must be true or false, not "{"y" * 59}…"']),
        (Schema("R", (Field("a", STRING, required=False),)), {}, []),
        (Schema("R", (Field("a", STRING, required=False),)), {"a": None}, ["a must be text, not null"]),
        (of(v=Enum(("low", "high"))), {"v": "mid"}, ['v must be one of "low", "high", not "mid"']),
        (of(v=Enum(("low",))), {"v": None}, ['v must be "low", not null']),
        (of(v=Enum((None,))), {"v": None}, []),
        (of(v=Enum((1,))), {"v": 1.0}, []),
        (of(v=Enum((1,))), {"v": True}, ["v must be 1, not true"]),
        (of(v=Enum((True,))), {"v": 1}, ["v must be true, not 1"]),
        (of(v=Enum(([1, {"a": None}],))), {"v": (1.0, {"a": None})}, []),
        (of(v=Enum(([1],))), {"v": [True]}, ["v must be a list, not a list"]),
        (
            of(v=Enum(tuple(range(20)))),
            {"v": 20},
            ["v must be one of 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 8 more, not 20"],
        ),
        (
            of(tags=ListOf(STRING)),
            {"tags": ["a", 1, "b", None]},
            ["tags[1] must be text, not 1", "tags[3] must be text, not null"],
        ),
        (of(tags=ListOf(STRING)), {"tags": []}, []),
        (of(tags=ListOf(STRING)), {"tags": "ab"}, ['tags must be a list, not "ab"']),
        (of(tags=ListOf(STRING)), {"tags": {"a": 1}}, ["tags must be a list, not an object"]),
        (
            of(o=Object((Field("f", NUMBER), Field("g", BOOL)))),
            {"o": {"f": "x"}},
            ['o.f must be a number, not "x"', "o.g is missing"],
        ),
        (of(o=Object((Field("f", Ref("F")),))), {"o": {"f": {"path": 1}}}, ["o.f.path must be text, not 1"]),
        (
            of(l=ListOf(Ref("F"))),
            {"l": [{"path": "x"}, 3, {}]},
            ["l[1] must be an object, not 3", "l[2].path is missing"],
        ),
        (of(x=Ref("Nope")), {"x": {}}, ["x cannot be checked: the schema Nope is not defined"]),
        (of(x=Ref("Nope")), {}, ["x is missing"]),
        (of(n=Simple(Kind.NUMBER, 1, 5)), {"n": 1}, []),
        (of(n=Simple(Kind.NUMBER, 1, 5)), {"n": 0.5}, ["n must be at least 1, not 0.5"]),
        (of(n=Simple(Kind.NUMBER, 1, 5)), {"n": 10**400}, ["n must be at most 5, not a large number"]),
        (of(n=Simple(Kind.NUMBER, 1, 5)), {"n": True}, ["n must be a number, not true"]),
        (of(s=Simple(Kind.STRING, max_length=2)), {"s": "💥💥"}, []),
        (of(s=Simple(Kind.STRING, max_length=2)), {"s": "abc"}, ["s must have at most 2 characters, not 3"]),
        (of(s=Simple(Kind.STRING, pattern=r"^\d+$")), {"s": "12\n"}, [r's must match ^\d+$, not "12\n"']),
        (of(s=Simple(Kind.STRING, pattern="b")), {"s": "abc"}, []),
        (of(s=Simple(Kind.STRING, pattern="b")), {"s": 1}, ["s must be text, not 1"]),
        (
            of(s=Simple(Kind.STRING, pattern="b")),
            {"s": "b" * 20_001},
            ["s must have at most 20,000 characters, not 20,001"],
        ),
        (
            of(s=Simple(Kind.STRING, pattern="(?=b)")),
            {"s": "b"},
            ["s cannot be checked: (?=b) is not a usable pattern: the only group with ? is (?:…) (character 1)"],
        ),
        (of(l=ListOf(STRING, 2)), {"l": ["a", 1, "b"]}, ["l must have at most 2 items, not 3"]),
        (of(l=ListOf(STRING, 2)), {"l": ["a", 1]}, ["l[1] must be text, not 1"]),
        (
            of(a=BOOL, b=ListOf(Object((Field("c", STRING),))), d=NUMBER, e=STRING),
            {"a": "x", "b": [{}, {"c": 1}], "d": None},
            [
                'a must be true or false, not "x"',
                "b[0].c is missing",
                "b[1].c must be text, not 1",
                "d must be a number, not null",
                "e is missing",
            ],
        ),
    ],
)
def test_violations(schema: Schema, value: Value, expected: list[str]) -> None:
    assert found(schema, value, FILE) == expected


def test_many_violations_are_cut_with_a_word() -> None:
    listed = of(tags=ListOf(STRING)).violations({"tags": [1] * 5000}, lambda name: None)
    assert len(listed) == MAX_VIOLATIONS + 1
    assert str(listed[-1]) == "the value has more problems than the 1,000 that are listed"


def test_deep_values_do_not_recurse() -> None:
    """The reader refuses such schemas, but a resolver may be anybody's."""
    node = Schema("Node", (Field("next", Ref("Node"), required=False),))
    value: dict[str, Value] = {"next": 1}
    for _ in range(5_000):
        value = {"next": value}
    [violation] = node.violations(value, {"Node": node}.get)
    assert violation.path.count("next") == 5_001


def test_json_schema() -> None:
    review = Schema(
        "Review",
        (
            Field("passed", BOOL),
            Field("notes", STRING, required=False),
            Field("score", NUMBER),
            Field("level", Enum(("low", "high", "low"))),
            Field("odd", Enum((1, 1.0, True, None, [1], "x"))),
            Field("files", ListOf(Ref("F"))),
            Field("o", Object((Field("f", Ref("Nope")),))),
        ),
    )
    assert review.json_schema({"F": FILE}.get) == {
        "title": "Review",
        "type": "object",
        "properties": {
            "passed": {"type": "boolean"},
            "notes": {"type": "string"},
            "score": {"type": "number"},
            "level": {"type": "string", "enum": ["low", "high"]},
            "odd": {"enum": [1.0, True, None, [1], "x"]},
            "files": {"type": "array", "items": {"$ref": "#/$defs/F"}},
            "o": {"type": "object", "properties": {"f": {"$ref": "#/$defs/Nope"}}, "required": ["f"]},
        },
        "required": ["passed", "score", "level", "odd", "files", "o"],
        "$defs": {
            "F": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
            "Nope": {"not": {}},
        },
    }
    assert review.undefined({"F": FILE}.get) == ("Nope",)


def test_json_schema_of_limits_descriptions_and_defaults() -> None:
    schema = Schema(
        "Limits",
        (
            Field("n", Simple(Kind.NUMBER, 1, 2.5), description="How many."),
            Field("s", Simple(Kind.STRING, max_length=9, pattern=r"^\d.$"), default="1a"),
            Field("wide", Simple(Kind.STRING, pattern="x"), required=False),
            Field("l", ListOf(Simple(Kind.STRING, max_length=3), 20)),
        ),
    )
    assert schema.json_schema(lambda name: None) == {
        "title": "Limits",
        "type": "object",
        "properties": {
            "n": {"type": "number", "minimum": 1, "maximum": 2.5, "description": "How many."},
            "s": {"type": "string", "maxLength": 9, "pattern": r"^[0-9][^\n]$", "default": "1a"},
            "wide": {"type": "string", "maxLength": 20_000, "pattern": "x"},
            "l": {"type": "array", "items": {"type": "string", "maxLength": 3}, "maxItems": 20},
        },
        "required": ["n", "l"],
    }


def test_json_schema_stays_small_where_copies_would_double() -> None:
    known = {f"S{i}": Schema(f"S{i}", (Field("a", Ref(f"S{i + 1}")), Field("b", Ref(f"S{i + 1}")))) for i in range(40)}
    known["S40"] = Schema("S40", (Field("x", BOOL),))
    defined = known["S0"].json_schema(known.get)["$defs"]
    assert isinstance(defined, dict)
    assert len(defined) == 40


def test_refs_in_the_order_of_the_text() -> None:
    schema = of(a=Ref("A"), o=Object((Field("b", ListOf(Ref("B"))), Field("c", Ref("C")))), d=Ref("D"))
    assert [ref.schema for ref in refs(schema)] == ["A", "B", "C", "D"]


@pytest.mark.parametrize(
    ("edges", "expected"),
    [
        ({"A": "", "B": "A"}, []),
        ({"A": "A"}, [("A", "A")]),
        ({"A": "B", "B": "C", "C": "B"}, [("BC", "B")]),
        ({"A": "BC", "B": "D", "C": "D", "D": ""}, []),
        ({"A": "X"}, []),
        ({"A": "B", "B": "A", "C": "D", "D": "C"}, [("AB", "A"), ("CD", "C")]),
    ],
)
def test_cycles(edges: dict[str, str], expected: list[tuple[str, str]]) -> None:
    known = {
        name: Schema(name, tuple(Field(f"f{at}", ListOf(Ref(target))) for at, target in enumerate(targets)))
        for name, targets in edges.items()
    }
    assert [("".join(names), ref.schema) for names, ref in cycles(known)] == expected


def test_long_chains_do_not_recurse() -> None:
    known = {f"S{i}": Schema(f"S{i}", (Field("a", Ref(f"S{(i + 1) % 20_000}")),)) for i in range(20_000)}
    [(names, ref)] = cycles(known)
    assert (len(names), ref.schema) == (20_000, "S0")


@pytest.mark.parametrize(
    "make",
    [
        lambda: Enum(("a", "b")),
        lambda: Ref("other"),
        lambda: Source.of("text", "name"),
        lambda: Grants(frozenset({"rye.*"})),
    ],
)
def test_equal_things_are_not_unequal(make: Callable[[], object]) -> None:
    one, other = make(), make()
    assert one == other
    assert not one != other  # noqa: SIM202
    assert one != "another"
