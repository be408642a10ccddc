"""A value that plainly fits a schema fits it for the validator too, whatever the two are."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.plain_schema import plainly_fits
from quire.tools.builtin import SPECS
from quire.values import Value

RIGHT: list[tuple[str, Value]] = [
    ("file__read", {"path": "a", "offset": 1, "line_ids": True}),
    ("file__write", {"path": "a", "content": ""}),
    ("file__write", {"files": [{"path": "a", "content": "b"}]}),
    ("file__edit_lines", {"path": "a", "changes": [{"line_id": "x", "new_content": ""}]}),
    ("http__get", {"url": "u", "headers": {"Accept": "x"}, "format": "text", "timeout": 120}),
    ("shell", {"command": ["ls"], "stdin": {"any": [1]}}),
    ("shell", {"command": "ls"}),
    ("ask", {"prompt": "p", "type": "select", "options": ["a"]}),
]
WRONG: list[tuple[str, Value]] = [
    ("file__read", {}),
    ("file__read", {"path": 1}),
    ("file__read", {"path": "a", "offset": 0}),
    ("file__read", {"path": "a", "offset": True}),
    ("file__read", {"path": "a", "x": 1}),
    ("file__write", {"path": "a"}),
    ("file__edit", {"path": "a", "old": "", "new": "b"}),
    ("shell", {"command": []}),
    ("http__get", {"url": "u", "format": "pdf"}),
]


@pytest.mark.parametrize(("tool", "arguments"), RIGHT)
def test_what_is_right_needs_no_validator(tool: str, arguments: Value) -> None:
    assert plainly_fits(dict(SPECS[tool].schema), arguments)


@pytest.mark.parametrize(("tool", "arguments"), WRONG)
def test_what_is_wrong_does_not_plainly_fit(tool: str, arguments: Value) -> None:
    assert not plainly_fits(dict(SPECS[tool].schema), arguments)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-3, 3) | st.sampled_from(["", "a", "bb"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
KEYWORDS: dict[str, st.SearchStrategy[Any]] = {
    "type": st.sampled_from(["string", "integer", "number", "boolean", "object", "array", "null"]),
    "enum": st.lists(VALUES, max_size=3),
    "minimum": st.integers(-2, 2),
    "maximum": st.integers(-2, 2),
    "minLength": st.integers(0, 2),
    "maxItems": st.integers(0, 2),
    "minItems": st.integers(0, 2),
    "required": st.lists(st.sampled_from("abc"), max_size=2, unique=True),
    "if": st.fixed_dictionaries({"required": st.lists(st.sampled_from("abc"), max_size=2, unique=True)}),
    "pattern": st.just("^a"),
    "not": st.just({"type": "string"}),
}


def _deeper(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    nested = {
        "items": inner,
        "anyOf": st.lists(inner, min_size=1, max_size=2),
        "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
        "additionalProperties": inner,
        "else": inner,
    }
    return st.fixed_dictionaries({}, optional={**KEYWORDS, **nested})


SCHEMAS = st.recursive(st.booleans() | st.fixed_dictionaries({}, optional=KEYWORDS), _deeper, max_leaves=4)


@given(SCHEMAS, VALUES)
def test_it_never_says_more_than_the_validator(schema: Any, value: Value) -> None:
    if plainly_fits(schema, value):
        assert jsonschema_rs.validator_for(schema).is_valid(value)
