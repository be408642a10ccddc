"""Hooks of a directive as a person sees them: as lines, in questions, and when one of them has ended the run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Said, json_of
from tests.cli.directive_project import call, put_script, sign_all, write_directives
from tests.directives import directive
from tests.given import given

from quire.cli import main

CONTROL = "rye/agent/threads/internal/control"
FILE = ".ai/directives/project/hooked.md"
SCRIPTED = ("--script", "replies.json")
HOOKED = directive(
    "hooked",
    "",
    '<process><step name="one">Do it.</step></process>',
    category="project",
    meta="""<hooks>%s</hooks>
<permissions><execute><tool>rye.file-system.*</tool><tool>rye.agent.threads.*</tool></execute>
  <acknowledge risk="elevated">Starts a helper</acknowledge></permissions>""",
    more="""<inputs><input name="how" default="well">How</input></inputs>
<outputs><output name="x">x</output></outputs>""",
)


def hook(name: str, event: str, how: str, **parameters: str) -> str:
    """A hook that writes a file, or decides where it has an `action`, when the input says so."""
    item = CONTROL if "action" in parameters else "rye/file-system/write"
    given = "".join(f'<param name="{key}">{value}</param>' for key, value in parameters.items())
    condition = f'<condition path="inputs.how" op="eq" value="{how}" />' if how else ""
    action = f'<action primary="execute" item_type="tool" item_id="{item}">{given}</action>'
    return f'<hook id="{name}" event="{event}">{condition}{action}</hook>'


HOOKS = (
    hook("begun", "thread_started", "", path="begun.txt", content="b"),
    hook("sure", "thread_started", "asking", action="escalate", message="really?"),
    hook("never", "thread_started", "never", action="fail"),
    hook("far", "after_step", "far", action="fail", message="too far"),
    hook("strict", "error", "strictly", action="abort"),
    hook("done", "after_complete", "", path="done.txt", content="d"),
)


def write_hooked(workspace: Path) -> None:
    """Write the directive with its hooks, and a script for it."""
    (workspace / FILE).write_text(HOOKED % "".join(HOOKS))
    sign_all(workspace)
    put_script(
        workspace,
        {"tool_calls": [call("rye_file_system_read", path="missing.txt")]},
        {"tool_calls": [call("directive_return", x="1")]},
    )


@pytest.fixture(autouse=True)
def project(workspace: Path) -> Path:
    write_directives(workspace)
    write_hooked(workspace)
    return workspace


def run(how: str, *more: str) -> int:
    return main(["run", "hooked", "-i", f"how={how}", *SCRIPTED, *more])


def test_hooks_before_the_first_turn_and_after_the_last_are_lines(said: Said) -> None:
    assert run("well") == 0
    lines = [line.partition(" (")[0] for line in said()[1].splitlines()[1:]]
    assert lines == [
        'hook begun on thread_started: rye/file-system/write path="begun.txt" content="b"',
        "[turn 1]",
        '  > rye/file-system/read path="missing.txt"',
        "  ! rye/file-system/read failed: missing.txt: no such file or directory",
        "[turn 2]",
        '  > directive_return x="1"',
        'hook done on after_complete: rye/file-system/write path="done.txt" content="d"',
    ]


def test_hooks_of_a_child_are_indented_with_it(said: Said, project: Path) -> None:
    put_script(
        project,
        {"tool_calls": [call("rye_agent_threads_thread_directive", directive_id="project/hooked", inputs={})]},
        {"tool_calls": [call("directive_return", x="inner")]},
        {"tool_calls": [call("directive_return", x="outer")]},
    )
    assert run("far") == 3, "the hook of the parent, after the turn that started the child"
    lines = [line.partition(" (")[0] for line in said()[1].splitlines()]
    inner = lines.index("  [turn 1 › project/hooked turn 1]")
    assert lines[inner - 1] == '  hook begun on thread_started: rye/file-system/write path="begun.txt" content="b"'
    assert lines[inner + 2] == '  hook done on after_complete: rye/file-system/write path="done.txt" content="d"'
    assert any(line.startswith("  hook far on after_step: ") for line in lines)


@pytest.mark.parametrize(("answer", "code"), [("yes", 0), ("no", 3)])
def test_a_question_before_the_first_turn_is_at_the_start(said: Said, answer: str, code: int) -> None:
    assert run("asking") == 4
    err = said()[1]
    assert "the start (project/hooked) asks: project/hooked waits: really?" in err and "turn 0" not in err
    (question,) = json_of(said, "inbox")
    assert question["step"] == "start"
    assert main(["runs", "last"]) == 0
    assert "awaiting input at the start\n" in said()[0]
    assert main(["answer", "last", "start", answer, "-q"]) == code


def test_it_can_be_answered_beforehand(said: Said) -> None:
    assert run("asking", "-q", "--answer", "start=yes") == 0
    said()
    assert run("asking", "-q", "--break", "start") == 2
    assert "start is not a step of a directive" in said()[1]


@pytest.mark.parametrize(
    ("how", "failed", "named", "command"),
    [
        ("far", "turn 1: too far", "far (on after_step)", "--from 'turn 1' [--set NAME=VALUE], to do that again"),
        ("strictly", "turn 1: missing.txt: no such file", "strict (on error)", "--from 'turn 1' [--set NAME=VALUE]"),
        ("never", "the start: a hook kept", "never (on thread_started)", "--from 'turn 1' --set NAME=VALUE, to begin"),
    ],
)
def test_a_run_that_a_hook_ended_says_what_helps(said: Said, how: str, failed: str, named: str, command: str) -> None:
    """And that is tried: a resume fails again, a fork with another input does not."""
    assert run(how, "-q") == 3
    first, second, third, last = said()[1].splitlines()
    assert first.startswith(f"failed at {failed}")
    assert second == f"the hook {named} ended it, and would again after a resume; to continue:"
    assert third.startswith("  quire runs fork ") and command in third
    assert last == f"  quire run {FILE}, once the hook or what it looks at (inputs, limits) is changed"
    assert main(["runs", "last"]) == 0
    assert said()[1].splitlines() == [second, third, last]
    assert main(["resume", "last", "-q"]) == 3
    assert said()[1].splitlines() == [first, second, third, last]
    run_id = third.split()[3]
    assert main(["fork", run_id, "--from", "turn 1", "--set", "how=well", "-q"]) == 0
    assert json.loads(said()[0]) == {"x": "1"}


def test_a_playbook_whose_directive_a_hook_ended_is_forked_from_its_step(said: Said, project: Path) -> None:
    text = '# P\n\n## STEP 1: A\n\nGo.\n\n## STEP 2: B\n\n@tool(quire, "project/hooked", {"how": "far"})\n'
    (project / "p.playbook.md").write_text(text)
    put_script(project, "gone", {"tool_calls": [call("rye_file_system_read", path="missing.txt")]})
    assert main(["run", "p.playbook.md", "-q", *SCRIPTED]) == 3
    err = said()[1]
    assert "the hook far (on after_step) ended it" in err and " --from 2 " in err and "quire resume" not in err


def test_a_directive_that_decides_for_a_hook_may_decide_otherwise(said: Said, project: Path) -> None:
    judge = HOOKED.replace('"hooked"', '"judge"').replace('name="x"', 'name="action"') % ""
    (project / ".ai" / "directives" / "project" / "judge.md").write_text(judge)
    asks = (
        '<hook id="asks" event="after_step"><action primary="execute" item_type="directive" item_id="project/judge" />'
    )
    allowed = "<directive>project/judge</directive></execute>"
    (project / FILE).write_text((HOOKED % f"{asks}</hook>").replace("</execute>", allowed))
    sign_all(project)
    work = {"tool_calls": [call("rye_file_system_read", path="missing.txt")]}
    put_script(project, work, {"tool_calls": [call("directive_return", action="fail")]})
    assert run("well", "-q") == 3
    assert "to try again from there: quire resume" in said()[1]


def test_without_inputs_and_turns_only_a_change_helps(said: Said, project: Path) -> None:
    text = HOOKED % hook("never", "thread_started", "", action="fail")
    start, end = text.index("  <inputs>"), text.index("  <outputs>")
    (project / FILE).write_text(text[:start] + text[end:])
    sign_all(project)
    assert main(["run", "hooked", "-q", *SCRIPTED]) == 3
    assert said()[1].splitlines()[1:] == [
        "the hook never (on thread_started) ended it, and would again after a resume; to continue:",
        f"  quire run {FILE}, once the hook or what it looks at (inputs, limits) is changed",
    ]


def test_what_a_hook_was_told_of_a_limit_stays_when_the_limit_changes(said: Said, project: Path) -> None:
    """Else the hook would ask for something else on resume than is recorded, and the run would be lost."""
    hooks = hook("note", "limit", "", path="max.txt", content="${limit.current_value} of ${current_max}")
    hooks += hook("more", "limit", "", action="escalate", message="more?")
    (project / FILE).write_text((HOOKED % hooks).replace("<hooks>", '<limits turns="1" /><hooks>'))
    sign_all(project)
    writing = {"tool_calls": [call("rye_file_system_write", path="one.txt", content="1")]}
    put_script(project, writing, writing, {"tool_calls": [call("directive_return", x="done")]})
    assert main(["run", "hooked", "-q", *SCRIPTED]) == 4
    assert main(["answer", "last", "2", "-q"]) == 4
    assert main(["resume", "last", "-q", "--limit", "turns=9"]) == 4
    assert "A higher limit for turns" in said()[1]
    assert (project / "max.txt").read_text() == "2 of 2"
    assert main(["answer", "last", "3", "-q"]) == 0
    assert json.loads(said()[0]) == {"x": "done"}


JUDGING = '<hook id="judge" event="%s"><action primary="execute" item_type="directive" item_id="%s" /></hook>'


@pytest.mark.parametrize(
    ("event", "item_id", "modified", "status", "words"),
    [
        (
            "directive_return",
            "project/notes/nobody",
            False,
            2,
            "hook judge: unknown directive project/notes/nobody",
        ),
        ("directive_return", "project/notes/take_note", True, 6, "hook judge: "),
        ("limit", "project/notes/nobody", False, 0, "hook judge: unknown directive project/notes/nobody"),
        ("limit", "project/notes/take_note", True, 0, "hook judge: "),
        ("directive_return", "${inputs.how}", False, 3, "the outputs are refused"),
    ],
)
def test_the_items_of_hooks_are_looked_at_before_the_model_is_asked(
    project: Path, said: Said, event: str, item_id: str, modified: bool, status: int, words: str
) -> None:
    """G5: a checker that is missing, or was changed since it was signed, ends a run before it has begun."""
    (project / FILE).write_text(HOOKED % (JUDGING % (event, item_id)))
    sign_all(project)
    if modified:
        target = project / ".ai/directives/project/notes/take_note.md"
        target.write_text(target.read_text().replace("Write {input:text}", "Burn {input:text}"))
    assert run("well") == status
    told = said()[1]
    assert words in told and ("[turn 1]" in told) == (status not in (2, 6))
    assert main(["check", FILE]) == (1 if status in (2, 6) else 0)


def test_sign_says_that_everything_was_not_acknowledged(project: Path, said: Said) -> None:
    """S7"""
    text = HOOKED % ""
    start, end = text.index("<permissions>"), text.index("</permissions>")
    (project / FILE).write_text(f"{text[:start]}<permissions>*{text[end:]}")
    assert main(["sign", FILE]) == 0
    assert "rye.* is unrestricted" in said()[1]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("hooks:\n  - {id: judge, event: directive_return, action: {item_ide: project/judge}}\n", 2),
        ("hooks:\n  - {id: judge, event: directive_retrun, action: {item_id: project/judge}}\n", 2),
        ("hooks: [\n", 2),
        ("hooks:\n  - {id: log, event: after_step, action: {item_ide: project/log}}\n", 0),
    ],
    ids=["its action is misspelled", "its event is misspelled", "the file is broken", "of another event"],
)
def test_a_project_hook_that_may_judge_outputs_is_not_left_out(project: Path, said: Said, text: str, code: int) -> None:
    """G5: a gate that cannot be read lets nothing pass."""
    given({".ai/config/agent/hooks.yaml": text}, project)
    assert main(["trust", "workspace", "--yes"]) == 0
    said()
    assert main(["run", "hooked", *SCRIPTED]) == code
    assert ("a hook that may judge outputs cannot be read" in said()[1]) is (code == 2)


def test_each_thread_of_a_hook_stands_once_in_the_transcript(said: Said, project: Path) -> None:
    """seeds section 6: the threads of a hook with two actions."""
    note = '<action primary="execute" item_type="directive" item_id="project/notes/take_note">{}</action>'
    two = "".join(note.format(f'<param name="text">{word}</param>') for word in ("a", "b"))
    text = HOOKED % f'<hook id="two" event="after_step">{two}</hook>'
    granted = "<tool>rye.file-system.*</tool><directive>project/notes/*</directive>"
    (project / FILE).write_text(text.replace("<tool>rye.file-system.*</tool>", granted))
    sign_all(project)
    written = {"tool_calls": [call("rye_file_system_write", path="a", content="b")]}
    noted = {"tool_calls": [call("directive_return", file="a")]}
    put_script(project, written, noted, noted, {"tool_calls": [call("directive_return", x="1")]})
    assert main(["run", "hooked", "-q", *SCRIPTED]) == 0
    said()
    assert main(["runs", "last", "--transcript"]) == 0
    assert said()[0].count("#### thread project/notes/take_note") == 2
