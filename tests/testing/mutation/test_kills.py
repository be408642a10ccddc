"""Expectations that kill a mutant are YAML that reads back; placeholders stand for what the document does not say."""

from __future__ import annotations

import pytest
import yaml

from quire.testing.mutation.kills import Kill


@pytest.mark.parametrize(
    ("kill", "expected"),
    [
        (Kill("prompts", "1", "tone"), {"prompts": {"1": {"contains": "<the value of tone>"}}}),
        (Kill("prompts", "1"), {"prompts": {"1": {"contains": "<a part of the prompt>"}}}),
        (Kill("prompts", "1", absent=True), {"prompts": {"1": {"not_contains": "<a result that it must not see>"}}}),
        (Kill("prompts", "no", value="off"), {"prompts": {"no": {"contains": "off"}}}),
        (Kill("asked", "2"), {"asked": {"2": {"contains": "<a part of the prompt>"}}}),
        (Kill("asked", "2", "best"), {"asked": {"2": {"contains": "<the value of best>"}}}),
        (Kill("steps", "3a"), {"steps": {"3a": "completed"}}),
        (Kill("steps", "3a", value="skipped"), {"steps": {"3a": "skipped"}}),
        (Kill("named", "best"), {"named": {"best": "<the value of best>"}}),
        (Kill("stores", "yes"), {"stores": {"yes": "<the value of yes>"}}),
        (Kill("output"), {"output": "<the output>"}),
        (Kill("status"), {"status": "completed"}),
        (Kill("status", value="failed"), {"status": "failed"}),
        (Kill("calls", "rye/bash"), {"calls": {"rye/bash": [{"<argument>": "<value>"}]}}),
        (Kill("hooks", "stop"), {"hooks": {"stop": 1}}),
        (Kill("error"), {"error": {"contains": "<the text>"}}),
        (Kill("error", value="max_items"), {"error": {"contains": "max_items"}}),
        (Kill("refused"), {"refused": []}),
        (Kill("refused", value="rye.execute.tool.rye.bash"), {"refused": ["rye.execute.tool.rye.bash"]}),
    ],
)
def test_expectations_without_a_run(kill: Kill, expected: object) -> None:
    text = kill.expectation()
    assert "\n" not in text
    assert yaml.safe_load(text) == expected
