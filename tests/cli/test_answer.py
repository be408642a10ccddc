"""`quire answer`: an answer is checked, stored, and the run goes on."""

from __future__ import annotations

import asyncio
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.warm import run_quire

from quire.cli import main
from quire.runs.runtime import Runtime

ASKING = """# Ask

## STEP 1: Choose

@elicit(select, "Which way?", "ship it", "rework", "3")

## STEP 2: Name

@elicit(input, "What is it called?")

## STEP 3: Write

Write {{__elicit_step_2}}: {{__elicit_step_1}}.
"""


@pytest.fixture
def waiting(workspace: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """A run that asks at its first step."""
    (workspace / "ask.md").write_text(ASKING)
    (workspace / "replies.json").write_text(json.dumps([{"contains": "Write", "reply": "written"}]))
    assert main(["run", "ask.md", "--json", "--script", "replies.json"]) == 4
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (result["status"], result["steps"]["1"]) == ("awaiting_input", "awaiting_input")
    return str(result["run"])


def recorded(run: str) -> dict[str, object]:
    async def read() -> dict[str, object]:
        runtime = Runtime.open()
        try:
            return {record.path: record.value for record in await runtime.store.effects(run)}
        finally:
            await runtime.close()

    return asyncio.run(read())


@pytest.mark.parametrize(
    ("words", "kept"),
    [(["rework"], "rework"), (["2"], "rework"), (["1", "ship it"], "ship it"), (["3"], "3"), ([" rework "], "rework")],
)
def test_an_answer_is_an_option_or_its_number(
    waiting: str, capsys: pytest.CaptureFixture[str], words: list[str], kept: str
) -> None:
    assert main(["answer", waiting, *words, "-q"]) == 4
    assert capsys.readouterr().err.startswith("step 2 (Name) asks: What is it called?")
    assert recorded(waiting) == {"1/ask": kept}


def test_the_run_goes_on_to_its_end(
    waiting: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["answer", "last", "1", "-q"]) == 4
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("a näme\n".encode())))
    capsys.readouterr()
    assert main(["answer", waiting[:8], "2", "-", "-q"]) == 0
    assert capsys.readouterr() == ("written\n", "")
    assert recorded(waiting)["2/ask"] == "a näme"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["maybe"], "answer one of: ship it | rework | 3"),
        (["9"], "answer one of: ship it | rework | 3"),
        (["2", "x"], "asks nothing at step 2"),
        (["a", "b", "c"], "too many values"),
        ([], "VALUE is missing"),
    ],
)
def test_a_wrong_answer_changes_nothing(
    waiting: str, capsys: pytest.CaptureFixture[str], words: list[str], problem: str
) -> None:
    assert main(["answer", waiting, *words]) == 2
    out, err = capsys.readouterr()
    assert (out, len(err.splitlines())) == ("", 1) and problem in err
    assert recorded(waiting) == {}


def test_without_a_terminal_the_run_is_named(waiting: str, capsys: pytest.CaptureFixture[str]) -> None:
    """No script agrees to something that it does not name."""
    for verb in (["answer", "rework"], ["resume"]):
        assert main([*verb, "-q"]) == 2
        out, err = capsys.readouterr()
        said = f"quire: RUN is missing: without a terminal, name the run (quire {verb[0]} {waiting} …)\n"
        assert (out, err) == ("", said)
    assert recorded(waiting) == {}


def test_the_only_run_that_asks_needs_no_name_on_a_terminal(
    waiting: str, at_a_terminal: None, capsys: pytest.CaptureFixture[str]
) -> None:
    """newcomer, small things: several are listed, and an id alone is not an answer."""
    assert main(["answer", "rework", "-q"]) == 4
    choose = "step 1 (Choose) asks: Which way?\n  1. ship it\n  2. rework\n  3. 3\n"
    assert capsys.readouterr().err.startswith(f"run {waiting}: Ask, waiting for an answer\n{choose}")
    assert recorded(waiting) == {"1/ask": "rework"}
    assert main(["run", "ask.md", "-q", "--script", "replies.json"]) == 4
    capsys.readouterr()
    assert main(["answer", "rework"]) == 2
    assert "several runs could be meant to answer, say which: " in capsys.readouterr().err
    assert main(["answer", "last"]) == 2
    assert "VALUE is missing" in capsys.readouterr().err


def test_an_answer_may_name_another_model(waiting: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("other.json").write_text(json.dumps([{"default": "by another"}]))
    assert main(["answer", waiting, "rework", "-q"]) == 4
    capsys.readouterr()
    assert main(["answer", waiting, "a name", "-q", "--model", f"script:{Path('other.json').resolve()}"]) == 0
    assert capsys.readouterr().out == "by another\n"


def test_hold_only_stores(waiting: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["answer", waiting, "rework", "--hold"]) == 0
    assert capsys.readouterr().err == f"stored; to continue: quire resume {waiting}\n"
    assert recorded(waiting) == {}
    assert main(["runs", waiting]) == 0
    assert capsys.readouterr().err == f"answered: quire resume {waiting} continues it\n"
    assert main(["answer", waiting, "ship it"]) == 2
    assert (
        capsys.readouterr().err
        == f"quire: run {waiting} has its answer already: `quire resume {waiting}` continues it\n"
    )
    assert main(["runs"]) == 0
    assert f"{waiting}  answered  Ask" in capsys.readouterr().out
    assert main(["runs", waiting]) == 0
    assert "status    answered at step 1\n" in capsys.readouterr().out
    assert main(["resume", waiting, "-q"]) == 4
    assert recorded(waiting) == {"1/ask": "rework"}


@pytest.mark.parametrize("verb", ["answer", "resume"])
def test_detach_means_a_process_of_its_own(
    waiting: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    """§4: at every verb the same. What the process is told drives the run to its next question."""
    started: list[list[str]] = []
    monkeypatch.setattr(subprocess, "Popen", lambda command, **rest: started.append(command))
    more = ["rework"] if verb == "answer" else ["--answer", "1=rework"]
    assert main([verb, waiting, *more, "--detach"]) == 0
    assert f"quire runs {waiting} --follow" in capsys.readouterr().err
    assert [command[:6] for command in started] == [[sys.executable, "-P", "-m", "quire", "resume", waiting]]
    assert main(started[0][4:]) == 4
    assert recorded(waiting)["1/ask"] == "rework"


@pytest.mark.parametrize("given", [[], ["--script", "other.json"]])
def test_an_answer_that_the_run_cannot_go_on_with_here_is_not_stored(
    waiting: str, capsys: pytest.CaptureFixture[str], given: list[str]
) -> None:
    replies = Path("replies.json")
    text = replies.read_text()
    replies.unlink()
    assert main(["answer", waiting, "rework", *given]) == 2
    assert main(["inbox"]) == 0
    assert "Which way?" in capsys.readouterr().out
    replies.write_text(text)
    assert main(["answer", waiting, "ship it", "-q"]) == 4
    assert recorded(waiting) == {"1/ask": "ship it"}


def test_a_run_with_a_live_owner_takes_the_answer_there(waiting: str, capsys: pytest.CaptureFixture[str]) -> None:
    async def hold() -> int:
        owner = Runtime.open()
        lease = await owner.store.acquire(waiting)
        try:
            return await asyncio.to_thread(_in_another_process, ["answer", waiting, "rework"])
        finally:
            await owner.store.release(lease)
            await owner.close()

    assert asyncio.run(hold()) == 0


def _in_another_process(arguments: list[str]) -> int:
    done = run_quire(arguments, cwd=Path.cwd(), env=os.environ)
    assert done.stderr == "stored; the run continues in its own process\n"
    return done.returncode
