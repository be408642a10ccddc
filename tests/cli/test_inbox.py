"""The questions that wait, over all runs."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from quire.cli.inbox import command
from quire.cli.runs import listing
from quire.runs.options import RunOptions
from quire.stores import DEFAULT_PATH
from quire.stores.contract import MOST_QUESTIONS

Invoke = Callable[..., Result]
MakeRun = Callable[..., str]

SELECT = '# Pick\n\n## STEP 1: Choose\n\n@elicit(select, "Which one?", "a", "b", default:"b")\n'
HOSTILE = '# Bad\x1b[2J\n\n## STEP 1: Ask\n\n@elicit(input, "Say\x1b]0;title\x07 it")\n'


def test_nothing_waits(invoke: Invoke, workspace: Path) -> None:
    result = invoke(command)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "nothing waits" in result.stderr
    assert json.loads(invoke(command, "--json").stdout) == []


def test_a_question_with_all_that_is_needed_to_answer_it(invoke: Invoke, make_run: MakeRun) -> None:
    run = make_run(SELECT)
    result = invoke(command)
    for part in (run, "Pick", "step 1 (select): Which one?", "options: a | b", "default: b", "asked 0s ago", "29d"):
        assert part in result.stdout
    assert "quire answer RUN [STEP] VALUE" in result.stderr


def test_questions_of_several_runs_oldest_first(invoke: Invoke, make_run: MakeRun) -> None:
    runs = [make_run(SELECT), make_run(SELECT)]
    found = json.loads(invoke(command, "--json").stdout)
    assert [question["run"] for question in found] == runs
    first = found[0]
    assert first["expires_at"] - first["asked_at"] == pytest.approx(30 * 24 * 3600, abs=5)
    del first["expires_at"], first["asked_at"]
    assert first.pop("subject").startswith("Pick · 20")
    assert first == {
        "run": runs[0],
        "title": "Pick",
        "step": "1",
        "way": "1",
        "step_title": "Choose",
        "path": "1/ask",
        "kind": "select",
        "prompt": "Which one?",
        "options": ["a", "b"],
        "default": "b",
    }


def test_letters_about_launched_runs_come_after_the_questions(invoke: Invoke, make_run: MakeRun) -> None:
    text = "# Say\x1b[2J\n\n## STEP 1: Say\n\nSay it.\n"
    make_run(SELECT)
    run = make_run(text, ["the\x07 end" + "!" * 500], options=RunOptions(reply_to="mcp:tester"))
    shown = invoke(command).stdout
    assert "Which one?" in shown.partition(run)[0]
    letter = shown.partition(run)[2]
    assert "for mcp:tester, 0s ago" in letter and "[pipeline] run" in letter and "the" in letter
    assert not set(letter) & set("\x1b\x07") and max(map(len, letter.splitlines())) < 210
    question, told = json.loads(invoke(command, "--json").stdout)
    assert question["kind"] == "select"
    assert (told["run"], told["kind"], told["recipient"]) == (run, "pipeline", "mcp:tester")
    assert told["text"].startswith(f"[pipeline] run {run} ") and "!" * 500 in told["text"]


def test_of_many_questions_the_oldest_are_shown(invoke: Invoke, make_run: MakeRun, workspace: Path) -> None:
    run = make_run(SELECT)
    add_questions(workspace, run, MOST_QUESTIONS)
    result = invoke(command)
    assert result.stdout.count("Which one?") == 100
    assert "the oldest 100 of 1,000+ open questions" in result.stderr
    assert len(json.loads(invoke(command, "--json").stdout)) == MOST_QUESTIONS
    assert "1,000+ open questions" in invoke(listing, "--pulse").stderr


def add_questions(workspace: Path, run: str, count: int) -> None:
    """Have a waiting run ask more questions like its first one."""
    with contextlib.closing(sqlite3.connect(workspace / DEFAULT_PATH)) as file, file:
        columns = [name for _, name, *_ in file.execute("PRAGMA table_info(questions)") if name != "path"]
        names = ", ".join(columns)
        file.execute(
            f"""
            WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?)
            INSERT INTO questions (path, {names}) SELECT 'more/' || n, {names} FROM questions, numbers WHERE run = ?
            """,  # names of columns
            (count, run),
        )


def test_no_control_character_of_a_document_is_printed(invoke: Invoke, make_run: MakeRun) -> None:
    make_run(HOSTILE)
    output = invoke(command).output
    assert "Bad" in output and not set(output) & set("\x1b\x07")
