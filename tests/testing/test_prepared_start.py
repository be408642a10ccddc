"""A case whose start was prepared sees the same as one that starts its document itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.testing.bench import run
from tests.testing.test_file_run import PASSING, case

from quire.formats.test.parse import parse
from quire.plan.nodes import Plan, Think
from quire.source import read_source
from quire.testing.case_rows import expand
from quire.testing.case_run import CaseRun
from quire.testing.discovery import open_document
from quire.testing.file_run import verdict
from quire.testing.observation import Observation

BOARD = """
cases:
  - name: it
    inputs: {text: a poem, readers: [a child, a lawyer, a poet]}
    model:
      - {step: 1.do, item: 0, reply: '{"fine": true}', usage: {input_tokens: 7, output_tokens: 3, cost: 0.5}}
      - {step: 1.do, item: 1, error: {kind: overloaded, message: busy}}
      - {step: 1.do, item: 1, reply: 'no object', times: 1}
      - {step: 1.do, item: 1, reply: '{"fine": false}'}
      - {step: 1.do, item: 2, reply: '{"fine": true}', delay_ms: 20}
    expect: {stores: {verdicts: [{fine: true}, {fine: false}, {fine: true}]}}
"""
FILES = """
cases:
  - name: it
    files: {a.txt: "b\\na\\n"}
    inputs: {name: a.txt}
    model: {"2": "a\\nb\\n"}
    expect: {files: {a.txt: "a\\nb"}, calls: {file__write: 1}}
"""
TIDY = """
cases:
  - name: it
    files: {a.txt: "b\\na\\n"}
    inputs: {file: a.txt}
    model:
      - {turn: 1, tool_calls: [{name: rye_file_system_read, input: {path: a.txt}}]}
      - {turn: 2, tool_calls: [{name: rye_bash, input: {command: "rm -r ."}}]}
      - {turn: 3, tool_calls: [{name: directive_return, input: {lines: 2}}]}
    expect: {outputs: {lines: 2}, refused: [rye.execute.tool.rye.bash], used: {turns: 3}}
"""
FAILING = """
cases:
  - name: it
    inputs: {file: a.txt}
    model: [{default: Well., times: any}]
    expect: {warnings: [{contains: without lines}]}
"""


class Prepared:
    """The first case of a test file, with its prepared start."""

    def __init__(self, folder: Path, name: str, test: str) -> None:
        run(folder, name, test)
        reading = parse(read_source(folder / f"{name}.test.yaml"))
        assert reading.file is not None
        self.file = reading.file
        self.bench = open_document(reading.source, reading.file)
        self.row = expand(reading.file.cases[0], self.bench.folder, [])[0]
        start = CaseRun(self.bench, self.row.case).prepare()
        self.start = start.for_changed_plans(self.bench.settings) if start is not None else None

    @property
    def plan(self) -> Plan:
        return self.bench.document.runnable()

    def observe(self, plan: Plan | None = None) -> Observation:
        """The run of the case, from its start on a plan; without one, as every case is run."""
        assert self.start is not None
        start = self.start.with_plan(plan) if plan is not None else None
        return CaseRun(self.bench, self.row.case, start=start).play()[-1].observation

    def problems(self, plan: Plan) -> list[str]:
        assert self.start is not None
        found, _ = verdict(self.row, self.file, self.bench, start=self.start.with_plan(plan))
        return [one.finding.message for one in found]


def differences(one: Observation, other: Observation) -> dict[str, object]:
    """The fields in which two observations differ, without the events."""
    return {
        name: (getattr(one, name), getattr(other, name))
        for name in one.__struct_fields__
        if name != "events" and getattr(one, name) != getattr(other, name)
    }


@pytest.mark.parametrize("name", [name for name, text in PASSING.items() if "not_started" not in text])
def test_playbooks(name: str, tmp_path: Path) -> None:
    found = Prepared(tmp_path, "tagline", case(PASSING[name]))
    assert differences(found.observe(), found.observe(found.plan)) == {}
    assert found.problems(found.plan) == []


@pytest.mark.parametrize(("document", "test"), [("board", BOARD), ("files", FILES), ("tidy", TIDY), ("tidy", FAILING)])
def test_other_formats(document: str, test: str, tmp_path: Path) -> None:
    found = Prepared(tmp_path, document, test)
    assert differences(found.observe(), found.observe(found.plan)) == {}
    assert found.problems(found.plan) == []


def test_nothing_of_a_run_is_left_for_the_next(tmp_path: Path) -> None:
    found = Prepared(tmp_path, "files", FILES)
    first, second = found.observe(found.plan), found.observe(found.plan)
    assert (differences(first, second), first.files) == ({}, {"a.txt": "a\nb"})


def test_a_changed_plan_is_noticed(tmp_path: Path) -> None:
    from quire.testing.mutation.edits import with_step

    found = Prepared(tmp_path, "files", FILES)
    (step,) = [step for _, step in found.plan.steps() if isinstance(step.work, Think)]
    assert found.problems(with_step(found.plan, step, None)) != []


def test_a_document_that_does_not_start_has_no_prepared_start(tmp_path: Path) -> None:
    assert Prepared(tmp_path, "tagline", case(PASSING["inputs that do not fit"])).start is None
