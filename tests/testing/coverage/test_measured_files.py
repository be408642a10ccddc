"""Test files whose coverage is measured while their cases run."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from tests.engine.thread.crew import directive
from tests.walks.test_pure_walk import TAGLINE

from quire.formats.test.parse import parse
from quire.source import Source
from quire.testing.case_results import FileResult
from quire.testing.coverage.report import Share, merged
from quire.testing.discovery import Selection, keyword
from quire.testing.file_run import FileOptions, run_file

TEST = """document: tagline.playbook.md
coverage: {arms: 100, prompts: 100}
defaults:
  inputs: {product: a bakery, tone: dry}
  model: {"1": 'Three of them. {"best": "Bread."}'}
cases:
  - name: a yes polishes it
    answers: {"2": "yes"}
    model: {"3a": "Bread, then."}
    expect:
      output: "Bread, then."
      prompts: {"1": {contains: a bakery}, "3a": {contains: "Bread."}}
  - name: a no asks for another
    answers: {"2": "no"}
    model: {"3b": "Flour power."}
    expect: {output: "Flour power."}
"""
PIPELINE = """pipeline: p
dialect: quire
steps:
- for_each:
    over: readers
    on_error: retry(1), continue
    do: {agent: {prompt: "Read as {item}."}}
    collect: {transform: {value: "count(pipe)"}}
    output: n
- transform: {value: n, when: n > 1}
"""
PIPELINE_TEST = """cases:
  - name: one fails twice
    inputs: {readers: [a, b]}
    model:
      - {step: 1.do, item: 0, reply: fine}
      - {step: 1.do, item: 1, error: {kind: down, message: m}, times: 2}
    expect: {output: 1, prompts: {1.do: {contains: Read as a}}}
  - name: nothing to read
    inputs: {readers: []}
    expect: {output: 0}
"""
SEVERAL = """pipeline: order
steps:
- call: {pipeline: weigh, pass: [load], output: weight}
- transform: {value: weight == 'heavy'}
---
pipeline: weigh
steps:
- agent: {prompt: "Weigh {ctx.load}."}
---
pipeline: unused
steps:
- transform: {value: '1'}
"""
ORDER = """document: moving.order
cases:
  - name: heavy
    inputs: {load: a piano}
    model: {"1 › 1": heavy}
    expect: {output: true, prompts: {"1 › 1": {contains: a piano}}}
"""
WAITS = """cases:
  - name: a limit, raised
    model:
      - {turn: 1, tool_calls: [{name: rye_file_system_read, input: {path: a.txt}}]}
      - {turn: 2, reply: done}
    files: {a.txt: x}
    expect: {status: failed}
    then: [{resume: {limit: {turns: 9}}, expect: {status: completed}}]
"""


def run(folder: Path, name: str, text: str, test: str, options: FileOptions | None = None) -> FileResult:
    document, file = folder / name, folder / "x.test.yaml"
    document.parent.mkdir(parents=True, exist_ok=True)
    document.write_text(text, encoding="utf-8")
    source = Source.of(test if "document:" in test else f"document: {name}\n{test}", str(file))
    result = run_file(parse(source), options or FileOptions(coverage=True))
    assert [one.finding.message for case in result.cases for one in case.problems] == []
    return result


def test_the_cases_of_a_playbook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(tmp_path, "tagline.playbook.md", TAGLINE, TEST, FileOptions())
    assert result.coverage is not None
    assert result.coverage.path == "tagline.playbook.md"
    assert (result.coverage.share("arms"), result.coverage.share("prompts")) == (Share(2, 2), Share(2, 3))
    (problem,) = result.problems
    assert problem.finding.message == "2 of 3 prompts are covered, 66 %, and 100 % is asked for"
    at = problem.finding.span.start
    assert result.source.position(at).line == 2
    assert result.failed


def test_gates_are_for_all_cases_of_a_file(tmp_path: Path) -> None:
    some = FileOptions(Selection(keyword=keyword("polishes")))
    result = run(tmp_path, "tagline.playbook.md", TAGLINE, TEST, some)
    assert result.coverage is not None
    assert (result.coverage.share("arms"), result.failed) == (Share(1, 2), False)


def test_shares_of_processes_come_together(tmp_path: Path) -> None:
    parts = []
    for mine in (0, 1):
        options = FileOptions(Selection(share=(mine, 2)), coverage=True)
        result = run(tmp_path, "tagline.playbook.md", TAGLINE, TEST, options)
        parts.append(pickle.loads(pickle.dumps(result)).coverage)
    (whole,) = merged(parts)
    assert whole == run(tmp_path, "tagline.playbook.md", TAGLINE, TEST).coverage


def test_the_cases_of_a_pipeline(tmp_path: Path) -> None:
    coverage = run(tmp_path, "p.yaml", PIPELINE, PIPELINE_TEST).coverage
    assert coverage is not None
    assert [one.label for one in coverage.missing()] == [
        "step 1: 1 item",
        "step 1: a retry of an item succeeds",
        "step 2 (Compute)",
        "step 2: `n > 1` true",
    ]


def test_a_failure_that_a_resume_removes_has_happened(tmp_path: Path) -> None:
    allowed = "<execute><tool>rye.file-system.read</tool></execute>"
    text = directive("x", meta='<limits turns="1" />', body="Read it.", permissions=allowed)
    (tmp_path / ".ai" / "directives").mkdir(parents=True)
    coverage = run(tmp_path, ".ai/directives/x.md", text, WAITS).coverage
    assert coverage is not None
    assert coverage.share("hooks") == Share(1, 1)
    assert coverage.share("errors") == Share(0, 1)


def test_pipelines_of_one_file_count_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    coverage = run(tmp_path, "pipelines/moving.yaml", SEVERAL, ORDER).coverage
    assert coverage is not None
    assert coverage.path == "pipelines/moving.yaml"
    assert [one.label for one in coverage.decisions if coverage.count(one)] == [
        "step order>1 (weight)",
        "step order>2 (Compute)",
        "step order>2: `weight == 'heavy'` true",
        "step weigh>1 (Ask the model)",
        "step weigh>1: its prompt is looked at",
    ]
    assert [one.id for one in coverage.missing()] == ["conditions:order>2:value[1]=false"]
    other = ORDER.replace("moving.order", "moving.weigh").replace("1 › 1", "1").replace("output: true", "output: heavy")
    alone = run(tmp_path, "pipelines/moving.yaml", SEVERAL, other).coverage
    assert alone is not None
    assert {one.place for one in alone.decisions} == {"weigh>1"}
    (both,) = merged([alone, coverage])
    assert (both.decisions[0].id, both.counts["steps:weigh>1"], both.share("all")) == ("steps:weigh>1", 2, Share(5, 6))


def test_without_gates_and_without_being_asked_nothing_is_measured(tmp_path: Path) -> None:
    assert run(tmp_path, "p.yaml", PIPELINE, PIPELINE_TEST, FileOptions()).coverage is None
