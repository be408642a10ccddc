from __future__ import annotations

from xml.etree import ElementTree

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.engine.conversation import ToolUse
from quire.engine.interpreter.thread.own_tools import as_return, missing_outputs, return_tool, returned, returns_block
from quire.plan.thread import Parameter
from quire.values import Value, encode

OUTPUTS = (
    Parameter("path", "string", required=True, description="Where"),
    Parameter("count", "integer", required=True),
    Parameter("signed", description="Whether it is signed"),
    Parameter("ok", "boolean"),
)


def test_the_block_is_in_the_words_of_the_format() -> None:
    assert returns_block(OUTPUTS[:2]) == (
        '<returns>\n  <output name="path">Where</output>\n  <output name="count" />\n</returns>'
    )
    assert returns_block(()) is None


XML_TEXT = st.text(st.characters(min_codepoint=32, max_codepoint=0xD7FF, exclude_characters="\x7f"), max_size=20)


@given(st.lists(st.tuples(XML_TEXT, XML_TEXT), min_size=1, max_size=4))
def test_whatever_stands_in_it_the_block_is_xml_that_says_the_same(pairs: list[tuple[str, str]]) -> None:
    block = returns_block([Parameter(name, description=text) for name, text in pairs])
    assert block is not None
    read = ElementTree.fromstring(block)
    assert [(one.get("name"), one.text or "") for one in read] == [(name, text.strip()) for name, text in pairs]


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ({}, ["path", "count"]),
        ({"path": "", "count": 0}, []),
        ({"path": None, "count": False}, ["path"]),
        ({"path": "x"}, ["count"]),
    ],
)
def test_false_zero_and_empty_are_values(given: dict[str, Value], missing: list[str]) -> None:
    assert missing_outputs(OUTPUTS, given) == missing


def test_the_tool_has_a_schema_that_a_validator_takes() -> None:
    tool = return_tool(OUTPUTS)
    valid = jsonschema_rs.validator_for(encode(tool.schema)).is_valid
    assert tool.name == "directive_return"
    assert "unless the status is error: path, count." in tool.description
    assert valid({"path": "x", "count": 1, "ok": True})
    assert valid({"status": "error", "error_detail": "no key"})
    assert not valid({"count": "one"})
    assert not valid({"status": "done"})
    assert not valid({"psth": "x"})


@pytest.mark.parametrize(
    ("arguments", "outputs", "status", "problems"),
    [
        ({"path": "x", "count": 2}, {"path": "x", "count": 2}, "completed", ()),
        ({"path": "x", "count": "2", "ok": "yes"}, {"path": "x", "count": 2, "ok": True}, "completed", ()),
        ({"path": "", "count": 0, "signed": True}, {"path": "", "count": 0, "signed": True}, "completed", ()),
        ({"status": "error", "error_detail": "no key"}, {}, "error", ()),
        ({"status": "error", "count": "?"}, {}, "error", ()),
        ({"count": 1}, {"count": 1}, "completed", ("missing required outputs: path",)),
        (
            {"path": "x", "count": "two"},
            {"path": "x"},
            "completed",
            ('output count: "two" is not an integer', "missing required outputs: count"),
        ),
        (
            {"path": "x", "count": 1, "pth": 1, "zzzzz": 2},
            {"path": "x", "count": 1},
            "completed",
            (
                "unknown output pth (did you mean path?)",
                "unknown output zzzzz: there are path, count, signed, ok, status, error_detail",
            ),
        ),
        (
            {"path": "x", "count": 1, "status": "done"},
            {"path": "x", "count": 1},
            "completed",
            ("status must be completed or error",),
        ),
    ],
)
def test_a_return_is_read_and_its_mistakes_are_told(
    arguments: dict[str, Value], outputs: dict[str, Value], status: str, problems: tuple[str, ...]
) -> None:
    found = returned(OUTPUTS, arguments)
    assert (dict(found.outputs), found.status, found.problems) == (outputs, status, problems)


def test_an_output_named_status_keeps_its_name() -> None:
    outputs = (Parameter("status", required=True),)
    assert set(properties := dict(_properties(return_tool(outputs).schema))) == {
        "status",
        "directive_status",
        "error_detail",
    }
    assert "enum" not in str(properties["status"])
    assert returned(outputs, {"status": "error"}).status == "completed"
    assert returned(outputs, {"directive_status": "error", "error_detail": "why"}).error_detail == "why"


def _properties(schema: object) -> dict[str, object]:
    assert isinstance(schema, dict)
    found = schema["properties"]
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    ("name", "arguments", "handed"),
    [
        ("directive_return", {"a": 1}, {"a": 1}),
        ("rye/agent/threads/directive_return", {"a": 1}, {"a": 1}),
        (
            "rye_execute",
            {"item_type": "tool", "item_id": "rye/agent/threads/directive_return", "parameters": {"a": 1}},
            {"a": 1},
        ),
        ("rye_execute", {"item_type": "tool", "item_id": "directive_return"}, {}),
        ("rye_execute", {"item_type": "tool", "item_id": "rye/bash", "parameters": {}}, None),
        ("rye_execute", {"item_type": "directive", "item_id": "directive_return"}, None),
        ("rye_execute", {"item_type": "tool", "item_id": "directive_return", "parameters": 5}, None),
        ("directive_returns", {}, None),
    ],
)
def test_the_names_of_the_return_tool(name: str, arguments: dict[str, Value], handed: dict[str, Value] | None) -> None:
    found = as_return(ToolUse("1", name, arguments))
    assert (found.arguments if found else None) == handed
    assert found is None or (found.id, found.name) == ("1", "directive_return")
