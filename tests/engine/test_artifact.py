"""The fence around an artifact, and whether it is what it should be."""

from __future__ import annotations

import pytest

from quire.engine.capture import artifact_problem, artifact_text

FENCED = '```json\n{"a": 1}\n```'


@pytest.mark.parametrize(
    ("text", "kind", "result"),
    [
        (FENCED, "json", '{"a": 1}'),
        (f"\n{FENCED}\n", "json", '{"a": 1}'),
        ("~~~\ngraph TD\n~~~", "mermaid", "graph TD"),
        (FENCED, "markdown", FENCED),
        (FENCED, "", FENCED),
        (FENCED, "pdf", FENCED),
        (f"Here:\n{FENCED}", "json", f"Here:\n{FENCED}"),
        (f"{FENCED}\n{FENCED}", "json", f"{FENCED}\n{FENCED}"),
        ("```json", "json", "```json"),
        ("", "json", ""),
    ],
)
def test_a_fence_around_all_of_it_is_no_part_of_it(text: str, kind: str, result: str) -> None:
    assert artifact_text(text, kind) == result


@pytest.mark.parametrize(
    ("text", "kind", "fits"),
    [
        ('{"a": 1}', "json", True),
        ("[1]", "chartjs", True),
        ("no", "json", False),
        ("NaN", "json", False),
        ("", "chartjs", False),
        ("no", "markdown", True),
        ("no", "javascript", True),
    ],
)
def test_json_is_checked(text: str, kind: str, fits: bool) -> None:
    assert (artifact_problem(text, kind) == "") == fits
