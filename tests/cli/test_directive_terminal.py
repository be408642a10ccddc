"""A directive as a person sees it on a real terminal: asked for inputs, its turns, its questions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.directive_project import SCRIPT, call, put_script, write_directives
from tests.cli.test_terminal import Quire, Screen


@pytest.fixture
def quire(workspace: Path) -> Iterator[Quire]:
    write_directives(workspace)
    screens: list[Screen] = []

    def start(*arguments: str, size: tuple[int, int] = (30, 120), **env: str) -> Screen:
        screens.append(Screen(list(arguments), env, size))
        return screens[-1]

    yield start
    for screen in screens:
        screen.close()


def test_inputs_are_asked_for_and_turns_are_shown(quire: Quire, workspace: Path) -> None:
    put_script(workspace, *SCRIPT[:4], SCRIPT[4] | {"delay_ms": 400})
    screen = quire("run", "deploy_staging", "--script", "replies.json")
    assert "target (string): Where to" in screen.wait_for("> ")
    screen.press("eu\n")
    screen.wait_for("turns 2 of 6 · tokens 120 of 20,000")
    code, rest = screen.end()
    assert code == 0
    for line in (
        "✓ turn 1 Writing the report.",
        "✗ rye/web/fetch",
        "  ✓ project/notes/take_note turn 1",
        '✓ directive_return path="report.txt"',
        "turns 3 of 6",
        "Deployed to eu.",
    ):
        assert line in rest, line
    assert "\x1b[31m" in screen.raw


def test_a_question_of_a_thread_is_answered_here(quire: Quire, workspace: Path) -> None:
    put_script(
        workspace,
        {"tool_calls": [call("ask", prompt="Which colour?", type="select", options=["red", "blue"])]},
        {"tool_calls": [call("directive_return", path="x")]},
    )
    screen = quire("run", "deploy_staging", "-i", "target=eu", "--script", "replies.json")
    assert "turn 1 (ask) asks: Which colour?" in screen.wait_for("a number or an option: ")
    screen.press("2\n")
    code, rest = screen.end()
    assert code == 0
    assert '→ "blue"' in rest
    assert json.loads(rest[rest.rindex("{\r\n") :]) == {"path": "x"}


def test_a_question_that_is_left_waits_in_the_inbox(quire: Quire, workspace: Path) -> None:
    put_script(
        workspace,
        {"tool_calls": [call("ask", prompt="Sure?", type="confirm")]},
        {"tool_calls": [call("directive_return", path="x")]},
    )
    screen = quire("run", "deploy_staging", "-i", "target=eu", "--script", "replies.json")
    screen.wait_for("yes or no: ")
    screen.press("\x03")
    code, rest = screen.end()
    assert code == 130
    assert "waiting for an answer: quire answer" in rest
    code, rest = quire("answer", "last", "yes").end()
    assert code == 0 and "Deployed to eu." in rest
