from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from tests.growth import within

from quire.diagnostics import Code, Severity
from quire.formats.pipeline.codes import codes
from quire.formats.pipeline.schemas import SchemaReading, read_schemas
from quire.formats.yaml import Mapping, YamlReading, read_yaml
from quire.schema import Enum, Field, Kind, ListOf, Object, Ref, Schema, Simple
from quire.source import Source

CASES = Path(__file__).parents[4] / "shared" / "conformance" / "cases" / "pipeline"

OF_INPUTS = ("PL049", "PL142")
"""Codes about declared inputs, whose examples are not schemas."""


def read(text: str, *, dialect: bool = False) -> tuple[YamlReading, SchemaReading]:
    reading = read_yaml(Source.of(text))
    return reading, read_schemas(reading.documents, dialect=dialect)


def found(text: str, *, dialect: bool = False) -> list[tuple[str, str, str]]:
    reading, schemas = read(text, dialect=dialect)
    source = reading.source.text
    return [
        (one.code.id, source[one.span.start : one.span.end], one.message)
        for one in reading.with_findings(schemas.diagnostics)
    ]


def test_all_types() -> None:
    reading, schemas = read(
        """\
schema: Review
fields:
  passed: {type: bool}
  notes: {type: string, required: false}
  score: {type: number, required: true}
  level: {type: enum, values: [low, 1, null, [a], {b: 2}]}
  tags: {type: list, of: {type: string}}
  parts: {type: list, of: {type: object, fields: {x: {type: ref, schema: File}}}}
---
schema: File
fields: {path: {type: string}}
"""
    )
    assert (*reading.diagnostics, *schemas.diagnostics) == ()
    assert schemas.schemas == {
        "Review": Schema(
            "Review",
            (
                Field("passed", Simple(Kind.BOOL)),
                Field("notes", Simple(Kind.STRING), required=False),
                Field("score", Simple(Kind.NUMBER)),
                Field("level", Enum(("low", 1, None, ["a"], {"b": 2}))),
                Field("tags", ListOf(Simple(Kind.STRING))),
                Field("parts", ListOf(Object((Field("x", Ref("File")),)))),
            ),
        ),
        "File": Schema("File", (Field("path", Simple(Kind.STRING)),)),
    }
    assert reading.source.text[slice_of(schemas.schemas["File"])] == "File"


def slice_of(schema: Schema) -> slice:
    return slice(schema.span.start, schema.span.end)


