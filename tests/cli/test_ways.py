"""A step of a callee is named by the way to it, `2 › 1`, wherever a person reads or writes of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import json_of
from tests.given import given

from quire.cli import main

OUTER = "pipeline: outer\nsteps:\n- agent: {prompt: outer}\n- call: {pipeline: inner}\n"
INNER = """
pipeline: inner
steps:
- agent: {prompt: inner}
- tool: {name: ask, args: {type: confirm, prompt: "Ship it?"}}
- call: {pipeline: deep}
"""
DEEP = 'pipeline: deep\nsteps:\n- tool: {name: ask, args: {prompt: "Why?"}}\n'
CALLED = '# Called\n\n## STEP 5: Write\n\nWrite.\n\n## STEP 7: Ask\n\n@elicit(confirm, "Go on?")\n'
CALLER = "# Caller\n\n## STEP 1: Begin\n\nBegin.\n\n## STEP 4: Call\n\n@tool(quire, called)\n"


@pytest.fixture
def files(workspace: Path) -> Path:
    Path("pipelines").mkdir()
    for name, text in {"outer": OUTER, "inner": INNER, "deep": DEEP}.items():
        Path(f"pipelines/{name}.yaml").write_text(text)
    given({"called.playbook.md": CALLED, "caller.playbook.md": CALLER})
    script = [{"step": "2 > 1", "reply": "by way"}, {"step": "4>5", "reply": "page"}, {"default": "else"}]
    given({"outer.json": [script[0], script[2]], "caller.json": [script[1], script[2]]})
    return workspace


def start(*arguments: str, document: str = "outer") -> int:
    return main(["run", document, "--script", f"{document.partition('.')[0]}.json", *arguments])


def test_questions_say_the_way_and_are_answered_by_it(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert start() == 4
    assert "step 2 › 2 (ask) asks: Ship it?" in capsys.readouterr().err
    assert main(["inbox"]) == 0
    assert "step 2 › 2 (confirm): Ship it?" in capsys.readouterr().out
    (asked,) = json_of(capsys, "inbox")
    assert (asked["step"], asked["way"], asked["path"]) == ("2", "2 › 2", "2/call/2/ask")
    assert main(["answer", "last", "2>9", "yes"]) == 2
    assert main(["answer", "last", "2>2", "yes"]) == 4
    assert "step 2 › 3 › 1 (ask) asks: Why?" in capsys.readouterr().err
    assert main(["answer", "last", "2 › 3 › 1", "because", "-q"]) == 0


def test_answers_beforehand_and_scripts_name_ways(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert start("--answer", "2>2=yes", "--answer", "2 › 3 > 1=so", "-q") == 0
    assert capsys.readouterr().out == "so\n"
    assert main(["runs", "why", "last", "2>1"]) == 0
    page = capsys.readouterr().out
    assert page.startswith("step 2 › 1\n") and "by way" in page
    found = json_of(capsys, "runs", "why", "last", "2>1")
    assert (found["step"], found["way"], found["path"]) == ("1", "2 › 1", "2/call/1")


def test_a_run_is_listed_and_followed_where_it_stands(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert start("-q") == 4
    capsys.readouterr()
    assert main(["runs"]) == 0
    assert "2 › 2" in capsys.readouterr().out
    assert main(["runs", "last"]) == 0
    assert "awaiting input at step 2 › 2" in capsys.readouterr().out
    found = json_of(capsys, "runs", "last")
    assert (found["step"], found["way"]) == ("2", "2 › 2")
    assert main(["runs", "last", "--follow"]) == 0
    assert "step 2 › 1: model ok" in capsys.readouterr().out


def events(text: str, type: str) -> list[dict[str, Any]]:
    return [one for one in map(json.loads, text.splitlines()) if one["type"] == type]


def test_events_keep_their_step_and_add_the_way(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert start("--json") == 4
    told = capsys.readouterr().out
    effects = [(one["step"], one.get("way")) for one in events(told, "effect")]
    assert effects == [("1", None), ("1", "2 › 1")]


def test_a_failure_says_the_way(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert start("--unattended", "--json") == 3
    told = capsys.readouterr()
    (result,) = events(told.out, "result")
    assert (result["error"]["step"], result["error"]["way"]) == ("2", "2 › 2")
    assert "failed at step 2 › 2" in told.err and "--answer '2>2'=VALUE" in told.err


def test_a_called_pipeline_stops_at_a_way(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert start("--break", "2>1", "--answer", "2>2=yes", "--answer", "2>3>1=so") == 4
    assert "paused after step 2 › 1" in capsys.readouterr().err
    assert main(["resume", "last", "-q"]) == 0
    assert capsys.readouterr().out == "so\n"


def test_a_label_alone_does_not_stop_a_called_pipeline(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert start("--break", "1", "--answer", "2>2=yes", "--answer", "2>3>1=so", "-q") == 4
    assert main(["resume", "last", "-q"]) == 0


def test_a_called_playbook_stops_and_asks_at_a_way(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert start("--break", "4>5", document="caller.playbook.md") == 4
    assert "paused after step 4 › 5" in capsys.readouterr().err
    assert main(["resume", "last", "--answer", "4>7=no", "-q"]) == 0
    assert json.loads(capsys.readouterr().out)["output"] == "no"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--break", "2>9"], "breakpoint 2>9: unknown step 2 › 9: the steps are 2 › 1, 2 › 2, 2 › 3"),
        (["--answer", "2>2=maybe"], "answer 2>2: answer yes or no"),
        (["--answer", "1>1=x"], "answer 1>1: step 1 calls no document, so step 1 › 1 does not exist"),
    ],
)
def test_a_way_to_nowhere_is_found_before_the_run(
    files: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], problem: str
) -> None:
    assert start(*arguments) == 2
    assert problem in capsys.readouterr().err
    assert json_of(capsys, "runs") == []


def test_a_script_for_a_step_that_is_not_there(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("outer.json").write_text(json.dumps([{"step": "2>8", "reply": "x"}, {"default": "else"}]))
    assert start() == 2
    assert "script, step 2 › 8: unknown step 2 › 8" in capsys.readouterr().err


def test_values_are_set_where_a_callee_stands(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In a callee the names are its own; in a called playbook every value is a text."""
    Path("pipelines/count.yaml").write_text(
        'pipeline: count\nsteps:\n- transform: {value: "1", output: n}\n- transform: {value: "n + 1"}\n'
    )
    Path("say.playbook.md").write_text(
        "# Say\n\n## STEP 1: Think\n\nThink.\n\n@output(word)\n\n## STEP 2: Say\n\n"
        '@tool(quire, count)\n\n## STEP 3: Tell\n\n@elicit(input, "{{word}}?", default:"{{word}}")\n'
    )
    Path("p.yaml").write_text("pipeline: p\nsteps:\n- call: {pipeline: count}\n- call: {pipeline: say}\n")
    Path("p.json").write_text('[{"default": "else"}]')
    assert start("--break", "1>1", "--break", "2>1", "--unattended", "-q", document="p.yaml") == 4
    assert main(["resume", "last", "--set", "n=41", "-q"]) == 4
    assert main(["resume", "last", "--set", "word=5", "-q"]) == 0
    assert json.loads(capsys.readouterr().out)["output"] == "5"
    found = json_of(capsys, "runs", "last")
    assert [step["output"] for step in found["steps"] if step["path"] == "1"] == ["42"]
