"""Graders of live tries: which expectations stay, what a judge reads, and the measure of similarity."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.formats.test.parse import parse
from quire.formats.test.syntax import Case, Live
from quire.source import Source
from quire.testing.case_run import Stage
from quire.testing.live.trial import grade, graders, grades_something, parts_of, similarity, terms, text_of
from quire.testing.observation import Observation


def _case(expect: str, live: str = "{}") -> Case:
    reading = parse(Source.of(f"cases:\n  - name: one\n    expect: {expect}\n    live: {live}\n", "x.test.yaml"))
    assert reading.file is not None, reading.diagnostics
    return reading.file.cases[0]


@pytest.mark.parametrize(
    ("expect", "subjects"),
    [
        ("{output: x, prompts: {'1': {contains: y}}, calls: {a/b: 1}}", ["output"]),
        ("{steps: {'1': completed}, asked: {'2': y}, used: {turns: 1}, refused: [], hooks: {a: 1}}", []),
        ("{named: {a: 1}, stores: {b: 2}, outputs: {c: 3}, files: {d: e}}", ["named", "stores", "outputs", "files"]),
        ("{output: !snapshot , artifact: {all: [{contains: x}, !snapshot ]}}", []),
        ('{that: [!expr "1 == 1"], status: failed, error: {contains: x}}', ["that", "status", "error"]),
        ("{warnings: [{contains: x}], events: [started]}", []),
    ],
)
def test_expectations_of_a_script_are_left_out(expect: str, subjects: list[str]) -> None:
    kept = graders(_case(expect).expect)
    assert [check.subject for check in (kept.checks if kept else ())] == subjects


@pytest.mark.parametrize(
    ("expect", "live", "something"),
    [
        ("{output: x}", "{}", True),
        ("{status: completed}", "{}", False),
        ("{prompts: {'1': x}}", "{}", False),
        ("{status: completed}", "{judge: x.judge.yaml}", True),
        ("{status: completed}", "{similar: {to: x}}", True),
    ],
)
def test_a_try_is_decided_by_something(expect: str, live: str, something: bool) -> None:
    assert grades_something(_case(expect, live), ()) is something


def _grade(expect: str, **seen: object) -> list[str]:
    observation = Observation(**{"status": "completed", "exit": 0, **seen})  # type: ignore[arg-type]
    return grade([Stage(None, observation)], _case(expect), {}, ())


def test_grading() -> None:
    assert _grade("{output: {contains: bread}}", output="bread and butter") == []
    assert _grade("{output: {json: {a: 1}}}", output='```json\n{"a": 1}\n```') == []
    (wrong,) = _grade("{output: {contains: bread}}", output="cake\n" * 200)
    assert wrong.startswith("output: ") and "\n" not in wrong and len(wrong) <= 300
    assert _grade("{output: x}", status="failed", output="x")[0].startswith("the run is failed")


def test_warnings_fail_a_try_unless_the_case_knows_them() -> None:
    warned = [("1", "the reply has no object")]
    assert "warned" in _grade("{output: x}", output="x", warnings=warned)[0]
    assert _grade("{output: x, warnings: [{contains: anything}]}", output="x", warnings=warned) == []


def test_terms_of_price_and_time() -> None:
    seen = Observation("completed", 0, "a b c")
    live = Live(cost=0.1, seconds=2.0)
    assert list(terms(live, seen, 0.1, 2.0)) == []
    assert list(terms(live, seen, 0.11, 2.1)) == ["it cost more than $0.1", "it took longer than 2 s"]
    assert list(terms(live, seen, None, 0.0)) == ["its cost is not known"]


def test_parts_that_a_judge_reads() -> None:
    seen = Observation("completed", 0, {"a": 1}, "art", inputs={"doc": "d"}, named={"n": "v"}, stores={"s": [1]})
    parts = parts_of(seen, ["output", "artifact", "inputs.doc", "named.n", "stores.s"])
    assert parts == [
        ("output", '{\n  "a": 1\n}'),
        ("artifact", "art"),
        ("inputs.doc", "d"),
        ("named.n", "v"),
        ("stores.s", "[\n  1\n]"),
    ]
    assert parts_of(seen, ["named.other"]) is None
    assert text_of(None) == ""


@pytest.mark.parametrize(
    ("text", "other", "expected"),
    [
        ("the cat sat", "The CAT sat!", 1.0),
        ("a b", "c d", 0.0),
        ("a a b", "a b b", 2 / 3),
        ("", "", 1.0),
        ("", "a", 0.0),
        ("Größe", "grösse", 1.0),
    ],
)
def test_similarity(text: str, other: str, expected: float) -> None:
    assert similarity(text, other) == pytest.approx(expected)


@given(st.text(max_size=60), st.text(max_size=60))
def test_similarity_of_any_texts(text: str, other: str) -> None:
    assert 0 <= similarity(text, other) == similarity(other, text) <= 1
    assert similarity(text, text) == 1
