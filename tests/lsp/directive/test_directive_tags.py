"""The scan of tags, and of calls, in whole and in broken text."""

from __future__ import annotations

import pytest
from tests.lsp.directive.sample_workspace import GREET

from quire.formats.directive.xml import Element, read_xml
from quire.lsp.directive.elements import ELEMENTS, VALUES, children_of, meaning_of
from quire.lsp.directive.instruction_calls import spelled_calls
from quire.lsp.directive.tags import open_at, scan
from quire.plan.vocabulary import CONTEXT, HOOK_EVENTS, ITEM_TYPES, LIMITS, PRIMARIES
from quire.source import Source


def fenced(text: str) -> str:
    return f"```xml\n{text}\n```\n"


def test_whole_text_gives_the_tree_of_the_reader() -> None:
    scanned = scan(GREET)
    assert scanned.fence is not None
    root, wrong = read_xml(Source("", GREET), scanned.fence)
    assert root is not None and not wrong

    def tree(element: Element) -> list[tuple[str, int, int, int, int]]:
        below = [one for child in element.children for one in tree(child)]
        return [(element.tag, element.start, element.inner_start, element.inner_end, element.end), *below]

    found = [
        (one.tag, one.start, one.inner_start, one.inner_end, one.end)
        for one in scanned.tags
        if scanned.holds(one.start)
    ]
    assert found == tree(root)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<a><b></a>", ["a", "a>b"]),
        ("<a><b <c/></a>", ["a", "a>b", "a>c"]),
        ('<a><b x="1><c/></a>', ["a", "a>b", "b>c"]),
        ('<a x="1\n  y="2"><b/></a>', ["a", "a>b"]),
        ("</x><a/>", ["a"]),
        ("<a><!-- <b> --><c/></a>", ["a", "a>c"]),
        ("<a><template><b></template><c/></a>", ["a", "a>template", "a>c"]),
        ("<a><![CDATA[<b>]]><c/></a>", ["a", "a>c"]),
    ],
)
def test_broken_tags(text: str, expected: list[str]) -> None:
    assert [one.path for one in scan(fenced(text)).tags] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<a><b><c/>", ["a", "b"]),
        ("<a><b></b><c ", ["a"]),
        ('<a><b x="/"/><c>', ["a", "c"]),
        ("<a><b><c></b>", ["a"]),
        ("<a><!-- <b>", ["a"]),
        ("<a><raw><b></raw>", ["a"]),
        ("<a><raw><b>", ["a", "raw", "b"]),
    ],
)
def test_open_elements(text: str, expected: list[str]) -> None:
    assert [one.tag for one in open_at(text, 0, len(text))] == expected


def test_attributes_of_half_a_tag() -> None:
    tag = scan(fenced('<hook id="a" event=\'b\' position="aft')).tags[0]
    assert [(one.name, one.value, one.quoted) for one in tag.attributes] == [
        ("id", "a", True),
        ("event", "b", True),
        ("position", "aft", False),
    ]


def test_a_fence_that_is_not_closed_goes_on() -> None:
    scanned = scan("# T\n\n```xml\n<directive>\n")
    assert scanned.root is not None
    assert scanned.fence is not None and scanned.fence.end == len("# T\n\n```xml\n<directive>\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('rye_sign(item_type="directive", item_id="a/b")', [("item_type", "directive"), ("item_id", "a/b")]),
        ("rye_fetch(query='x', scope=\"y", [("query", "x"), ("scope", "y")]),
        ('rye_execute(parameters={"a": 1, "b": "c"})', [("parameters", ""), ("a", ""), ("b", "c")]),
        ("rye_execute(item_id=", [("item_id", "")]),
        ("rye_execute(`", []),
        ("rye_execute", []),
    ],
)  # fmt: skip
def test_calls(text: str, expected: list[tuple[str, str]]) -> None:
    found = spelled_calls(text, 0, len(text))
    assert [(one.name, one.value) for call in found for one in call.arguments] == expected


def test_keys_of_nested_parameters() -> None:
    text = 'rye_execute(item_id="t", parameters={"directive_id": "d", "inputs": {"guest": "x"}})'
    (call,) = spelled_calls(text, 0, len(text))
    assert [(one.name, one.within) for one in call.arguments if one.within] == [
        ("directive_id", "parameters"),
        ("inputs", "parameters"),
        ("guest", "parameters.inputs"),
    ]


def test_the_table_knows_the_words_of_the_format() -> None:
    from quire.formats.directive import parse

    assert set(children_of("metadata", "directive")) == set(parse.METADATA)
    assert {*children_of("directive", ""), "description"} == set(parse.ROOT)
    assert set(children_of("context", "metadata")) == set(CONTEXT)
    assert set(children_of("permissions", "metadata")) == {*PRIMARIES, "acknowledge"}
    assert set(children_of("execute", "permissions")) == set(ITEM_TYPES)
    assert set(LIMITS) <= set(ELEMENTS["limits"].attributes)
    assert set(VALUES["hook.event"]) <= set(HOOK_EVENTS)
    listed = [(tag, child) for tag, known in ELEMENTS.items() for child in known.children]
    assert all(meaning_of(f"{tag.rpartition('>')[2]}>{child}") for tag, child in listed)


def test_every_event_and_operator_has_a_meaning() -> None:
    from quire.lsp.directive.hooks import DECISION_MEANINGS, EVENTS, OPERATOR_MEANINGS
    from quire.plan.vocabulary import DECISIONS, OPERATORS, SENT_EVENTS

    assert set(EVENTS) == set(SENT_EVENTS)
    assert set(OPERATOR_MEANINGS) == set(OPERATORS)
    assert set(DECISION_MEANINGS) == set(DECISIONS)
