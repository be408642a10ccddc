"""An answer says who gave it: in the page of the run, in JSON, in an export, and after an import."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import MakeRun, json_of

from quire.cli import main
from quire.runs.options import RunOptions
from quire.workspace.locate import account_name

JOURNALS = Path(__file__).parent.parent / "fixtures" / "journals"
PAGE = """# Ask

## STEP 1: Ask

@elicit(confirm, "Go on?")

## STEP 2: Name

@elicit(input, "Who?", default:"Bo")
"""


def answers(capsys: pytest.CaptureFixture[str], run: str = "last") -> dict[str, tuple[str, str | None]]:
    capsys.readouterr()
    return {one["way"]: (one["answer"], one["by"]) for one in json_of(capsys, "runs", run)["answers"]}


def test_the_user_by_the_account(make_run: MakeRun, capsys: pytest.CaptureFixture[str]) -> None:
    make_run(PAGE)
    assert main(["answer", "last", "yes", "--hold"]) == 0
    assert main(["resume", "last", "--answer", "2=Ann", "-q"]) == 0
    assert answers(capsys) == {"1": ("yes", account_name()), "2": ("Ann", "--answer")}
    assert main(["runs", "last"]) == 0
    assert f"step 1  yes  by {account_name()}\n" in capsys.readouterr().out
    assert main(["runs", "last", "--follow"]) == 0
    assert f"step 1: ask ok 0.0s by {account_name()}\n" in capsys.readouterr().out
    assert main(["runs", "why", "last", "2"]) == 0
    assert "2/ask  ok · 0.0s · by --answer" in capsys.readouterr().out


def test_defaults_that_nobody_gave(make_run: MakeRun, capsys: pytest.CaptureFixture[str]) -> None:
    make_run(PAGE, options=RunOptions(unattended=True, answers={"1": "no"}))
    assert answers(capsys) == {"1": ("no", "--answer"), "2": ("Bo", "unattended")}


def test_an_export_has_it(make_run: MakeRun, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(PAGE, options=RunOptions(unattended=True))
    assert main(["runs", "export", run, "-o", "run.jsonl"]) == 0
    lines = [json.loads(line) for line in Path("run.jsonl").read_text().splitlines()]
    assert [line["by"] for line in lines if line["type"] == "effect"] == ["unattended", "unattended"]


def test_a_run_of_0_1_0_does_not_know_who_answered(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", "import", str(JOURNALS / "0.1.0-everything.jsonl")]) == 0
    run = capsys.readouterr().out.strip()
    found = answers(capsys, run)
    assert found and {by for _, by in found.values()} == {None}
    assert main(["runs", run]) == 0
    assert " by " not in capsys.readouterr().out.partition("\nanswers\n")[2].partition("\n\n")[0]
