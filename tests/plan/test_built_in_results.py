"""The schemas of the results of built-in tools fit what the tools really return."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import jsonschema_rs
import pytest
from tests.testing.bench import only, run, told

from quire.plan.built_in_tools import RESULTS
from quire.tools.builtin import SPECS
from quire.tools.builtin.connection import BuiltInConnection
from quire.trust.capabilities import Grants
from quire.values import Value

CALLS: list[tuple[str, Mapping[str, Value]]] = [
    ("file__write", {"path": "new.txt", "content": "a\nb\n"}),
    ("file__write", {"files": [{"path": "x.txt", "content": "x"}]}),
    ("file__read", {"path": "old.txt"}),
    ("file__edit", {"path": "old.txt", "old": "one", "new": "two"}),
    ("file__list", {"path": "."}),
    ("file__glob", {"pattern": "*.txt"}),
    ("file__grep", {"pattern": "t"}),
    ("now", {}),
]


@pytest.mark.parametrize(("name", "arguments"), CALLS, ids=lambda one: str(one)[:30])
def test_real_results_fit(tmp_path: Path, name: str, arguments: Mapping[str, Value]) -> None:
    (tmp_path / "old.txt").write_text("one\nthree\n")
    connection = BuiltInConnection(tmp_path, Grants.of(["rye.execute.tool.*"]), {})
    result = asyncio.run(connection.call(SPECS[name], dict(arguments), "id"))
    schema = RESULTS[SPECS[name].id]
    assert [one.message for one in jsonschema_rs.validator_for(dict(schema)).iter_errors(result)] == []


def test_every_other_tool_may_return_anything() -> None:
    without = sorted(spec.name for spec in SPECS.values() if spec.id not in RESULTS)
    assert without == ["ask", "shell", "state__get", "state__set"]


def test_a_scripted_result_that_no_call_could_return_fails_the_case(tmp_path: Path) -> None:
    test = """
    cases:
      - name: it
        inputs: {name: a.txt}
        files: {a.txt: x}
        model: {"2": y}
        tools: {file__write: {returns: {path: a.txt, bytes: many, created: false}}}
        expect: {steps: {"3": completed}}
    """
    found = told(only(run(tmp_path, "files", test)))
    assert len(found) == 1 and found[0].startswith("TS107 rye/file-system/write never returns this: ")
