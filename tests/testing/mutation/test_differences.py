"""The expectation that is offered for a mutant holds for the unchanged document and fails for the mutant."""

from __future__ import annotations

import pytest

from quire.testing.mutation.kills import telling_expectation
from quire.testing.observation import Observation, SeenCall


def failed(message: str, kind: str = "fail", step: str = "2") -> Observation:
    return Observation("failed", 3, error={"kind": kind, "message": message, "step": step})


def called(command: str) -> Observation:
    return Observation("completed", 0, calls=[SeenCall("1/tool", "1", "rye/bash", "shell", {"command": command})])


@pytest.mark.parametrize(
    ("before", "after", "expectation"),
    [
        (failed("it is blocked"), failed("it is free"), 'error: {contains: "it is blocked"}'),
        (failed("it is blocked"), failed("it is blocked~"), 'error: "it is blocked"'),
        (failed("no"), failed("no", step="3"), 'error: {step: "2"}'),
        (failed("no"), failed("no", kind="timeout"), 'error: {kind: "fail"}'),
        (called("ls"), called("ls -l"), 'calls: {shell: [{command: "ls"}]}'),
        (Observation("completed", 0), called("ls"), "calls: {shell: 0}"),
        (called("ls"), called("ls"), None),
    ],
)
def test_telling_expectation(before: Observation, after: Observation, expectation: str | None) -> None:
    assert telling_expectation(before, after) == expectation
