"""What the Plan settles of a playbook: when a step's arms are chosen."""

from __future__ import annotations

import pytest

from quire.formats.playbook.lower import lower
from quire.formats.playbook.parse import parse
from quire.source import Source


@pytest.mark.parametrize(
    ("inputs", "captured", "decide_first"),
    [
        ("- `m` (string): x", "o", True),
        ("- `n` (string): x", "m", False),
        # The input is what the condition reads: no reason to pay for the step's own work before it is decided.
        ("- `m` (string): x", "m", True),
    ],
)
def test_arms_wait_for_the_steps_own_result_only_when_they_read_it(
    inputs: str, captured: str, decide_first: bool
) -> None:
    arms = '```if m == "a"```\n### STEP 1a: B\nb\n```endif```'
    text = f"# T\n\n## INPUTS\n\n{inputs}\n\n## STEP 1: A\n\na\n@output({captured})\n\n{arms}\n"
    playbook = parse(Source.of(text)).playbook
    assert playbook is not None
    match = lower(playbook).body.steps[0].match
    assert match is not None
    assert match.decide_first is decide_first
