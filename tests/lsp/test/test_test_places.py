"""Where a cursor stands in a test file, found by its lines."""

from __future__ import annotations

import pytest
from tests.lsp.editor import split

from quire.lsp.test.yaml_lines import place_at

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
    ],
)
def test_a_place_is_found_by_lines_and_braces(text: str, path: tuple[str, ...], kind: str, word: str) -> None:
    text, at = split(text)
    place = place_at(text, at)
    assert (place.path, place.kind, text[place.word.start : place.word.end]) == (path, kind, word)


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
