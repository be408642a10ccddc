from __future__ import annotations

import enum
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, NotRequired, Optional, TypedDict

import pytest

from quire.tools.function_schemas import Unsupported, input_schema
from quire.values import Value


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Place(TypedDict):
    city: str
    zip: NotRequired[int]


def schema_of(hint: object) -> object:
    def function(x: object) -> None: ...

    function.__annotations__ = {"x": hint}
    properties = input_schema(function)["properties"]
    assert isinstance(properties, dict)
    return properties["x"]


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (None, {"type": "null"}),
        (Any, {}),
        (object, {}),
        (list, {"type": "array"}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (Sequence[str], {"type": "array", "items": {"type": "string"}}),
        (dict[str, bool], {"type": "object", "additionalProperties": {"type": "boolean"}}),
        (Mapping[str, Any], {"type": "object", "additionalProperties": {}}),
        (Literal["a", 1], {"enum": ["a", 1]}),
        (Colour, {"enum": ["red", "blue"]}),
        (str | None, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        (Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]}),  # noqa: UP045
        (Annotated[int, "how many"], {"type": "integer", "description": "how many"}),
        (
            Place,
            {
                "type": "object",
                "properties": {"city": {"type": "string"}, "zip": {"type": "integer"}},
                "required": ["city"],
                "additionalProperties": False,
            },
        ),
    ],
)
def test_annotations(hint: object, schema: object) -> None:
    assert schema_of(hint) == schema


def test_parameters() -> None:
    def function(a: int, b="x", *, c: bool = True, effect_id: str):  # type: ignore[no-untyped-def]
        ...

    assert input_schema(function) == {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {}, "c": {"type": "boolean"}},
        "required": ["a"],
        "additionalProperties": False,
    }


def test_any_json_and_the_rest_of_the_arguments() -> None:
    def function(value: Value, **rest: int) -> None: ...

    schema = input_schema(function)
    assert schema["additionalProperties"] == {"type": "integer"}
    assert isinstance(schema["properties"], dict)
    assert "value" in schema["properties"]


def positional(a: int, /) -> None: ...


def starred(*a: int) -> None: ...


def odd(a: threading.Thread) -> None: ...


class Thing:
    def method(self, a: int) -> None: ...


def unknown(a: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize("function", [positional, starred, odd, Thing.method, unknown])
def test_what_json_does_not_know(function: Callable[..., object]) -> None:
    with pytest.raises(Unsupported, match=function.__name__):
        input_schema(function)
