"""A directive as a person sees it on a real terminal: asked for inputs, its turns, its questions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.directive_project import LEAF, LEAF_FILE, SCRIPT, call, put_script, sign_all, write_directives
from tests.cli.test_directive_hooks import write_hooked
from tests.cli.test_terminal import Quire, Screen
from tests.given import given

from quire.cli import main


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
        "  ✓ turn 2 › project/notes/take_note turn 1",
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


def unsigned(workspace: Path, permissions: str) -> None:
    """One directive that nobody signed, in a workspace that only warns of it, which the user has agreed to."""
    (workspace / "quire.toml").write_text('[trust]\nmode = "warn"\n')
    assert main(["trust", "workspace", "--yes"]) == 0
    file = workspace / ".ai" / "directives" / "project" / "build.md"
    file.write_text(
        '# Build\n\n```xml\n<directive name="build" version="1.0.0">\n  <metadata>\n    <description>B</description>'
        '\n    <category>project</category>\n    <author>team</author>\n    <model tier="low" />\n    <permissions>'
        f'{permissions}</permissions>\n  </metadata>\n  <outputs><output name="x">x</output></outputs>\n</directive>\n'
        "```\n\nBuild it.\n"
    )
    put_script(workspace, {"tool_calls": [call("directive_return", x="built")]})


SHELL = "<execute><tool>rye.bash</tool><tool>rye.web.*</tool><tool>rye.file-system.*</tool></execute>"
WHY = '<acknowledge risk="elevated">Runs the\n    build.</acknowledge>'
RUN_IT = ("run", "build", "--script", "replies.json")


@pytest.mark.parametrize(("keys", "code"), [("\n", 6), ("n\n", 6), ("y\n", 0), ("\x04", 6), ("\x03", 130)])
def test_what_is_elevated_in_an_unsigned_directive_is_asked_for(
    quire: Quire, workspace: Path, keys: str, code: int
) -> None:
    unsigned(workspace, SHELL + WHY)
    screen = quire(*RUN_IT)
    shown = " ".join(screen.wait_for("Allow that, for this run? yes or no [no]: ").split())
    for line in (
        "project/build is not signed by anybody you trust, and asks for:",
        "rye.execute.tool.rye.bash (elevated: reaches out of the workspace, or starts programs)",
        "rye.execute.tool.rye.web.* (elevated: ",
        "why, in the words of its author: Runs the build.",
    ):
        assert line in shown, line
    assert "file-system" not in shown
    screen.press(keys)
    ended, rest = screen.end()
    assert ended == code
    if code == 6:
        line = " ".join(rest.split())
        assert "allow it with --allow rye.execute.tool.rye.bash --allow rye.execute.tool.rye.web.*" in line
    assert ('"x": "built"' in rest) is (code == 0)


def test_another_word_is_asked_again(quire: Quire, workspace: Path) -> None:
    unsigned(workspace, SHELL)
    screen = quire(*RUN_IT)
    screen.wait_for("yes or no [no]: ")
    screen.press("maybe\n")
    screen.wait_for("answer yes or no", "yes or no [no]: ")
    screen.press("yes\n")
    assert screen.end()[0] == 0


def test_what_was_allowed_is_pinned_and_not_asked_for_again(quire: Quire, workspace: Path) -> None:
    unsigned(workspace, SHELL)
    looks = {"tool_calls": [call("rye_file_system_ls", path=".")]}
    put_script(workspace, looks, {"tool_calls": [call("directive_return", x="built")]})
    screen = quire(*RUN_IT, "--break", "turn 1", "--allow", "rye.execute.tool.rye.web.*")
    assert "rye.web" not in screen.wait_for("yes or no [no]: "), "what --allow says is not asked for"
    screen.press("y\n")
    code, rest = screen.end()
    assert code == 4 and "paused after turn 1" in rest
    code, rest = quire("resume", "last").end()
    assert code == 0 and "Allow that" not in rest


@pytest.mark.parametrize("more", [["--unattended"], ["--json"], ["--detach"]])
def test_where_nobody_is_to_be_asked_it_is_refused(quire: Quire, workspace: Path, more: list[str]) -> None:
    unsigned(workspace, SHELL)
    code, rest = quire(*RUN_IT, *more).end()
    assert code == 6 and "Allow that" not in rest and "allow it with --allow" in rest


def test_each_directive_that_is_called_is_asked_about_by_itself(quire: Quire, workspace: Path) -> None:
    unsigned(workspace, SHELL)
    other = workspace / ".ai" / "directives" / "project" / "build.md"
    second = other.read_text().replace('"build"', '"ship"').replace("rye.web.*", "mcp/port/*")
    (other.parent / "ship.md").write_text(second)
    steps = "".join(
        f'## STEP {n}: S\n\n@tool(quire, "project/{one}", {{}})\n\n' for n, one in enumerate(("build", "ship"), 1)
    )
    (workspace / "both.playbook.md").write_text(f"# Both\n\n{steps}")
    returns = {"tool_calls": [call("directive_return", x="built")]}
    put_script(workspace, returns, returns)
    screen = quire("run", "both.playbook.md", "--script", "replies.json")
    assert "project/build is not signed" in screen.wait_for("yes or no [no]: ")
    screen.press("y\n")
    shown = screen.wait_for("project/ship is not signed", "yes or no [no]: ")
    assert "mcp.port.*" in shown and "rye.bash" not in shown, "the shell is allowed to the whole run already"
    screen.press("y\n")
    assert screen.end()[0] == 0


def test_a_signed_directive_is_not_asked_about_whatever_the_hooks_of_the_project_are_like(
    quire: Quire, workspace: Path
) -> None:
    unsigned(workspace, SHELL)
    sign_all(workspace)
    given({".ai/config/agent/hooks.yaml": "hooks:\n  - {id: a, event: after_step}\n"}, workspace)
    assert main(["trust", "workspace", "--yes"]) == 0
    code, rest = quire(*RUN_IT).end()
    assert code == 0 and "the hook has no action" in rest and "Allow that" not in rest


HOOK = (
    '<hooks><hook id="sure" event="thread_started"><action primary="execute" item_type="tool" '
    'item_id="rye/agent/threads/internal/control"><param name="action">{action}</param></action></hook></hooks>'
    "<permissions>"
)


def test_a_hook_that_asks_before_the_first_turn(quire: Quire, workspace: Path) -> None:
    (workspace / LEAF_FILE).write_text(LEAF.replace("<permissions>", HOOK.format(action="escalate")))
    sign_all(workspace)
    screen = quire("run", "deploy_staging", "-i", "target=eu", "--script", "replies.json")
    shown = screen.wait_for("yes or no [no]: ")
    assert "the start (project/deploy/deploy_staging) asks:" in shown and "turn 0" not in shown
    screen.press("yes\n")
    assert screen.end()[0] == 0


def test_a_hook_that_ends_the_run_before_the_first_turn(quire: Quire, workspace: Path) -> None:
    (workspace / LEAF_FILE).write_text(LEAF.replace("<permissions>", HOOK.format(action="fail")))
    sign_all(workspace)
    code, rest = quire("run", "deploy_staging", "-i", "target=eu", "--script", "replies.json").end()
    assert code == 3
    assert "the hook sure (on thread_started) ended it, and would again after a resume; to continue:" in " ".join(
        rest.split()
    )
    assert "of 0 steps" not in rest and "quire resume" not in rest


def test_a_run_that_was_left_at_a_question_still_knows_its_file(quire: Quire, workspace: Path) -> None:
    asks = {"tool_calls": [call("ask", prompt="Sure?", type="confirm")]}
    put_script(workspace, asks, {"tool_calls": [call("directive_return", path="x")]})
    out = ("--out", "result.json")
    screen = quire("run", "deploy_staging", "-i", "target=eu", "--script", "replies.json", *out)
    screen.wait_for("yes or no: ")
    screen.press("\x03")
    assert screen.end()[0] == 130
    screen = quire("resume", "last")
    screen.wait_for("yes or no: ")
    screen.press("yes\n")
    code, rest = screen.end()
    assert code == 0 and "wrote result.json" in rest
    assert json.loads((workspace / "result.json").read_text()) == {"path": "x"}


@pytest.mark.parametrize(
    ("how", "code", "lines"),
    [
        ("well", 0, ["↳ hook begun on thread_started", "✓ turn 1", "✓ turn 2", "↳ hook done on after_complete"]),
        ("never", 3, ["↳ hook begun on thread_started", "↳ hook never on thread_started", "failed at the start"]),
        ("far", 3, ["↳ hook begun on thread_started", "turn 1", "  ↳ hook far on after_step"]),
    ],
)
def test_hooks_are_in_the_picture(quire: Quire, workspace: Path, how: str, code: int, lines: list[str]) -> None:
    write_hooked(workspace)
    screen = quire("run", "hooked", "-i", f"how={how}", "--script", "replies.json")
    ended, rest = screen.end()
    assert ended == code
    final = rest[rest.rindex(lines[0]) :]
    places = [final.find(line) for line in lines]
    assert -1 not in places and places == sorted(places), final