@pytest.mark.parametrize(
    ("text", "code", "place", "words"),
    [
        ("[a]", "PL040", "[a]", "not a list"),
        ("schema: R", "PL040", "schema: R", "fields"),
        ("fields: {a: {type: bool}}", "PL040", "fields: {a: {type: bool}}", "the key schema"),
        ("schema: R\nfields: {}", "PL040", "{}", "fields is empty"),
        ("schema: R\nfields:", "PL040", "fields", "not empty"),
        ("schema: R\nfields: [a]", "PL040", "[a]", "not a list"),
        ("schema: My Review\nfields: {a: {type: bool}}", "PL041", "My Review", '"My Review"'),
        ("schema: 5\nfields: {a: {type: bool}}", "PL041", "5", "the number 5"),
        ("schema: !expr x\nfields: {a: {type: bool}}", "PL041", "!expr x", "an !expr"),
        ("schema: 'R\n\n'\nfields: {a: {type: bool}}", "PL041", "'R\n\n'", "cannot be"),
        ("schema: R\nfields: {a.b: {type: bool}}", "PL041", "a.b", '"a.b"'),
        ("schema: R\nfields: {é: {type: bool}}", "PL041", "é", '"é"'),
        ("schema: R\nfields: {3: {type: bool}}", "YM006", "3", "the number 3"),
        ("schema: R\nfields: {true: {type: bool}}", "YM006", "true", "the boolean true"),
        ("schema: R\nfields: {a: {type: integer}}", "PL043", "integer", '"integer"'),
        ("schema: R\nfields: {a: {type: 3}}", "PL043", "3", "the number 3"),
        ("schema: R\nfields: {a: {type: }}", "PL043", "type", "empty"),
        ("schema: R\nfields: {a: {}}", "PL043", "{}", "no type"),
        ("schema: R\nfields: {a: bool}", "PL043", "bool", "a mapping such as"),
        ("schema: R\nfields: {a: }", "PL043", "a", "not empty"),
        ("schema: R\nfields: {a: {type: bool}}\nfeilds: 1", "PL044", "feilds", '"feilds"'),
        ("schema: R\nfields: {a: {type: string, requird: false}}", "PL044", "requird", '"requird"'),
        ("schema: R\nfields: {a: {type: string, of: {type: bool}}}", "PL044", "of", "not a key of a string"),
        ("schema: R\nfields: {a: {type: list, of: {type: bool, required: false}}}", "PL044", "required", "items"),
        ("schema: R\nfields: {a: {type: list}}", "PL045", "{type: list}", "needs the key of"),
        ("schema: R\nfields: {a: {type: list, of: bool}}", "PL043", "bool", "of, the type"),
        ("schema: R\nfields: {a: {type: enum}}", "PL045", "{type: enum}", "values"),
        ("schema: R\nfields: {a: {type: enum, values: []}}", "PL045", "[]", "values"),
        ("schema: R\nfields: {a: {type: enum, values: low}}", "PL045", "low", "not text"),
        ("schema: R\nfields: {a: {type: enum, values: [!expr b]}}", "YM010", "!expr b", "!expr"),
        ("schema: R\nfields: {a: {type: object}}", "PL045", "{type: object}", "fields"),
        ("schema: R\nfields: {a: {type: object, fields: {}}}", "PL045", "{}", "fields"),
        ("schema: R\nfields: {a: {type: ref}}", "PL045", "{type: ref}", "schema"),
        ("schema: R\nfields: {a: {type: ref, schema: a b}}", "PL041", "a b", '"a b"'),
        ("schema: R\nfields: {a: {type: bool, required: no}}", "PL045", "no", "not text"),
        ("schema: R\nfields: {a: {type: bool, required: }}", "PL045", "required", "empty"),
        (
            "schema: R\nfields: {a: {type: list, of: {type: list, of: {type: bool}}}}",
            "PL046",
            "{type: list, of: {type: bool}}",
            "cannot be lists",
        ),
        ("schema: R\nfields: {a: {type: ref, schema: R}}", "PL047", "R", '"R" contains itself: R → R'),
        ("schema: R\nfields: {a: {type: ref, schema: F}}", "PL140", "F", '"F" is not defined'),
        ("schema: R\nfields: {a: {type: enum, values: [1, 1.0]}}", "PL141", "1.0", '"1.0" is listed twice'),
        ("schema: R\nfields: {a: *x}", "YM008", "*x", "alias"),
    ],
)
def test_one_mistake_is_one_finding(text: str, code: str, place: str, words: str) -> None:
    [(id, shown, message)] = found(text)
    assert (id, shown) == (code, place)
    assert words in message


def test_all_mistakes_at_once() -> None:
    text = """\
schema: A B
fields:
  x: {type: integer}
  y: {type: list}
  z: {type: object, fields: {q: {type: strnig}, r: {type: enum, values: [], when: 1}}}
---
schema: Twice
fields: {x: {type: ref, schema: Loop}}
---
schema: Twice
fields: {x: nonsense}
---
schema: Loop
fields: {x: {type: list, of: {type: ref, schema: Twice}}}
"""
    assert [(code, shown) for code, shown, _ in found(text)] == [
        ("PL041", "A B"),
        ("PL043", "integer"),
        ("PL045", "{type: list}"),
        ("PL043", "strnig"),
        ("PL045", "[]"),
        ("PL044", "when"),
        ("PL042", "Twice"),
        ("PL043", "nonsense"),
        ("PL047", "Twice"),
    ]
    assert read(text)[1].schemas == {}


@pytest.mark.parametrize(
    ("text", "help"),
    [
        ("schema: R\nfields: {a: {type: integer}}", "did you mean number?"),
        ("schema: R\nfields: {a: {type: Boolean}}", "did you mean bool?"),
        ("schema: R\nfields: {a: {type: strnig}}", "did you mean string?"),
        ("schema: R\nfields: {a: {type: string, requird: false}}", "did you mean required?"),
        ("schema: R\nfields: {a: {type: string, values: [b]}}", "values belongs to the type enum"),
        ("schema: R\nfeilds: {a: {type: bool}}", "did you mean fields?"),
        ("schema: R\nfields: {a: bool}", "write {type: bool}"),
        ("schema: Review\nfields: {a: {type: ref, schema: Reveiw}}", "did you mean Review?"),
        ("schema: true\nfields: {a: {type: bool}}", 'write "true" if it is meant as text'),
    ],
)
def test_help(text: str, help: str) -> None:
    assert help in [one.help for one in read(text)[1].diagnostics]


