"""Every example is clean, runs to its end under its script, and together they use all of the language."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest
from tests.warm import run_quire

import quire
from quire.diagnostics import Severity
from quire.formats.playbook.parse import parse
from quire.formats.playbook.syntax import ARTIFACT_TYPES, ELICIT_KINDS, INPUT_TYPES, OUTPUT_TYPES, Playbook, Step
from quire.source import read_source
from quire.workspace.configuration import load_settings
from quire.workspace.consent import confirm, requests
from quire.workspace.locate import find_workspace

EXAMPLES = Path(__file__).parents[2] / "examples"
DOCUMENTS = sorted(EXAMPLES.glob("*/*.playbook.md"))
TRUSTED = ("rfc-review", "trip-planner")
"""The examples that ask for something that has to be confirmed."""


@dataclass(frozen=True, slots=True)
class Case:
    """One run of an example: `files` are inputs that are read from beside it, `skipped` the steps that do not run."""

    example: str
    inputs: Mapping[str, str | int | bool] = field(default_factory=dict)
    answers: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    skipped: str = ""
    named: Mapping[str, str] = field(default_factory=dict)
    artifact: str = "markdown"
    output: str = ""


COMMITS = {"commits": "commits.txt"}
INCIDENT: dict[str, str | int | bool] = {"service": "login"}
CASES = [
    Case("hello", skipped="3b", named={"time": "morning"}, artifact="", output="basket"),
    Case(
        "announcement",
        {"version": "1.3.0", "audience": "users"},
        files=COMMITS,
        skipped="4b 4c",
        named={"breaking": "true", "upgrade_notes": "- Replace `--out` by `--to` in scripts."},
        output="# 1.3.0",
    ),
    Case("announcement", {"version": "1.3.0", "audience": "developers"}, files=COMMITS, skipped="4a 4c"),
    Case("announcement", {"version": "1.3.0", "audience": "operators"}, files=COMMITS, skipped="4a 4b"),
    Case(
        "meeting-minutes",
        {"team": "Import", "max_actions": 5, "anonymous": True},
        {"3": "Kim", "4": "no date"},
        {"notes": "notes.txt"},
        named={"fallback_owner": "Kim", "__elicit_step_4": "no date"},
        artifact="json",
        output='"actions"',
    ),
    Case(
        "incident-report",
        INCIDENT | {"notes": "login was down for 42 minutes", "customers": 1200},
        {"4": "yes", "6a": "Monday"},
        skipped="1c 5c",
        named={"severity": "critical", "duration": "42", "review_date": "Monday", "__elicit_step_6": "Monday"},
        output="# Incident report",
    ),
    Case("incident-report", INCIDENT | {"notes": "slow pages"}, {"4": "no"}, skipped="1a 1b 5a 5b 6 6a 6b"),
    Case(
        "incident-report",
        INCIDENT | {"notes": "a job was late"},
        {"4": "yes"},
        skipped="1a 1b 1c 5c 6 6a 6b",
        named={"severity": "minor, no customer noticed"},
    ),
    Case(
        "letter-desk",
        {"kind": "reminder", "recipient": "Ada", "facts": "The Sea was due on Monday."},
        {"3": "no"},
        named={"verdict": "revise"},
        output="by Friday",
    ),
    Case(
        "letter-desk",
        {"kind": "thanks", "recipient": "Bo", "facts": "He gave us a lamp."},
        {"3": "yes"},
        skipped="4 4a",
        named={"verdict": "send"},
        output="thank you for the lamp",
    ),
    Case(
        "trip-planner",
        {"there_zone": "Asia/Tokyo", "home_zone": "Asia/Dubai"},
        {"3": "a little"},
        skipped="4b",
        named={"difference": "+5.0h", "pace": "a little"},
    ),
    Case("trip-planner", {"there_zone": "Asia/Tokyo"}, {"3": "rest"}, skipped="4a"),
    Case(
        "rfc-review",
        {"area": "security"},
        {"8": "reject"},
        files={"rfc": "rfc.md"},
        skipped="6 6a",
        named={
            "statistics": '{"sections":4,"words":54,"long":false}',
            "size": "short",
            "risks": "Proposal: a file name of a user becomes a path. Use an id.",
            "decision": "reject",
        },
        output="name files by an id",
    ),
    Case(
        "rfc-review",
        {"area": "operations", "threshold": 1, "extra_rules": "Be kind."},
        {"8": "revise"},
        files={"rfc": "rfc.md"},
        named={"size": "long", "pieces": "1. Pictures. 2. Everything else."},
        output="Decide about pictures first",
    ),
    Case(
        "post-mortem",
        {"title": "Orders fail"},
        {"3": "A query kept its transaction open.", "4": "more load than usual", "6": "no"},
        skipped="4a 4b 8 8a",
        named={"noticed_after": "19", "trigger": "more load than usual"},
        output="# Orders fail",
    ),
    Case(
        "picture-maker",
        {"subject": "coffee", "format": "mermaid"},
        {"3": "Coffee"},
        skipped="4b",
        named={"final_heading": "Coffee"},
        artifact="mermaid",
        output="flowchart",
    ),
    Case("picture-maker", {"subject": "coffee", "format": "chartjs"}, {"3": "x"}, skipped="4a", artifact="chartjs"),
    *(
        Case(
            "quiz-maker",
            {"source": "…", "target": target, "explain": False},
            {"3": "yes"},
            skipped=skipped,
            artifact=target,
        )
        for target, skipped in (("html_css", "4b 4c"), ("javascript", "4a 4c"), ("typescript", "4a 4b"))
    ),
]


@pytest.fixture(scope="session")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the examples, of which what they ask for has been confirmed.

    One for all tests of the process: the Python module of an example can be loaded from one place only.
    """
    folder = tmp_path_factory.mktemp("examples")
    copy = folder / "examples"
    shutil.copytree(EXAMPLES, copy, ignore=shutil.ignore_patterns(".quire", "__pycache__"))
    for name in TRUSTED:
        confirm(load_settings(find_workspace(copy / name), {"QUIRE_HOME": str(folder / "home")}))
    return copy


