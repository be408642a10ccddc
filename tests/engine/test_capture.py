from __future__ import annotations

import pytest

from quire.engine.capture import capture_text, displayed_so_far
from quire.plan.nodes import Capture, CaptureType


def field(name: str, type: CaptureType | None = None, options: tuple[str, ...] = ()) -> Capture:
    return Capture("v", type, options, name)


@pytest.mark.parametrize(
    ("text", "value", "displayed"),
    [
        ('Prose.\n{"level": "high"}', "high", "Prose."),
        ('{"level": "low"} then\n{"level": "high"}', "high", '{"level": "low"} then'),
        ('a\n{"meta": {"b": {"c": 1}}, "level": "x"}', "x", "a"),
        ('a {"level": 3}', "3", "a"),
        ('a {"level": 1.10}', "1.10", "a"),
        ('a {"level": 1E5}', "1E5", "a"),
        ('a {"wrap": [{"level": 0.50}]}', "0.50", "a"),
        ('a {"level": true}', "true", "a"),
        ('a {"level": null}', "null", "a"),
        ('a {"level": [{"n": 1}, "}"]}', '[{"n":1},"}"]', "a"),
        ('a {"level": "with } and \\" in it"}', 'with } and " in it', "a"),
        ('use {x} or {"y": 1}\n{"level": "ok"}\nThe end.', "ok", 'use {x} or {"y": 1}\n\nThe end.'),
        ('Prose.\n\n```json\n{"level": "high"}\n```', "high", "Prose."),
        ('Prose.\n```json\n{"level": "high"}\n```\nMore.', "high", "Prose.\n\nMore."),
        ('{"wrap": {"level": "inner"}}', "inner", ""),
        ('{"level": "outer", "sub": {"level": "inner"}}', "outer", ""),
        ('[{"level": "in a list"}]', "in a list", "[\n\n]"),
        ('{"level": 123456789012345678901234567890}', "123456789012345678901234567890", ""),
    ],
)
def test_the_field_is_found_from_the_bottom(text: str, value: str, displayed: str) -> None:
    captured = capture_text(field("level"), text)
    assert (captured.value, captured.displayed, captured.warning) == (value, displayed, "")


@pytest.mark.parametrize(
    "text", ["no json", '{"x": 1}', '{"level": NaN}', '{"level": 1e999}', '{"level": "open', "{" * 500]
)
def test_without_the_field_everything_is_kept_with_a_warning(text: str) -> None:
    captured = capture_text(field("level"), text)
    assert (captured.value, captured.displayed) == (text, text)
    assert '"level"' in captured.warning


@pytest.mark.parametrize(
    ("type", "options", "text", "value", "warned"),
    [
        (None, (), " 42\n", " 42\n", False),
        ("number", (), " 42\n", "42", False),
        ("number", (), "about 42", "about 42", True),
        ("number", (), "-1.5e3", "-1.5e3", False),
        ("number", (), "٤٢", "٤٢", True),
        ("boolean", (), "True\n", "True", False),
        ("boolean", (), "yes", "yes", True),
        ("enum", ("a", "b, c"), " b, c ", "b, c", False),
        ("enum", ("a", "b"), "c", "c", True),
        ("json", (), ' {"a": 1} ', '{"a": 1}', False),
        ("json", (), "{a}", "{a}", True),
        ("string", (), " x ", "x", False),
        ("text", (), " x\ny ", "x\ny", False),
    ],
)
def test_typed_captures_are_trimmed_and_checked(
    type: CaptureType | None, options: tuple[str, ...], text: str, value: str, warned: bool
) -> None:
    captured = capture_text(Capture("v", type, options, None), text)
    assert captured.value == value
    assert bool(captured.warning) == warned


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('```json\n{"a": 1}\n```', '{"a": 1}'),
        ('Here it is:\n\n```json\n{"a": 1}\n```\nDone.', '{"a": 1}'),
        ("```\nno\n```\n~~~json\n[1]\n~~~\n```sh\nls\n```", "[1]"),
        ('{"a": "```"}', '{"a": "```"}'),
    ],
)
def test_a_json_capture_takes_its_json_out_of_a_fence(text: str, value: str) -> None:
    """S12."""
    captured = capture_text(Capture("v", "json", (), None), text)
    assert (captured.value, captured.displayed, captured.warning) == (value, text, "")


def test_a_fence_without_json_is_kept_and_warned_about() -> None:
    captured = capture_text(Capture("v", "json", (), None), "```\nnothing\n```")
    assert captured.value == "```\nnothing\n```" and "is not JSON" in captured.warning


@pytest.mark.parametrize(
    ("reply", "shown"),
    [
        ('Prose.\n\n```json\n{"level": "high", "n": [1, {"a": "}"}], "t": true}\n```\n', "Prose."),
        ('Prose.\n{\n  "level": "h\\"i",\n  "n": -1.5e3\n}', "Prose."),
        ('Prose. {"level": "high"}', "Prose."),
        ('{"level": 1}', ""),
    ],
)
def test_the_object_does_not_show_while_it_is_written(reply: str, shown: str) -> None:
    """At no moment is more shown than at the end."""
    for end in range(len(reply) + 1):
        so_far = displayed_so_far(reply[:end], "level")
        assert so_far.strip() == reply[:end].strip()[: len(shown)].strip(), reply[:end]
    assert capture_text(field("level"), reply).displayed == shown


@pytest.mark.parametrize(
    "text",
    [
        "A set {a, b} and",
        "A set {1",
        'Before\n```python\nx = {"a": y',
        'Say {"hello" to them',
        'An object: {"other": 1} and',
        "```\ncode",
        "{" * 50 + "x",
    ],
)
def test_what_turns_out_to_be_text_shows(text: str) -> None:
    assert displayed_so_far(text, "level") == text


def test_a_long_reply_under_way_is_looked_at_quickly() -> None:
    hostile = ('{"a": ' * 5000 + "x") + '{"' * 5000
    assert hostile.startswith(displayed_so_far(hostile, "level"))
