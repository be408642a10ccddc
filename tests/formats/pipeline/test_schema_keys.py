"""Limits and descriptions in schemas: keys of the Quire dialect."""

from __future__ import annotations

from typing import Any, cast

import pytest
from tests.formats.pipeline.reading import file_of, problems

from quire.formats.pipeline.fields import ADD_DIALECT
from quire.formats.pipeline.parse import parse
from quire.formats.pipeline.write import pipeline_tree, write
from quire.schema import Field, Kind, ListOf, Object, Schema, Simple
from quire.source import Source

PIPELINE = "pipeline: p\ndialect: quire\nsteps: [{agent: {prompt: hi, schema: S}}]\n"
KEYS = {
    "n": "{type: number, minimum: 0, maximum: 2.5, description: How many.}",
    "s": r"{type: string, max_length: 9, pattern: '^\d+$', required: false}",
    "l": "{type: list, of: {type: string, max_length: 3}, max_items: 20}",
    "o": "{type: object, fields: {x: {type: number, maximum: -1}}}",
}
SCHEMA = "schema: S\nfields:\n" + "".join(f"  {name}: {type}\n" for name, type in KEYS.items())


def limited(field: str) -> list[tuple[str, str]]:
    return problems(f"schema: S\nfields:\n  f: {field}\n---\n{PIPELINE}")


def test_limits_are_read_written_and_shown() -> None:
    file = file_of(f"{SCHEMA}---\n{PIPELINE}")
    assert file.schemas == (
        Schema(
            "S",
            (
                Field("n", Simple(Kind.NUMBER, 0, 2.5), description="How many."),
                Field("s", Simple(Kind.STRING, max_length=9, pattern=r"^\d+$"), required=False),
                Field("l", ListOf(Simple(Kind.STRING, max_length=3), 20)),
                Field("o", Object((Field("x", Simple(Kind.NUMBER, maximum=-1)),))),
            ),
        ),
    )
    assert file_of(write(file)).schemas == file.schemas
    schemas = cast("list[Any]", pipeline_tree(parse(Source.of(f"{SCHEMA}---\n{PIPELINE}")))["schemas"])
    assert schemas[0]["fields"] == {
        "n": {"type": "number", "minimum": 0, "maximum": 2.5, "required": True, "description": "How many."},
        "s": {"type": "string", "max_length": 9, "pattern": r"^\d+$", "required": False},
        "l": {"type": "list", "of": {"type": "string", "max_length": 3}, "max_items": 20, "required": True},
        "o": {
            "type": "object",
            "fields": {"x": {"type": "number", "maximum": -1, "required": True}},
            "required": True,
        },
    }


@pytest.mark.parametrize(
    ("field", "pointed"),
    [
        ("{type: number, minimum: 3, maximum: 2}", "3"),
        ("{type: number, minimum: x}", "x"),
        ("{type: number, minimum: true}", "true"),
        ("{type: number, maximum: null}", "null"),
        ("{type: number, maximum: [1]}", "[1]"),
        ("{type: number, maximum: 1e30}", "1e30"),
        ("{type: string, max_length: -1}", "-1"),
        ("{type: string, max_length: 0}", "0"),
        ("{type: string, max_length: 1.5}", "1.5"),
        ("{type: string, max_length: 99999999999}", "99999999999"),
        ("{type: string, pattern: '(?=a)'}", "'(?=a)'"),
        ("{type: string, pattern: 12}", "12"),
        ("{type: string, pattern: '((a|b){900}){900}'}", "'((a|b){900}){900}'"),
        ("{type: list, of: {type: string}, max_items: '3'}", "'3'"),
    ],
)
def test_a_limit_that_is_none(field: str, pointed: str) -> None:
    assert limited(field) == [("PL048", pointed)]


@pytest.mark.parametrize(
    ("field", "pointed"),
    [
        ("{type: string, minimum: 3}", "minimum"),
        ("{type: number, max_length: 3}", "max_length"),
        ("{type: enum, values: [a], pattern: a}", "pattern"),
        ("{type: bool, max_items: 3}", "max_items"),
        ("{type: list, of: {type: string, max_items: 3}}", "max_items"),
        ("{type: list, of: {type: string, description: x}}", "description"),
        ("{type: string, default: x}", "default"),
        ("{type: string, maxlength: 3}", "maxlength"),
    ],
)
def test_a_key_of_another_type(field: str, pointed: str) -> None:
    assert limited(field) == [("PL044", pointed)]


@pytest.mark.parametrize("key", ["minimum: 1", "maximum: 1", "description: x"])
def test_without_the_dialect_a_key_is_refused_with_the_line_to_add(key: str) -> None:
    text = f"schema: S\nfields:\n  f: {{type: number, {key}}}\n---\n{PIPELINE}".replace("dialect: quire\n", "")
    [found] = parse(Source.of(text)).diagnostics
    assert (found.code.id, found.help) == ("PL044", ADD_DIALECT)
    assert found.message == f"{key.partition(':')[0]} of a number belongs to the Quire dialect"


def test_one_pipeline_of_the_dialect_opens_the_keys_for_the_file() -> None:
    other = PIPELINE.replace("pipeline: p\ndialect: quire", "pipeline: q")
    assert file_of(f"{SCHEMA}---\n{other}---\n{PIPELINE}", registered=True).schemas[0].name == "S"


def test_an_odd_description() -> None:
    assert limited("{type: number, description: [a]}") == [("PL045", "[a]")]
