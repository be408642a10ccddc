"""After a failure the hints name commands that can succeed, wherever they are printed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.given import given

from quire.cli import main
from quire.display.advice import after_failure
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
    words = hint.partition(",")[0].split()[3:]
    assert main([word.replace("FILE", "both.json") for word in words]) == 0
    assert capsys.readouterr().out == "two\n"


@pytest.mark.parametrize(
    ("kind", "format", "message", "hint"),
    [
        ("limit", "playbook", "the budget is used up", "quire resume r --budget MORE|none"),
        ("limit", "playbook", "the price is not known: continue with --budget none", "quire resume r --budget none"),
        ("auth", "playbook", "401", "quire resume r --model OTHER"),
        ("network", "playbook", "refused", "to try again from there: quire resume r"),
        ("tokens_exceeded", "directive", "limit", "quire resume r --limit tokens=MORE"),
        ("denied", "directive", "no", "a resume has the same permissions"),
    ],
)
def test_what_helps_depends_on_the_cause(kind: str, format: str, message: str, hint: str) -> None:
    ended = Failure(kind, message), ("1/model",)
    row = RunRow("r", "T", format, "page.md", Status.FAILED, "1", 0.0, 0.0, None, 0, 0, 0.0, *ended, 1, {})
    lines = after_failure(row, Progress({}))
    assert hint in lines[0]
