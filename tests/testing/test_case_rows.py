"""The rows of a case: one case for each row, with the values of the row wherever a text has a place for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from quire.formats.test.parse import parse
from quire.formats.test.syntax import Case
from quire.source import Source
from quire.testing.case_rows import BadRows, expand

TEXT = """\
cases:
  - name: "greets {row.who}"
    each: [{who: Ada, n: 1}, {who: Bob, n: 2}]
    matrix: {tone: [dry], mood: [calm]}
    inputs: {name: "{row.who}", count: "{row.n}", same: as it is, list: [a, "{row.who}"]}
    files: {"{row.who}.txt": "Hello, {row.who}."}
    model: [{contains: "{row.who}", reply: "fine {row.n}"}, plain]
    expect:
      output: {contains: ["{row.who}", other]}
      that: [!expr "row.n > 0"]
    then: [{advance: 1h, expect: {output: "{row.who}"}}]
"""


def case_of(text: str) -> Case:
    reading = parse(Source.of(text, "greet.test.yaml"))
    assert reading.file is not None, reading.diagnostics
    return reading.file.cases[0]


def test_values_stand_wherever_a_text_has_a_place_for_them(tmp_path: Path) -> None:
    case = case_of(TEXT)
    first, second = expand(case, tmp_path, ["tone"])
    assert [first.name, second.name] == [first.case.name, second.case.name]
    assert first.name.startswith("greets {row.who}[row 1")
    setting = second.case.setting
    # A column of the matrix is an input if the document has one of that name.
    assert setting.inputs == {"name": "Bob", "count": 2, "same": "as it is", "list": ["a", "Bob"], "tone": "dry"}
    assert [(name, content.text) for name, content in setting.files.items()] == [("Bob.txt", "Hello, Bob.")]
    assert second.row == {"who": "Bob", "n": 2, "tone": "dry", "mood": "calm"}
    assert "Bob" in repr(setting.model) and "Ada" not in repr(setting.model) and "{row." not in repr(setting.model)
    assert "Bob" in repr(second.case.expect) and "{row." not in repr(second.case.expect)
    assert "Bob" in repr(second.case.then) and "{row." not in repr(second.case.then)


def test_the_case_itself_stays_as_it_is(tmp_path: Path) -> None:
    case = case_of(TEXT)
    before = repr(case)
    expand(case, tmp_path, [])
    assert repr(case) == before


def test_a_case_without_places_is_the_same_in_each_row(tmp_path: Path) -> None:
    case = case_of("cases: [{name: a, each: [{n: 1}, {n: 2}], expect: {output: x}}]")
    rows = expand(case, tmp_path, [])
    assert [row.name for row in rows] == ["a[row 1]", "a[row 2]"]
    assert all(row.case.expect is case.expect for row in rows)


def test_a_column_that_a_row_does_not_have_is_refused(tmp_path: Path) -> None:
    case = case_of('cases: [{name: a, each: [{n: 1}], inputs: {x: "{row.m}"}, expect: {output: x}}]')
    with pytest.raises(BadRows, match="m"):
        expand(case, tmp_path, [])
