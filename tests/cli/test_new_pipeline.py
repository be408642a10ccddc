"""A first pipeline: it checks clean, is registered where it lies, and runs."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from quire.cli import main
from quire.cli.new import INPUTS, pipeline
from quire.library.document import load


@pytest.mark.parametrize(
    ("arguments", "file", "name"),
    [
        ([], "pipelines/example.yaml", "example"),
        (["ask_around"], "pipelines/ask_around.yaml", "ask_around"),
        (["ask.yaml"], "pipelines/ask.yaml", "ask"),
        (["ask.YML"], "pipelines/ask.yaml", "ask"),
        (["flows/ask"], "flows/ask.yaml", "ask"),
        (["--title", "Say: it!"], "pipelines/say-it.yaml", "say-it"),
    ],
)
def test_where_it_goes_and_what_it_is_called(
    workspace: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], file: str, name: str
) -> None:
    assert main(["new", "pipeline", *arguments]) == 0
    told = capsys.readouterr()
    assert told.out == f"{file}\n" and f"quire check {file}\n" in told.err
    assert load(file).runnable().title == name
    assert main(["check", "--strict", "."]) == 0


def test_it_runs_by_its_name_as_it_says(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "pipeline", "ask"]) == 0
    assert f"quire run pipelines/ask.yaml{INPUTS}" in capsys.readouterr().err
    replies = [{"reply": json.dumps({"text": "x", "sure": sure})} for sure in (True, False)]
    Path("replies.json").write_text(json.dumps(replies))
    assert main(["run", "ask", *shlex.split(INPUTS), "--script", "replies.json"]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["doubtful"] == 1 and len(json.loads(told.out)["answers"]) == 2
    assert "warning" not in told.err


@pytest.mark.parametrize("description", ['a: "b" # c', "{x}", "- y", "é ☃", "*"])
def test_any_description_stays_one_text(workspace: Path, description: str) -> None:
    Path("x.yaml").write_text(pipeline("x", description))
    assert load("x.yaml").runnable().description == description


@pytest.mark.parametrize("name", ["9x", "x y", "../x", "/tmp/x", "a/../../x", ".x", "a/-x", "link/x", "nul", "é"])
def test_names_that_are_none_are_refused(workspace: Path, name: str) -> None:
    (workspace / "link").symlink_to(workspace.parent)
    before = sorted(workspace.parent.rglob("*"))
    assert main(["new", "pipeline", name]) == 2
    assert sorted(workspace.parent.rglob("*")) == before


def test_what_is_for_directives_is_refused(workspace: Path) -> None:
    assert main(["new", "pipeline", "x", "--complexity", "simple"]) == 2
