"""Where a cursor stands in a test file."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.growth import assert_linear
from tests.lsp.editor import split

from quire.lsp.test.cursor_places import place_at

CASE = ("cases", "-")


@pytest.mark.parametrize(
    ("text", "path", "kind", "word"),
    [
        ("doc‸", (), "key", "doc"),
        ("document: x‸", ("document",), "value", "x"),
        ('document: "x‸', ("document",), "value", "x"),
        ("defaults:\n  in‸", ("defaults",), "key", "in"),
        ("cases:\n  - na‸", CASE, "key", "na"),
        ("cases:\n- na‸", CASE, "key", "na"),
        ("cases:\n  - name: a\n    ‸", CASE, "key", ""),
        ("cases:\n- name: a\n  ‸", CASE, "key", ""),
        ("cases:\n  - name: a\n    expect:\n      st‸", (*CASE, "expect"), "key", "st"),
        ("cases:\n  - name: a\n    expect: {st‸", (*CASE, "expect"), "key", "st"),
        ("cases:\n  - name: a\n    expect: {steps: {1: comp‸", (*CASE, "expect", "steps", "1"), "value", "comp"),
        ("cases:\n  - name: a\n    expect: {a: 1, st‸}", (*CASE, "expect"), "key", "st"),
        ("cases:\n  - name: a\n    expect: {\n      st‸", (*CASE, "expect"), "key", "st"),
        ("cases:\n  - name: a\n    tags: [x, y‸", (*CASE, "tags", "-"), "value", "y"),
        ("cases:\n  - name: a\n    tags:\n      - x‸", (*CASE, "tags", "-"), "key", "x"),
        ("cases:\n  - name: a\n    model:\n      - {step: 1, re‸", (*CASE, "model", "-"), "key", "re"),
        ('cases:\n  - name: a\n    model:\n      "1": |\n        st: ‸', (*CASE, "model", "1"), "text", ""),
        ("cases:\n  - name: a\n    model:\n      a: b\n        c‸", (*CASE, "model", "a"), "text", ""),
        ("cases:\n  - name: a\n    then:\n    - answer: {1: y‸", (*CASE, "then", "-", "answer", "1"), "value", "y"),
        ("cases:\n  - name: a\n  # note\n\n    mod‸", CASE, "key", "mod"),
        ("cases:\n  - name: a: b‸", (*CASE, "name"), "value", "a: b"),
        ("cases:\n  - name: a\n    inputs: {u: http://x/‸", (*CASE, "inputs", "u"), "value", "http://x/"),
        ("cases: {}‸", ("cases",), "text", ""),
        ("a:\n  - - b: c‸", ("a", "-", "-", "b"), "value", "c"),
        ("cases:\n  - name: a\n    model: [reply: x‸", (*CASE, "model", "-", "reply"), "value", "x"),
        ("cases:\n  - &a {na‸", CASE, "key", "na"),
        ("cases:\n  - name: a # no‸", (*CASE, "name"), "text", ""),
        ("cases:\n  - name: a\n    # no‸", (*CASE, "name"), "text", ""),
        ("cases:\n  - expect: {output: {json: {}}‸", (*CASE, "expect", "output"), "text", ""),
        ("cases:\n  - model:\n      1: |\n        - a: b‸", (*CASE, "model", "1"), "text", ""),
        ("cases:\n  - model:\n      1: |\n        a\n\n‸\n        b", (*CASE, "model", "1"), "text", ""),
        ("cases:\n  - model:\n      1: |\n        a\n    ‸", CASE, "key", ""),
        ("cases:\n  - model:\n      1: |\n        a\n‸", (), "key", ""),
        ("- |\n  a: ‸", ("-",), "text", ""),
        ("defaults:\n  tools:\n    prompt:style#1: x‸", ("defaults", "tools", "prompt:style#1"), "value", "x"),
        ("cases:\n---\nna‸", (), "key", "na"),
    ],
)
def test_a_place_is_found_by_lines_and_braces(text: str, path: tuple[str, ...], kind: str, word: str) -> None:
    text, at = split(text)
    place = place_at(text, at)
    assert (place.path, place.kind, text[place.word.start : place.word.end]) == (path, kind, word)


@pytest.mark.parametrize("begun", ["{a: 1", "[a, {b", '"a', "{a: 'b", "{a", "!expr 'a", "{ # {", "{a: \n     "])
def test_an_open_bracket_or_quote_does_not_hide_the_lines_below(begun: str) -> None:
    text, at = split(f"cases:\n  - name: a\n    expect: {begun}\n    inputs:\n      place: 'x‸")
    place = place_at(text, at)
    assert (place.path, text[place.word.start : place.word.end]) == ((*CASE, "inputs", "place"), "x")
    text, at = split(f"cases:\n  - expect: {begun}\n  - na‸")
    assert (place_at(text, at).path, place_at(text, at).kind) == (CASE, "key")


def test_a_line_that_is_not_yaml_does_not_hide_the_lines_below() -> None:
    text, at = split("cases:\n  - name: a\n    expect:\n      status: x\nwhat\n      ex‸")
    assert place_at(text, at).path == (*CASE, "expect")
    text, at = split('cases:\n  - name: a\n    expect:\n      a: 1\n      "b\n      ‸')
    assert place_at(text, at).path == (*CASE, "expect")


def test_a_tag_is_not_a_part_of_its_value() -> None:
    text, at = split('cases:\n  - name: a\n    expect:\n      that: [!expr "inputs.‸"]')
    place = place_at(text, at)
    assert (place.tag, text[place.word.start : place.word.end]) == ("!expr", "inputs.")
    text, at = split('always:\n  - !expr "named.‸')
    place = place_at(text, at)
    assert (place.path, place.tag, text[place.word.start : place.word.end]) == (("always", "-"), "!expr", "named.")


@pytest.mark.parametrize(
    ("text", "present"),
    [
        ("cases:\n  - name: a\n    ‸\n    expect: {}\n  - tags: []", {"name", "expect"}),
        ("cases:\n  - name: a\n    expect: {status: x, ‸, exit: 1}", {"status", "exit"}),
        ("cases:\n  - ‸\n    expect: {}", {"expect"}),
        ("‸\ncases:\n  - name: a\ndocument: x", {"cases", "document"}),
        ("cases:\n  - expect: {status: x, ‸\n    name: a\n  - expect: {exit: 1}", {"status"}),
        ("cases:\n  - expect: {status: x, ‸\n      exit: 1,\n    }", {"status", "exit"}),
        ("cases:\n  - expect: {sta‸tus: {a: 1}, output: b (, exit: 1}", {"output", "exit"}),
        ('cases:\n  - model: {"1": a, ‸"2": b, \'3\': it\'s}', {"1", "3"}),
    ],
)
def test_keys_that_are_there_are_known(text: str, present: set[str]) -> None:
    text, at = split(text)
    assert place_at(text, at).present == present


def test_the_word_under_the_cursor_counts_to_its_end() -> None:
    text, at = split('cases:\n  - name: a\n    expect: {steps: {"3a": comp‸leted}, exit: 1}')
    place = place_at(text, at, whole=True)
    assert text[place.word.start : place.word.end] == "completed"
    text, at = split("cases:\n  - name: a\n    ex‸pect: {}")
    place = place_at(text, at, whole=True)
    assert (place.kind, text[place.word.start : place.word.end]) == ("key", "expect")


PARTS = [
    *("{", "[", "}", '"a\\"', "''", "{a: ", "a: {\n    ", 'a: "\n    ', "a: '''\n    ", "- ", "!a ", "!a{", "x, "),
    *(":#", "|\n    ", "# a\n", "\n", "a\n", "a: b\n    ", "---\n", "  -x\n", "a ", " ", "\t"),
]


@pytest.mark.parametrize("part", PARTS)
def test_twice_as_much_takes_about_twice_as_long(part: str) -> None:
    def asked(size: int) -> Callable[[], object]:
        text = "cases:\n  - name: " + part * size
        return lambda: [place_at(text, at, whole=True) for at in (len(text) // 2, len(text))]

    assert_linear(asked, 95_000 // len(part))