@pytest.fixture
def folder(copied: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("QUIRE_HOME", str(copied.parent / "home"))
    monkeypatch.setenv("QUIRE_PYTHON", sys.executable)
    return copied


def test_check_strict_finds_nothing() -> None:
    arguments = ("check", "--strict", "--format", "concise", str(EXAMPLES))
    done = run_quire(arguments, cwd=Path.cwd(), env=os.environ)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(DOCUMENTS) == 10


def test_every_example_has_a_case_and_a_script() -> None:
    assert {path.parent.name for path in DOCUMENTS} == {case.example for case in CASES}
    for path in DOCUMENTS:
        script = path.with_name(path.name.replace(".playbook.md", ".script.json"))
        assert json.loads(script.read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.example}-{case.skipped or 'all'}".replace(" ", ""))
def test_runs_to_its_end(case: Case, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = folder / case.example
    monkeypatch.chdir(home)
    read = {name: (home / file).read_text(encoding="utf-8") for name, file in case.files.items()}

    async def run() -> tuple[quire.Result, list[quire.Event]]:
        running = quire.run(
            home / f"{case.example}.playbook.md",
            inputs={**case.inputs, **read},
            answers=case.answers,
            model=f"script:{case.example}.script.json",
            workspace=home,
        )
        events = [event async for event in running]
        assert running.result is not None
        return running.result, events

    result, events = asyncio.run(run())
    assert (result.status, result.error) == (quire.Status.COMPLETED, "")
    assert [label for label, status in result.steps.items() if status == "skipped"] == case.skipped.split()
    assert not [event.data for event in events if event.type == "warning"]
    assert {name: result.named[name] for name in case.named} == case.named
    assert result.artifact_type == case.artifact
    assert case.output in result.output
    if result.artifact_type in ("json", "chartjs"):
        json.loads(result.output)


def test_only_two_examples_ask_for_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUIRE_HOME", str(tmp_path))
    asking = {path.parent.name for path in DOCUMENTS if requests(load_settings(find_workspace(path.parent)))}
    assert asking == set(TRUSTED)


@cache
def _trees() -> tuple[Playbook, ...]:
    readings = [parse(read_source(path)) for path in DOCUMENTS]
    return tuple(reading.playbook for reading in readings if reading.playbook)


@cache
def _steps() -> tuple[Step, ...]:
    found: list[Step] = []
    for tree in _trees():
        for step in tree.steps:
            found += [step, *(below for arm in step.arms for below in arm.steps)]
    return tuple(found)


def test_they_use_every_kind_of_input() -> None:
    declared = {(given.type, given.default is None) for tree in _trees() for given in tree.inputs}
    types = set(INPUT_TYPES.values())
    assert declared == {(kind, True) for kind in types} | {(kind, False) for kind in types - {"enum"}}
    assert any(tree.system for tree in _trees()) and not all(tree.system for tree in _trees())
    assert all(tree.description for tree in _trees())


def test_they_use_every_form_of_output() -> None:
    outputs = [step.output for step in _steps() if step.output]
    assert {output.type for output in outputs} == {None, *OUTPUT_TYPES.values()}
    forms = {(output.type is not None, output.field is not None) for output in outputs}
    assert forms == {(typed, extracted) for typed in (True, False) for extracted in (True, False)}
    assert any("," in option for output in outputs for option in output.options)


def test_they_ask_in_every_way() -> None:
    asking = [(step, step.elicitation) for step in _steps() if step.elicitation]
    assert {ask.kind for _, ask in asking} == set(ELICIT_KINDS)
    assert {ask.kind for _, ask in asking if ask.default is not None} == set(ELICIT_KINDS)
    assert {bool(step.content) for step, _ in asking} == {True, False}
    assert any("{{" in ask.prompt for _, ask in asking)
    assert any("{{" in (ask.default or "") for _, ask in asking)


def test_they_fetch_prompts_from_everywhere() -> None:
    fetching = [step for step in _steps() if step.prompt]
    kinds = {step.prompt.ref.partition(":")[0].strip("{}") for step in fetching if step.prompt}
    assert {"library", "file", "mcp", "extra_rules"} == kinds
    assert any(not step.content for step in fetching)


def test_they_call_tools_in_every_way() -> None:
    calls = [step.tool for step in _steps() if step.tool]
    assert {call.connection for call in calls} == {"python", "quire", "time"}
    assert any(": {{" in call.arguments for call in calls), "a placeholder without quotes"
    assert any('"{{' in call.arguments for call in calls), "a placeholder inside quotes"
    assert '@tool("time", "convert_time"' in (EXAMPLES / "trip-planner/trip-planner.playbook.md").read_text()


def test_they_branch_in_every_way() -> None:
    branching = [step for step in _steps() if step.arms]
    conditions = [(step, arm.condition) for step in branching for arm in step.arms]
    assert {test.operator for _, test in conditions if test} == {"==", "!="}
    assert {test.source for _, test in conditions if test} == {"input", "step_output"}
    assert any(test.variable.startswith("__elicit_step_") for _, test in conditions if test)
    assert any(step.output and test and test.variable == step.output.name for step, test in conditions), "own output"
    assert any(step.output and not step.content and not step.tool for step in branching), "the sub-step's output"
    assert any(test is None for _, test in conditions) and any(test for _, test in conditions), "an else"
    assert any(step.arms[-1].condition for step in branching), "no else"
    assert any(len(step.arms) > 2 for step in branching), "an elif"
    assert any(len(arm.steps) > 1 for step in branching for arm in step.arms), "several sub-steps"
    below = [step for parent in branching for arm in parent.arms for step in arm.steps]
    assert any(step.elicitation for step in below) and any(step.output for step in below)


def test_they_use_every_form_of_placeholder() -> None:
    used = [placeholder for step in _steps() for placeholder in step.placeholders]
    forms = {(one.type is None, one.default is None) for one in used}
    assert forms == {(True, True), (False, True), (False, False)}


def test_they_show_code_and_one_fence_holds_a_heading() -> None:
    assert {mark for step in _steps() for mark in ("```", "~~~") if mark in step.content} == {"```", "~~~"}
    notes = [
        found.code.id
        for path in DOCUMENTS
        for found in parse(read_source(path)).diagnostics
        if found.severity is Severity.NOTE and found.code.id != "PB307"
    ]
    assert [note for note in notes if note != "PB307"] == ["PB301"]


def test_they_use_what_only_quire_has() -> None:
    contexts = [step.context.names for step in _steps() if step.context]
    assert () in contexts and any(name.isdigit() for names in contexts for name in names)
    assert any(step.output and step.output.name in names for names in contexts for step in _steps())
    assert any(step.model for step in _steps())
    assert any(tree.artifact and tree.artifact.source for tree in _trees())
    asked = [step.elicitation.prompt for step in _steps() if step.elicitation]
    assert any("\n" in prompt for prompt in asked) and any('"' in prompt for prompt in asked)
    assert any(step.prompt and "file:" in step.prompt.ref and "{{" in step.prompt.ref for step in _steps())


def test_they_make_every_kind_of_artifact() -> None:
    """What the runs above end with, so that a dynamic type counts for what it becomes."""
    assert {case.artifact for case in CASES} == {"", *ARTIFACT_TYPES}
    texts = [path.read_text(encoding="utf-8") for path in DOCUMENTS]
    assert any("\n## OUTPUT\n" in text for text in texts) and any("\n## ARTIFACTS\n" in text for text in texts)
    assert {tree.artifact is None for tree in _trees()} == {True, False}
    assert any(tree.artifact and tree.artifact.type.startswith("{{") for tree in _trees())
