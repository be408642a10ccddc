"""Playbooks that choose, at the command line: what `check`, `show`, `run` and `runs why` say of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Invoke

from quire.cli.check import command as check
from quire.cli.run import command as run
from quire.cli.runs import command as runs
from quire.cli.show import command as show

PLAN = """# Plan

## STEP 1: Draft

Draft.

@output(draft)

## STEP 2: Judge

@context(draft)
@model(reader)

Judge.

## STEP 3: Log

@context(none)

Log.

## ARTIFACTS

from: draft
"""


@pytest.fixture
def plan(workspace: Path) -> Path:
    (workspace / "plan.playbook.md").write_text(PLAN)
    (workspace / "script.json").write_text(json.dumps([{"step": "1", "reply": "the draft"}, {"default": "fine"}]))
    home = workspace.parent / "home"
    home.mkdir()
    (home / "quire.toml").write_text('[agents.reader]\ntools = ["file__read"]\n')
    return workspace


def test_check_knows_the_models_of_the_workspace(plan: Path, invoke: Invoke) -> None:
    assert "PB235" not in invoke(check, "plan.playbook.md").output
    (plan / "plan.playbook.md").write_text(PLAN.replace("reader", "raeder"))
    found = invoke(check, "--strict", "plan.playbook.md")
    assert found.exit_code == 1 and 'did you mean "reader"?' in found.output
    assert invoke(check, "--fix", "plan.playbook.md").exit_code == 0
    assert (plan / "plan.playbook.md").read_text() == PLAN


def test_check_portable_fails_on_each_line(plan: Path, invoke: Invoke) -> None:
    found = invoke(check, "--portable", "--json", "plan.playbook.md")
    assert found.exit_code == 1
    assert invoke(check, "--strict", "plan.playbook.md").exit_code == 0


def test_show_says_what_is_chosen(plan: Path, invoke: Invoke) -> None:
    shown = invoke(show, "plan.playbook.md").output
    assert "shows it only draft" in shown and "shows it no earlier result" in shown
    assert "on the model reader" in shown and "from draft" in shown
    data = json.loads(invoke(show, "plan.playbook.md", "--json").output)
    assert data["artifact_from"] == "draft" and data["artifact"] is None
    assert data["steps"][1]["model"]["context"] == ["draft"] and data["steps"][1]["model"]["name"] == "reader"
    assert "context" not in data["steps"][0]["model"]
    prompt = json.loads(invoke(show, "plan.playbook.md", "--prompt", "3", "--json").output)
    assert "earlier steps" not in json.dumps(prompt)


def test_a_run_gives_what_is_named_and_why_says_what_was_seen(plan: Path, invoke: Invoke) -> None:
    done = invoke(run, "plan.playbook.md", "--script", "script.json", "--json")
    assert done.exit_code == 0
    assert json.loads(done.stdout.splitlines()[-1] if "\n{" in done.stdout else done.stdout)["artifact"] == "the draft"
    for step, told in (("2", ["1"]), ("3", [])):
        why = json.loads(invoke(runs, "why", "last", step, "--json").output)
        assert why["told"] == told


def test_wrong_settings_are_one_line(plan: Path, invoke: Invoke) -> None:
    home = plan.parent / "home" / "quire.toml"
    home.write_text('[playbooks."plan"]\nagent = "nobody"\n')
    refused = invoke(run, "plan.playbook.md", "--script", "script.json")
    assert refused.exit_code == 2 and "Traceback" not in refused.output
    assert 'quire.toml: [playbooks."plan"] agent: unknown agent nobody' in refused.output
    home.write_text('[playbooks."plan"]\nagents = "nobody"\n')
    refused = invoke(run, "plan.playbook.md", "--script", "script.json")
    assert refused.exit_code == 2 and 'did you mean "agent"?' in refused.output
