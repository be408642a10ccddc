"""The subject of a run: a table of inputs, earlier inputs and the line that is made of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import pytest

from quire.subject import LONGEST, subject_of
from quire.values import Value

CASES: Mapping[str, tuple[Mapping[str, Value], Sequence[Mapping[str, Value]], str]] = {
    "declared order": ({"service": "search", "what": "disk full"}, (), "search · disk full"),
    "what differs first": (
        {"kind": "incident", "service": "login", "level": 3},
        [{"kind": "incident", "service": "search", "level": 3}] * 2,
        "login · incident · level 3",
    ),
    "a new input differs": ({"a": "old", "b": "new"}, [{"a": "old"}], "new · old"),
    "text, number, list, map": (
        {"who": {"age": 3, "name": "Ada"}, "tickets": ["a", "b"], "most": 2.5, "topic": "tea"},
        (),
        "tea · most 2.5 · 2 tickets",
    ),
    "a list": ({"tickets": list(range(1214))}, (), "1,214 tickets"),
    "a list of one text": ({"tickets": ["disk full\nand more"]}, (), "disk full"),
    "a map": ({"who": {"age": 3, "name": "Ada", "town": "Bern"}}, (), "Ada"),
    "a flag": ({"dry_run": False}, (), "not dry run"),
    "first line": ({"text": "\n\n# Minutes   of\tMay \n\n1. Roof"}, (), "Minutes of May"),
    "nothing twice": ({"a": "tea", "b": "tea"}, (), "tea"),
    "parts share the line": ({"text": "word " * 40, "town": "Bern"}, (), f"{('word ' * 12)[:-1]}… · Bern"[:200]),
    "redacted": ({"key": "[redacted:KEY]", "topic": "tea"}, (), "tea"),
}


@pytest.mark.parametrize("case", CASES)
def test_the_subject_names_what_tells_a_run_from_others(case: str) -> None:
    inputs, earlier, subject = CASES[case]
    assert subject_of(inputs, "Title", 0.0, earlier) == subject


@pytest.mark.parametrize("inputs", [{}, None, [1], {"a": "", "b": None, "c": " \n "}, {"a": {}}])
def test_a_run_without_inputs_is_named_by_title_and_time(inputs: Value) -> None:
    assert re.fullmatch(r"Incident report · \d{4}-\d\d-\d\d \d\d:\d\d", subject_of(inputs, "Incident report", 1.0))
    assert subject_of(inputs, "", 1.0).startswith("Run · ")


def test_a_subject_is_one_short_line() -> None:
    subject = subject_of({"a": "x" * 100_000, "b": "y\r\nz", "c": ["q"] * 9}, "T", 0.0)
    assert len(subject) <= LONGEST and subject.isprintable()
