"""A first document: good, in its place, and never over somebody's own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from tests.given import given
from tests.play import Play

from quire import formats
from quire.cli.new import command, playbook
from quire.engine.records import Status
from quire.library.document import load, read
from quire.source import Source

Invoke = Callable[..., Result]


@pytest.mark.parametrize(
    ("arguments", "file", "title"),
    [
        (("review-notes",), "review-notes.playbook.md", "Review notes"),
        (("plan.playbook.md",), "plan.playbook.md", "Plan"),
        (("plan.md",), "plan.playbook.md", "Plan"),
        (("flows/plan",), "flows/plan.playbook.md", "Plan"),
        (("plan", "--title", "My {plan}"), "plan.playbook.md", "My {plan}"),
        (("--title", "Über alles: ja!"), "über-alles-ja.playbook.md", "Über alles: ja!"),
        ((), "example.playbook.md", "Example"),
    ],
)
def test_where_it_goes_and_what_it_is_called(
    invoke: Invoke, workspace: Path, arguments: tuple[str, ...], file: str, title: str
) -> None:
    result = invoke(command, "playbook", *arguments)
    assert (result.exit_code, result.stdout) == (0, f"{file}\n")
    assert f"quire check {file}" in result.stderr and f"quire run {file}" in result.stderr
    assert load(workspace / file).runnable().title == title


def test_the_example_has_nothing_to_complain_about() -> None:
    source = Source.of(playbook("Example"), "x.playbook.md")
    assert formats.check(source) == ()
    plan = read(source).runnable()
    steps = dict(plan.steps())
    assert plan.inputs and any(step.ask for step in steps.values())
    assert any(step.match for step in steps.values()) and any(step.capture for step in steps.values())


@pytest.mark.parametrize(("depth", "ran", "skipped"), [("short", "3b", "3a"), ("thorough", "3a", "3b")])
async def test_the_example_runs(play: Play, depth: str, ran: str, skipped: str) -> None:
    given({"x.playbook.md": playbook("Example")})
    replies = ['Hm.\n{"difficulty": "hard"}', "the answer"]
    played = await play("x.playbook.md", replies, {"question": "Why?"}, answers={"2": depth})
    assert played.ended.status is Status.COMPLETED
    view = await played.view()
    assert view.named["difficulty"] == "hard" and view.output == "the answer"
    states = {step.label: step.status for step in view.replay.progress.steps.values()}
    assert states[ran] == "completed" and states[skipped] == "skipped"


def test_nothing_is_overwritten_unless_asked(invoke: Invoke, workspace: Path) -> None:
    file = workspace / "mine.playbook.md"
    file.write_text("mine")
    result = invoke(command, "playbook", "mine")
    assert result.exit_code == 2 and "--force" in result.stderr
    assert file.read_text() == "mine"
    assert invoke(command, "playbook", "mine", "--force").exit_code == 0
    assert file.read_text().startswith("# Mine\n")


def test_to_stdout_writes_nothing(invoke: Invoke, workspace: Path) -> None:
    before = sorted(workspace.iterdir())
    assert invoke(command, "playbook", "x", "--stdout").stdout == playbook("X")
    assert sorted(workspace.iterdir()) == before


@pytest.mark.parametrize(
    "name",
    ["../x", "a/../../x", "/tmp/x", "..\\x", ".hidden", ".playbook.md", "a\nb", "a/-x", "nul", "x:y", "link/x", ""],
)
def test_names_that_lead_elsewhere_are_refused(invoke: Invoke, workspace: Path, name: str) -> None:
    (workspace / "link").symlink_to(workspace.parent)
    before = sorted(workspace.parent.rglob("*"))
    assert invoke(command, "playbook", name).exit_code == 2
    assert sorted(workspace.parent.rglob("*")) == before


@pytest.mark.parametrize("title", ["", "  ", "a\x1b[2J"])
def test_wrong_titles(invoke: Invoke, title: str) -> None:
    assert invoke(command, "playbook", "x", "--title", title).exit_code == 2


def test_unknown_kinds_name_the_known_ones(invoke: Invoke) -> None:
    result = invoke(command, "novel", "x")
    assert result.exit_code == 2 and "playbook" in result.stderr
