"""The tree of a playbook with errors, for editors."""

from __future__ import annotations

import pytest

from quire.formats.playbook.parse import parse
from quire.source import Source

STEPS = "## STEP 1: One\n\nSay {{x}}.\n\n@output(y)\n"


@pytest.mark.parametrize(
    ("text", "title"),
    [
        (STEPS, ""),
        ("# T\n\n## INPUTS\n\n- `x` (string)\n- `x` (text)\n\n" + STEPS, "T"),
        ("# T\n\n" + STEPS + '\n@elicit(confirm, "Go?", default:"maybe")\n', "T"),
    ],
)
def test_a_document_with_an_error_has_a_partial_tree(text: str, title: str) -> None:
    reading = parse(Source.of(text))
    assert reading.playbook is None
    assert reading.partial is not None
    assert reading.partial.title == title
    assert [step.label for step in reading.partial.steps] == ["1"]
    assert reading.partial.steps[0].output is not None


def test_a_document_without_errors_has_one_tree() -> None:
    reading = parse(Source.of("# T\n\n" + STEPS))
    assert reading.partial is reading.playbook is not None


@pytest.mark.parametrize("text", ["", " \n", "# T\n" + "x" * 200_001])
def test_a_text_that_is_not_read_has_no_tree(text: str) -> None:
    assert parse(Source.of(text)).partial is None
