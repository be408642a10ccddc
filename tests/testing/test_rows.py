"""Rows of cases: files and lists, what is refused and where, and the values that are put into texts."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.testing import case_rows
from quire.testing.case_rows import (
    BadRows,
    Row,
    RowProblem,
    fill,
    inline_rows,
    joined_rows,
    matrix_rows,
    read_rows,
)
from quire.values import Value

ROW = Row("row 1", {"text": "hello", "n": 3, "deep": {"list": [1, {"x": None}]}, "sly": "{row.text}", "a.b": "dotted"})


def _read(folder: Path, name: str, data: str | bytes) -> list[Row]:
    (folder / name).write_bytes(data if isinstance(data, bytes) else data.encode())
    return read_rows(folder, name)


def _problems(work: Callable[[], object]) -> list[RowProblem]:
    with pytest.raises(BadRows) as caught:
        work()
    return list(caught.value.problems)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (
            "text,expected\nhello,1\nbye,2\n",
            [(2, {"text": "hello", "expected": "1"}), (3, {"text": "bye", "expected": "2"})],
        ),
        (b"\xef\xbb\xbftext\r\nh\xc3\xa9\r\n", [(2, {"text": "hé"})]),
        ('a,b\n"x, ""y""\nz",2\n\n3,4', [(2, {"a": 'x, "y"\nz', "b": "2"}), (5, {"a": "3", "b": "4"})]),
        ("a , b\n 1,\n", [(2, {"a": " 1", "b": ""})]),
    ],
    ids=["plain", "byte order mark and CRLF", "quotes, line ends and blank lines", "spaces of names only"],
)
def test_csv(tmp_path: Path, data: str | bytes, expected: list[tuple[int, dict[str, str]]]) -> None:
    read = _read(tmp_path, "x.csv", data)
    assert [(row.line, dict(row.values)) for row in read] == expected
    assert [row.label for row in read] == [f"row {place}" for place in range(1, len(read) + 1)]


def test_jsonl_keeps_types_and_lines(tmp_path: Path) -> None:
    read = _read(tmp_path, "x.jsonl", '{"a": 1, "b": [null]}\n\n{"a": "1"}\n')
    assert read == [Row("row 1", {"a": 1, "b": [None]}, 1), Row("row 2", {"a": "1"}, 3)]


@pytest.mark.parametrize(
    ("name", "data", "line", "message"),
    [
        ("x.csv", "a,b\n1,2\n1\n", 3, "this row has 1 cell, and the header has 2"),
        ("x.csv", 'a,b\n"1\n",2\n1,2,3\n', 4, "this row has 3 cells, and the header has 2"),
        ("x.csv", 'a\n"1"2\n', 2, "this is not CSV: ',' expected after '\"'"),
        ("x.csv", 'a\n1\n"2\n\n', 3, "this is not CSV: unexpected end of data"),
        ("x.csv", "a,,c\n1,2,3\n", 1, "column 2 has no name"),
        ("x.csv", "a,b,a\n1,2,3\n", 1, 'two columns have the name "a"'),
        ("x.csv", "a,b\n", None, '"x.csv" has no rows'),
        ("x.csv", "", None, '"x.csv" is empty'),
        ("x.csv", b"a\n\xff\n", None, '"x.csv" is not UTF-8: byte 3 is 0xff'),
        ("x.csv", b"a\n\0\n", None, '"x.csv" is a binary file, not text'),
        ("x.csv", ",".join(f"c{place}" for place in range(201)) + "\n1\n", 1, "it has more than 200 columns"),
        (
            "x.jsonl",
            '{"a": 1}\n\n{"a": 1\n',
            3,
            "this line is not JSON: Expecting ',' delimiter: line 1 column 8 (char 7)",
        ),
        ("x.jsonl", '{"a": NaN}\n', 1, "this line is not JSON: NaN is not a JSON value"),
        ("x.jsonl", "[" * 5000, 1, "this line is not JSON: nested deeper than 200"),
        ("x.jsonl", "[1]\n", 1, "this line is not a JSON object"),
        ("x.txt", "a\n1\n", None, '"x.txt" is not a file of rows'),
    ],
)
def test_files_that_are_refused(tmp_path: Path, name: str, data: str | bytes, line: int | None, message: str) -> None:
    assert [(one.line, one.message) for one in _problems(lambda: _read(tmp_path, name, data))] == [(line, message)]


def test_every_wrong_line_is_listed_up_to_a_limit(tmp_path: Path) -> None:
    wrong = _problems(lambda: _read(tmp_path, "x.jsonl", "no\n" * 100))
    assert [one.line for one in wrong] == list(range(1, case_rows.MOST_PROBLEMS + 1))
    wrong = _problems(lambda: _read(tmp_path, "x.csv", "a,b\n" + "1\n" * 100))
    assert [one.line for one in wrong] == list(range(2, case_rows.MOST_PROBLEMS + 2))


def test_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(case_rows, "MAX_ROWS", 3)
    assert len(_read(tmp_path, "x.csv", "a\n1\n2\n3\n")) == 3
    assert _problems(lambda: _read(tmp_path, "x.csv", "a\n1\n2\n3\n4\n")) == [RowProblem("it has more than 3 rows", 5)]
    assert _problems(lambda: inline_rows([{}] * 4)) == [RowProblem("it has more than 3 rows")]
    assert _problems(lambda: matrix_rows({"a": [1, 2], "b": [1, 2]})) == [
        RowProblem("the combinations are more than 3")
    ]
    pair = inline_rows([{"a": 1}, {"a": 2}])
    assert _problems(lambda: joined_rows(pair, matrix_rows({"b": [1, 2]})))
    monkeypatch.setattr(case_rows, "MAX_FILE_BYTES", 5)
    assert _problems(lambda: _read(tmp_path, "x.csv", "a\n1234\n"))[0].message == '"x.csv" is larger than 5 bytes'


def test_only_files_in_the_folder_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "tests"
    (folder / "data").mkdir(parents=True)
    (tmp_path / "secret.csv").write_text("a\n1\n")
    (folder / "link.csv").symlink_to(tmp_path / "secret.csv")
    (folder / "own.csv").symlink_to(folder / "data" / "x.csv")
    (folder / "data" / "x.csv").write_text("a\n1\n")
    assert read_rows(folder, "data/x.csv") == read_rows(folder, "own.csv") == read_rows(folder, "data/../own.csv")
    for name in ("../secret.csv", "link.csv", str(tmp_path / "secret.csv"), "data/../../secret.csv"):
        assert "outside the folder" in _problems(lambda name=name: read_rows(folder, name))[0].message  # type: ignore[misc]
    assert _problems(lambda: read_rows(folder, "none.csv")) == [RowProblem('"none.csv" does not exist')]
    assert _problems(lambda: read_rows(folder, "a\0.csv"))


def test_rows_of_a_list() -> None:
    assert inline_rows([{"a": 1}, {"b": 2}]) == [Row("row 1", {"a": 1}), Row("row 2", {"b": 2})]
    assert [one.row for one in _problems(lambda: inline_rows([1, {"a": 1}, "x"]))] == [1, 3]
    assert _problems(lambda: inline_rows([])) == [RowProblem("it has no rows")]


def test_combinations() -> None:
    made = matrix_rows({"tone": ["warm", "dry"], "n": [1, True]})
    assert [row.label for row in made] == ["tone=warm, n=1", "tone=warm, n=true", "tone=dry, n=1", "tone=dry, n=true"]
    assert made[1].values == {"tone": "warm", "n": True}
    assert _problems(lambda: matrix_rows({"tone": []})) == [RowProblem('"tone" has no values')]


def test_rows_with_combinations() -> None:
    joined = joined_rows(inline_rows([{"a": 1}, {"a": 2}]), matrix_rows({"b": [3]}))
    assert joined == [Row("row 1, b=3", {"a": 1, "b": 3}), Row("row 2, b=3", {"a": 2, "b": 3})]
    assert "both" in _problems(lambda: joined_rows(inline_rows([{"a": 1}]), matrix_rows({"a": [3]})))[0].message


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("{row.text}!", "hello!"),
        ("{row.n}", 3),
        ("n={row.n}, {row.deep.list.0}", "n=3, 1"),
        ("{row.deep}", {"list": [1, {"x": None}]}),
        ("<{row.deep.list.1}>", '<{"x":null}>'),
        ("{row.a.b}", "dotted"),
        ("{row.sly} {row.sly}", "{row.text} {row.text}"),
        ([{"k": ["{row.n}"], "{row.text}": 1}], [{"k": [3], "hello": 1}]),
        ("{row}", "{row}"),
        ("{{text}} {row .text}", "{{text}} {row .text}"),
        (None, None),
        (2.5, 2.5),
    ],
)
def test_filling(value: Value, expected: Value) -> None:
    assert fill(value, ROW) == expected


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("{row.txt}", 'row 1 does not have a column "txt" (did you mean {row.text}?)'),
        ("{row.deep.list.2}", 'row 1 does not have a column "deep.list.2"'),
        ("{row.deep.list.²}", 'row 1 does not have a column "deep.list.²"'),
        ({"{row.text}": 1, "hello": 2}, "row 1 gives two keys of a mapping the same name"),
    ],
)
def test_filling_that_is_refused(value: Value, message: str) -> None:
    with pytest.raises(BadRows) as caught:
        fill(value, ROW)
    assert str(caught.value).startswith(message)


def test_a_filled_text_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(case_rows, "MAX_FILLED", 10)
    assert fill("{row.text}{row.text}", ROW) == "hellohello"
    assert "more than 10 characters" in _problems(lambda: fill("{row.text}{row.text}{row.n}", ROW))[0].message


_cells = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), max_size=8)


@given(st.lists(st.tuples(_cells, _cells), min_size=1, max_size=6))
def test_any_cell_survives(tmp_path_factory: pytest.TempPathFactory, cells: list[tuple[str, str]]) -> None:
    folder = tmp_path_factory.getbasetemp()
    text = io.StringIO()
    csv.writer(text).writerows([("a", "b"), *cells])
    expected: list[dict[str, str]] = [{"a": a, "b": b} for a, b in cells]
    assert [dict(row.values) for row in _read(folder, "any.csv", text.getvalue())] == expected
    lines = "\n".join(json.dumps(row) for row in expected)
    assert [dict(row.values) for row in _read(folder, "any.jsonl", lines)] == expected


@given(st.binary(max_size=200), st.sampled_from(["any.csv", "any.jsonl"]))
def test_any_bytes_give_rows_or_problems(tmp_path_factory: pytest.TempPathFactory, data: bytes, name: str) -> None:
    try:
        assert _read(tmp_path_factory.getbasetemp(), name, data)
    except BadRows as error:
        assert error.problems
