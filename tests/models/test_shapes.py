"""What is left of a schema for the embedded runtime, and that the runtime really forces it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from quire.engine.conversation import Offered
from quire.models.llama import choice, forcible, shaped
from quire.values import Value, encode


def fields(**properties: Value) -> dict[str, Value]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def only(part: Value) -> Value:
    """What becomes of a part of a schema."""
    shape = shaped(fields(a=part), texts=300)["properties"]
    assert isinstance(shape, Mapping)
    return shape["a"]


@pytest.mark.parametrize(
    ("part", "shape"),
    [
        ({"type": "string"}, {"type": "string", "maxLength": 300}),
        ({"type": "string", "maxLength": 5}, {"type": "string", "maxLength": 5}),
        ({"type": "string", "enum": ["x"]}, {"type": "string", "enum": ["x"]}),
        ({"type": "string", "pattern": "^a+$"}, {"type": "string", "pattern": "^a+$"}),
        ({"type": "string", "maxLength": 10**9}, {"type": "string", "maxLength": 20_000}),
        ({"type": "string", "minLength": 10**9}, {"type": "string", "maxLength": 300}),
        ({"type": "string", "pattern": "^(a{90}){90}$"}, {"type": "string", "maxLength": 300}),
        ({"type": "string", "pattern": "a{1000}"}, {"type": "string", "maxLength": 300}),
        ({"type": "string", "format": "uri"}, {"type": "string", "maxLength": 300}),
        ({"type": "string", "format": "date"}, {"type": "string", "format": "date"}),
        ({"type": ["string", "null"], "title": "T"}, {"type": ["string", "null"], "maxLength": 300}),
        ({"type": "integer", "minimum": 1, "default": 3, "x-y": 1}, {"type": "integer", "minimum": 1}),
        ({"const": 3, "not": {"const": 4}}, {"const": 3}),
        (
            {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
            {"type": "array", "maxItems": 20, "items": {"type": "string", "maxLength": 300}},
        ),
        (
            {"oneOf": [{"type": "number"}, {"type": "string"}]},
            {"anyOf": [{"type": "number"}, {"type": "string", "maxLength": 300}]},
        ),
        (
            {"properties": {"b": {"type": "null"}}, "additionalProperties": True},
            {"type": "object", "properties": {"b": {"type": "null"}}, "additionalProperties": False},
        ),
        (
            {"type": "object", "additionalProperties": {"type": "string"}},
            {"type": "object", "additionalProperties": {"type": "string", "maxLength": 300}, "maxProperties": 20},
        ),
        (
            {"allOf": [{"properties": {"b": {"type": "null"}}}, {"properties": {"c": {"type": "null"}}}]},
            {
                "allOf": [
                    {"type": "object", "properties": {"b": {"type": "null"}}},
                    {"type": "object", "properties": {"c": {"type": "null"}}},
                ]
            },
        ),
    ],
)
def test_parts(part: Value, shape: Value) -> None:
    assert only(part) == shape


@pytest.mark.parametrize("part", [True, {}, {"description": "?"}, {"$ref": "#/nowhere"}, {"$ref": "https://x.y/z"}])
def test_anything_has_an_end(part: Value) -> None:
    shape = encode(only(part))
    assert '"maxProperties":20' in shape
    assert shape.count('"object"') == 7, "objects in lists and objects, three deep"


def test_a_required_field_that_nobody_describes_can_still_be_given() -> None:
    shape = shaped({"type": "object", "properties": {}, "required": ["a"]}, texts=300)
    assert "a" in shape["properties"]  # type: ignore[operator]


NODE: dict[str, Value] = {
    **fields(root={"$ref": "#/$defs/Node"}),
    "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}, "all": {"$ref": "#"}}}},
}


def test_a_field_that_stands_in_for_others_makes_two_ways() -> None:
    """A model that may fill `path` and `files` fills both, and the tool refuses the call."""
    schema = {**fields(path={"type": "string"}, files={"type": "array"}), "if": {"required": ["files"]}}
    ways: Any = shaped({**schema, "else": {"required": ["path"]}}, texts=9)["anyOf"]
    usual, other = ways
    assert (list(usual["properties"]), usual["required"]) == (["path"], ["path"])
    assert (list(other["properties"]), other["required"]) == (["files"], ["files"])
    assert usual["additionalProperties"] is False
    # Where a reference points into the schema, its places must stay where they are.
    assert "anyOf" not in shaped({**schema, "else": {"required": ["path"]}, "$defs": {"a": {"$ref": "#"}}}, texts=9)


def test_references_follow_the_schema_to_its_place() -> None:
    text = encode(choice([Offered("a", "", {}), Offered("b", "", NODE)], NODE, texts=300))
    for place in ("tool1", "answer"):
        assert f'"root":{{"$ref":"#/$defs/{place}/$defs/Node"}}' in text
        assert f'"all":{{"$ref":"#/$defs/{place}"}}' in text


@pytest.mark.parametrize(
    ("schema", "can"),
    [(NODE, True), ({"type": "object"}, True), ({"type": "array"}, False), ({}, False), (None, False)],
)
def test_forcible(schema: Mapping[str, Value] | None, can: bool) -> None:
    assert forcible(schema) is can


ODD: dict[str, Value] = {
    "not": {"not": {"type": "string"}},
    "uri": {"type": "string", "format": "uri"},
    "dates": {"type": "string", "format": "date"},
    "overlap": {"oneOf": [{"type": "number"}, {"type": "integer"}]},
    "unique": {"type": "array", "items": {"type": "integer"}, "uniqueItems": True},
    "contains": {"type": "array", "contains": {"type": "integer"}},
    "names": {"type": "object", "propertyNames": {"maxLength": 3}},
    "if": {"if": {"type": "string"}, "then": {"maxLength": 3}},
    "dependent": {"type": "object", "dependentRequired": {"a": ["b"]}},
    "nowhere": {"$ref": "#/nowhere"},
    "elsewhere": {"$ref": "https://x.y/z"},
    "all": {"allOf": [{"type": "string"}, {"maxLength": 3}]},
    "true": True,
    "pair": {"type": "array", "prefixItems": [{"type": "integer"}], "items": False},
    "mixed": {"type": ["object", "array", "string", "null"]},
}


@pytest.mark.parametrize("name", ODD)
def test_the_runtime_forces_what_is_left(smollm2: Path, name: str) -> None:
    pytest.importorskip("xllamacpp", reason='needs the extra "local", and libgomp', exc_type=ImportError)
    from quire.models.llama import runtime_for

    runtime = runtime_for(smollm2)
    said: list[str] = []

    def take(chunk: dict[str, list[dict[str, dict[str, str | None]]]]) -> bool:
        for one in chunk if isinstance(chunk, list) else [chunk]:
            said.extend((choice.get("delta") or {}).get("content") or "" for choice in one.get("choices", []))
        return False

    grammar = runtime.grammar(choice([Offered("x", "", fields(a=ODD[name]))], fields(a=ODD[name]), texts=300))
    messages = [{"role": "user", "content": "Tell me a story about a fox."}]
    request = {"messages": messages, "max_tokens": 4, "grammar": grammar, "stream": True}
    runtime.worker.submit(runtime.generate, request, take).result(60)
    assert "".join(said).lstrip().startswith("{")


def test_a_schema_that_explodes_is_not_forced() -> None:
    defs: dict[str, Value] = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(60)}
    bomb: dict[str, Value] = {
        "type": "object",
        "properties": {"x": {"$ref": "#/$defs/d0"}},
        "$defs": defs | {"d60": {}},
    }
    assert not forcible(bomb)
    assert len(encode(choice([Offered("t", "", bomb)], None, texts=300))) < 5_000