def test_warnings_do_not_take_a_schema_away() -> None:
    _, schemas = read("schema: R\nfields: {a: {type: enum, values: [x, x]}, b: {type: ref, schema: F}}")
    assert {one.severity for one in schemas.diagnostics} == {Severity.WARNING}
    assert schemas.schemas["R"].undefined(schemas.schemas.get) == ("F",)


HOSTILE = {
    "unknown keys": "schema: R\nfields: {a: {type: bool, " + ", ".join(f"requird{i}: 1" for i in range(10_000)) + "}}",
    "unknown types": "schema: R\nfields: {" + ", ".join(f"f{i}: {{type: strin{i}}}" for i in range(6_000)) + "}",
    "values": "schema: R\nfields: {a: {type: enum, values: [" + ", ".join(["x"] * 50_000) + "]}}",
    "refs": "schema: R\nfields: {" + ", ".join(f"f{i}: {{type: ref, schema: S{i}}}" for i in range(5_000)) + "}",
    "loops": "schema: R\nfields: {" + ", ".join(f"f{i}: {{type: ref, schema: R}}" for i in range(5_000)) + "}",
    "chain": "---\n".join(f"schema: S{i}\nfields: {{a: {{type: ref, schema: S{i + 1}}}}}\n" for i in range(3_300)),
    "nested": "schema: R\nfields: " + "{a: {type: object, fields: " * 48 + "{b: {type: bool}}" + "}}" * 48,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_documents_are_read_in_linear_time(name: str) -> None:
    source = Source.of(HOSTILE[name])
    with within(6):
        reading = read_yaml(source)
        read_schemas(reading.documents)
        assert len(reading.documents) > 0
        # Many times what the slowest takes; quadratic work would take far longer.


def test_pages_of_all_codes() -> None:
    all_of_them = codes()
    assert len({code.id for code in all_of_them}) == len({code.name for code in all_of_them}) == len(all_of_them) > 20
    assert [code.id for code in all_of_them] == sorted(code.id for code in all_of_them)
    for code in all_of_them:
        assert "\nWrong:\n" in code.explanation
        assert "\nRight:\n" in code.explanation


def examples(code_page: str) -> list[str]:
    """The wrong one and the right one."""
    parts = code_page.split("Wrong:\n\n")[1].split("\n\nRight:\n\n")
    return ["\n".join(line[4:] for line in part.split("\n")) for part in parts]


@pytest.mark.parametrize(
    "code",
    [code for code in codes() if code.id[:4] in ("PL04", "PL14") and code.id not in OF_INPUTS],
    ids=lambda code: code.id,
)
def test_examples_of_pages_are_true(code: Code) -> None:
    """The wrong example gives the code; the right one gives nothing (a name that is elsewhere set aside)."""

    def ids(example: str) -> set[str]:
        if example.startswith("fields:"):
            example = f"schema: Example\n{example}"
        elif not example.startswith("schema:"):
            example = f"schema: Example\nfields:\n  {example}"
        elif "fields:" not in example:
            example = f"{example}\nfields: {{x: {{type: bool}}}}"
        return {one for one, _, _ in found(example, dialect=True)}

    wrong, right = examples(code.explanation)
    assert code.id in ids(wrong)
    assert ids(right) - {"PL140"} == set()


def shared_cases() -> list[tuple[str, list[str], bool]]:
    """Cases about schema documents: the texts that are loaded, and whether they must be refused."""
    if not CASES.is_dir():
        return []
    chosen = []
    for path in sorted(CASES.glob("*.yaml")):
        for case in yaml.safe_load(path.read_text(encoding="utf-8")):
            texts = case["given"].get("pipelines", [])
            refused = case["kind"] == "parse" and case["id"].startswith(("schema-", "name-009", "name-011"))
            if refused or (texts and case["kind"] == "run"):
                chosen.append((case["id"], texts, refused))
    return chosen


def test_shared_cases() -> None:
    cases = shared_cases()
    if not cases:
        pytest.skip("the shared cases are not here")
    for id, texts, refused in cases:
        errors = []
        for text in texts:
            reading = read_yaml(Source.of(text))
            documents = [one for one in reading.documents if isinstance(one, Mapping) and one.find("schema")]
            schemas = read_schemas(documents)
            errors += [*reading.diagnostics, *(one for one in schemas.diagnostics if one.severity is Severity.ERROR)]
        assert bool(errors) == refused, (id, errors)
