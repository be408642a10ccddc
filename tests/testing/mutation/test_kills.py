"""Expectations that kill a mutant are YAML that reads back, with the values of a run of the unchanged document."""

from __future__ import annotations

import pytest
import yaml

from quire.testing.mutation.kills import Kill
from quire.testing.observation import Observation, SeenCall, SeenPrompt, SeenQuestion, Used

SEEN = Observation(
    "completed",
    0,
    output={"total": 3},
    error={"kind": "fail", "message": "too much", "step": "9"},
    inputs={"tone": "dry"},
    named={"best": "Bread.\nAnd more."},
    stores={"doc": {"lines": ["a"]}},
    steps={"3a": "skipped"},
    prompts=[SeenPrompt("1/model", "1", "", (("user", "Write in a dry tone. Bread."),))],
    asked=[SeenQuestion("2/ask", "2", "confirm", "Take Bread.?")],
    calls=[SeenCall("5/tool", "5", "rye/bash", "shell", {"command": "ls"})],
    hooks={"stop": 2},
    used=Used(turns=3),
)


@pytest.mark.parametrize(
    ("kill", "expected"),
    [
        (Kill("prompts", "1", "tone"), {"prompts": {"1": {"contains": "dry"}}}),
        (Kill("prompts", "1", "best"), {"prompts": {"1": {"contains": "Bread."}}}),
        (Kill("prompts", "1", "ctx.doc.lines"), {"prompts": {"1": {"contains": "Write in a dry tone. Bread."}}}),
        (Kill("steps", "3a", value="completed", fresh=True), {"steps": {"3a": "completed"}}),
        (Kill("refused"), {"refused": []}),
        (Kill("prompts", "no", value="off"), {"prompts": {"no": {"contains": "off"}}}),
        (Kill("asked", "2"), {"asked": {"2": "Take Bread.?"}}),
        (Kill("asked", "2", "best"), {"asked": {"2": {"contains": "Bread."}}}),
        (Kill("steps", "3a", value="completed"), {"steps": {"3a": "skipped"}}),
        (Kill("named", "best"), {"named": {"best": "Bread.\nAnd more."}}),
        (Kill("stores", "doc"), {"stores": {"doc": {"lines": ["a"]}}}),
        (Kill("stores", "yes"), {"stores": {"yes": "<the value of yes>"}}),
        (Kill("output"), {"output": {"total": 3}}),
        (Kill("status"), {"status": "completed"}),
        (Kill("calls", "rye/bash"), {"calls": {"rye/bash": [{"command": "ls"}]}}),
        (Kill("hooks", "stop"), {"hooks": {"stop": 2}}),
        (Kill("used", "turns"), {"used": {"turns": 3}}),
        (Kill("error"), {"error": {"contains": "too much"}}),
        (Kill("refused", value="rye.execute.tool.rye.bash"), {"refused": ["rye.execute.tool.rye.bash"]}),
    ],
)
def test_values_of_a_run(kill: Kill, expected: object) -> None:
    text = kill.expectation(SEEN)
    assert "\n" not in text
    assert yaml.safe_load(text) == expected
