"""Names that are empty, hold spaces, or stand for a stream; files of inputs that are not there."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from quire.cli import main

ONE = "# One\n\n## INPUTS\n- `x` (string: a)\n- `y` (string: b)\n\n## STEP 1: Only\n\nSay {{x}} {{y}}.\n"


@pytest.fixture
def page(workspace: Path) -> list[str]:
    Path("page.md").write_text(ONE)
    Path("replies.json").write_text(json.dumps(["hello"]))
    return ["run", "page.md", "--script", "replies.json"]


def test_every_file_that_cannot_be_read_is_told_at_once(page: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    Path("bad.txt").write_bytes(b"\xff")
    assert main([*page, "-i", "x=@one", "-i", "y=@bad.txt", "--inputs", "nope.json"]) == 2
    told = capsys.readouterr().err
    assert "--inputs nope.json: the file nope.json does not exist" in told
    assert "-i x=@one: the file one does not exist (a value that begins with @ is written @@)" in told
    assert "-i y=@bad.txt is not UTF-8 text (byte 0)" in told
    assert told.count("@@") == 1


def test_out_of_a_dash_is_stdout(page: list[str], workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(file.name for file in workspace.iterdir())
    assert main([*page, "--out", "-"]) == 0
    assert capsys.readouterr().out == "hello\n"
    assert sorted(file.name for file in workspace.iterdir() if file.name != ".quire") == before


def test_resuming_with_out_of_a_dash_leaves_the_file_of_the_start(
    page: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*page, "--out", "kept.md", "--break", "1"]) == 4
    assert main(["resume", "last", "--out", "-"]) == 0
    assert capsys.readouterr().out == "hello\n" and not Path("kept.md").exists()


def test_the_commands_of_new_can_be_pasted(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "playbook", "a b/c"]) == 0
    told = capsys.readouterr()
    (file,) = told.out.splitlines()
    assert file == "a b/c.playbook.md"
    for line in told.err.splitlines():
        assert shlex.split(line.partition(": ")[2])[-1] == file


@pytest.mark.parametrize(
    "arguments",
    [
        ["runs", ""],
        ["runs", " ", "--json"],
        ["runs", "why", "", "1"],
        ["runs", "diff", "last", ""],
        ["runs", "export", ""],
        ["resume", ""],
        ["cancel", ""],
        ["answer", "", "yes"],
        ["fork", "", "--from", "1"],
    ],
)
def test_an_empty_run_is_no_run(workspace: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert "is empty" in capsys.readouterr().err
