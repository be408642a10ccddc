"""After a failure the hints name commands that can succeed, wherever they are printed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.given import given

from quire.cli import main
from quire.display.advice import after_failure, next_step
from quire.engine.progress import Progress
from quire.engine.records import RunRow, Status
from quire.engine.requests import Failure

TWO = "# Two\n\n## STEP 1: A\n\nGo.\n\n## STEP 2: B\n\nGo.\n"


def test_a_script_without_a_reply(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A resume with the same script fails again; with another one it goes on."""
    given({"two.md": TWO, "one.json": '["one"]', "both.json": '["one", "two"]'}, workspace)
    assert main(["run", "two.md", "--script", "one.json"]) == 3
    hint = capsys.readouterr().err.splitlines()[-1]
    assert hint.startswith("to continue: quire resume ") and hint.endswith(" --script FILE, with a reply for step 2")
    for verb in (["runs", "last"], ["runs", "last", "--follow"]):
        assert main(verb) == 0
        assert capsys.readouterr().err.splitlines()[-1] == hint, "looking at the run says the same"
    words = hint.partition(",")[0].partition("quire ")[2].split()
    assert main([word.replace("FILE", "both.json") for word in words]) == 0
    assert capsys.readouterr().out == "two\n"


@pytest.mark.parametrize(
    ("kind", "format", "message", "hint", "verb", "command"),
    [
        ("limit", "playbook", "the budget is used up", "quire resume r --budget MORE|none", "resume", 0),
        (
            "limit",
            "playbook",
            "no price: --budget none",
            "quire resume r --budget none",
            "resume",
            0,
        ),
        ("auth", "playbook", "401", "quire resume r --model OTHER", "resume", 0),
        ("network", "playbook", "refused", "to try again from there: quire resume r", "resume", "quire resume r"),
        ("tokens_exceeded", "directive", "limit", "quire resume r --limit tokens=MORE", "resume", 0),
        ("denied", "directive", "no", "a resume has the same permissions", "fix", "quire run page.md"),
        ("denied", "playbook", "no: --allow 'my, tool'", "", "fork", "quire runs fork r --from 1 --allow 'my, tool'"),
        ("denied", "playbook", "no grant opens it", "change it yourself", "fix", None),
        ("denied", "playbook", "no", "edit the document", "fix", "quire resume r --document"),
        ("arguments", "playbook", "no", "edit the document", "fix", "quire resume r --document"),
        ("fail", "playbook", "no", "start a new run", "fix", "quire resume r --document"),
        ("too_many_calls", "pipeline", "no", "", "resume", "quire resume r --limit calls=MORE"),
    ],
)
def test_what_helps_depends_on_the_cause(
    kind: str, format: str, message: str, hint: str, verb: str, command: str | int | None
) -> None:
    ended = Failure(kind, message), ("1/model",)
    row = RunRow("r", "T", format, "page.md", Status.FAILED, "1", 0.0, 0.0, None, 0, 0, 0.0, *ended, 1, {})
    lines = after_failure(row, Progress({}))
    assert hint in lines[0]
    step = next_step(row, Progress({}), asks=False)
    assert (step["verb"], step["command"]) == (verb, hint if command == 0 else command)


@pytest.mark.parametrize(
    ("status", "asks", "verb", "command"),
    [
        (Status.RUNNING, False, "none", None),
        (Status.AWAITING_INPUT, True, "none", None),
        (Status.AWAITING_INPUT, False, "resume", "quire resume r"),
        (Status.CANCELLED, False, "resume", "quire resume r"),
        (Status.COMPLETED, False, "again", "quire run page.md"),
        (Status.EXPIRED, False, "fork", "quire runs fork r --from STEP"),
    ],
)
def test_the_next_step_of_a_run(status: Status, asks: bool, verb: str, command: str | None) -> None:
    row = RunRow("r", "T", "playbook", "page.md", status, "1", 0.0, 0.0, None, 0, 0, 0.0, None, (), 1, {})
    step = next_step(row, Progress({}), asks=asks)
    assert (step["verb"], step["command"]) == (verb, command)
