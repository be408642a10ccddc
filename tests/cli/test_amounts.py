"""A budget that is no amount is refused before anything runs, wherever it is given."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.given import given

import quire
from quire.cli import main
from quire.errors import CannotStart
from quire.runs.drives import Given, amend
from quire.runs.fork import Changes
from quire.runs.options import RunOptions
from quire.runs.pins import PinnedState

ONE = "# One\n\n## STEP 1: Only\n\nSay it.\n"
NONE = [float("nan"), float("inf"), float("-inf"), -1.0, -0.01, True, "1"]


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "1e400", "-1"])
@pytest.mark.parametrize(
    "verb",
    [
        ("run", "one.md", "--script", "replies.json"),
        ("resume", "last"),
        ("answer", "last", "yes"),
        ("fork", "last", "--from", "1"),
        ("mcp",),
    ],
)
def test_the_command_line_refuses_it(
    workspace: Path, verb: tuple[str, ...], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given({"one.md": ONE, "replies.json": ["hello"]})
    assert main([*verb, f"--budget={text}"]) == 2
    told = capsys.readouterr()
    assert not told.out
    assert "--budget" in told.err and "Traceback" not in told.err


def test_zero_is_an_amount(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given({"one.md": ONE, "replies.json": ["hello"]})
    assert main(["run", "one.md", "--script", "replies.json", "--budget", "0"]) == 5
    assert "the budget of $0" in capsys.readouterr().err


@pytest.mark.parametrize("budget", NONE)
def test_python_refuses_it(budget: float) -> None:
    with pytest.raises(CannotStart, match="a budget is an amount"):
        RunOptions(budget=budget)
    with pytest.raises(CannotStart, match="a budget is an amount"):
        Changes(budget=budget)


@pytest.mark.parametrize("budget", NONE)
def test_going_on_refuses_it(budget: float) -> None:
    with pytest.raises(CannotStart, match="a budget is an amount"):
        amend(PinnedState("page.md", ".", "", {}), Given(budget=budget))


def test_a_run_of_the_api_refuses_it(workspace: Path) -> None:
    Path("one.md").write_text(ONE)
    with pytest.raises(CannotStart, match="a budget is an amount"):
        quire.run("one.md", budget=-1)
