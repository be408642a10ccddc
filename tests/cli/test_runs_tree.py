"""`quire runs RUN --tree` and `--step STEP --text`: the rows and the texts that the page shows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.given import given

from quire.cli import main
from quire.display.run_page import tree_table

FAN = """pipeline: fan
steps:
- agent: {prompt: "first", output: idea}
- for_each:
    over: "['ant', 'bee\\e[31m', 'cow']"
    on_error: continue
    do: {agent: {prompt: "look at {item}"}}
    collect: {transform: {value: "count(pipe)"}}
    output: looks
"""
REPLIES = [{"contains": "bee", "error": {"kind": "refused", "message": "no", "retryable": False}}, {"default": "Fine."}]


@pytest.fixture
def run(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given({"fan.yaml": FAN, "fan.json": json.dumps(REPLIES)}, workspace)
    assert main(["run", "fan.yaml", "--script", "fan.json"]) == 0
    capsys.readouterr()


def test_the_tree_is_printed_row_by_row(run: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", "last", "--tree"]) == 0
    lines = capsys.readouterr().out.splitlines()
    words = [line.split() for line in lines]
    assert words[0] == ["STEP", "STATE", "ABOUT", "TOOK", "COST"]
    assert [row[:3] for row in words[1:3]] == [["1", "idea", "done"], ["2", "looks", "done"]]
    assert lines[3].startswith("  Item 1") and "bee␛[31m · no" in lines[4]
    assert "\x1b[31m" not in "".join(lines)
    assert main(["runs", "last", "--tree", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["rows"]["failed"] == [0, 1, 0, 1, 0] and not data["partial"]


def test_a_narrow_terminal_gets_shorter_words(run: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", "last", "--tree", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    rows["hint"][0] = "a long word or two " * 9
    for room in (120, 80, 60):
        assert max(map(len, tree_table(rows, room))) <= room


def test_the_text_of_a_step(run: None, capsys: pytest.CaptureFixture[str]) -> None:
    for step, text in (("1", "Fine.\n"), ("2/for_each[0]", "Fine.\n"), ("2", "2\n")):
        assert main(["runs", "last", "--step", step, "--text"]) == 0
        assert capsys.readouterr().out == text
    assert main(["runs", "last", "--step", "1", "--text", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"path": "1", "text": "Fine.", "kind": "text"}
    assert main(["runs", "last", "--text"]) == 2
    assert main(["runs", "last", "--step", "1"]) == 2


def test_people_read_no_hidden_names(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = '# P\n\n## STEP 1: Ask\n\n@elicit(confirm, "Go?")\n\n## STEP 2: Do\n\n```if __elicit_step_1 == "yes"```\n'
    given({"p.playbook.md": text + "### STEP 2a: Say\n\nHello.\n\n```endif```\n", "p.json": '["Hi."]'}, workspace)
    assert main(["run", "p.playbook.md", "--script", "p.json", "--answer", "1=yes"]) == 0
    for verb in (
        ["runs", "last", "--tree"],
        ["show", "p.playbook.md"],
        ["show", "p.playbook.md", "--graph", "mermaid"],
    ):
        capsys.readouterr()
        assert main(verb) == 0
        shown = capsys.readouterr().out
        assert "the answer of step 1 ==" in shown and "__elicit" not in shown
