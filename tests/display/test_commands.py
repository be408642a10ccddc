"""Shell commands beside buttons: a shell reads exactly the words that were meant, whatever a document is called."""

from __future__ import annotations

import shlex
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.display.shell_commands import (
    SETTING,
    Blank,
    answer_command,
    answer_to,
    compare_command,
    export_command,
    fork_command,
    resume_command,
    run_command,
    shell_line,
    why_command,
)
from quire.display.text import pasted
from quire.display.visible import visible
from quire.engine.records import Question


def question(path: str, way: str) -> Question:
    return Question("r1", path, way, "", "input", "?", (), None, "h", 0.0)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (run_command("my book.md", {"a": "x y", "n": 3}), ["run", "my book.md", "-i", "a=x y", "-i", "n=3"]),
        (run_command("a.md", {"x": "@home"}), ["run", "a.md", "-i", "x=@@home"]),
        (run_command("a.yaml", {"x": "5", "y": "a"}, as_json=True), ["run", "a.yaml", "-i", 'x="5"', "-i", "y=a"]),
        (
            run_command("a.md", breakpoints=["3 › 1"], answers={"2": "no"}, limits={"turns": None}, detach=True),
            ["run", "a.md", "--limit", "turns=none", "--break", "3>1", "--answer", "2=no", "--detach"],
        ),
        (answer_command("r1", "3 › 1", "it's"), ["answer", "r1", "3>1", "it's"]),
        (resume_command("r1", sets={"a": "$(id)"}, budget="2"), ["resume", "r1", "--set", "a=$(id)", "--budget", "2"]),
        (fork_command("r1", "turn 2", model="a:b"), ["runs", "fork", "r1", "--from", "turn 2", "--model", "a:b"]),
        (fork_command("r1", "1; reboot"), ["runs", "fork", "r1", "--from", "1; reboot"]),
        (compare_command("a", "b"), ["runs", "diff", "a", "b"]),
        (export_command("a"), ["runs", "export", "a", "-o", "a.jsonl"]),
        (why_command("a", "2/for_each[3]"), ["runs", "why", "a", "2/for_each[3]"]),
    ],
)
def test_a_shell_reads_the_words(line: str, words: list[str]) -> None:
    assert shlex.split(line) == ["quire", *words]


def test_blanks_are_left_to_the_user() -> None:
    assert answer_command("r1") == "quire answer r1 VALUE"
    assert fork_command("r1", "2", sets=SETTING) == "quire runs fork r1 --from 2 --set NAME=VALUE"
    assert resume_command("r1", budget=Blank("MORE|none")) == "quire resume r1 --budget MORE|none"
    assert resume_command("r1", answer=("3 › 1", "VALUE")) == "quire resume r1 --answer '3>1'=VALUE"


def test_one_of_several_questions_is_named() -> None:
    alone, other = question("1/ask", "1"), question("2/ask", "2")
    same = [question("3/for_each[1]/ask", "3"), question("3/for_each[2]/ask", "3")]
    assert answer_to(alone, [alone]) == "quire answer r1 VALUE"
    assert answer_to(alone, [alone, other]) == "quire answer r1 1 VALUE"
    assert answer_to(same[1], same, "no") == "quire answer r1 '3/for_each[2]/ask' no"


@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1), max_size=3))
def test_no_text_changes_the_line(words: list[str]) -> None:
    line = shell_line(*words)
    assert line == visible(line)
    if not any("$'" in pasted(word) for word in words):
        assert shlex.split(line) == ["quire", *words]


def test_bash_reads_hidden_characters() -> None:
    words = ["a\nb", "\x1b[2J'\\", "\u202eabc", "plain"]
    script = f"printf '%s\\0' {' '.join(map(pasted, words))}"
    read = subprocess.run(["bash", "-c", script], capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"})
    assert read.stdout.decode().split("\0")[:-1] == words
