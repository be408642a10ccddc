"""Small things that people meet: empty arguments, grants of nothing, numbers for options, words for states."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import json_of

from quire.cli import main
from quire.errors import BadInputs
from quire.runs.allowed_names import require_known
from quire.workspace.configuration import load_settings
from quire.workspace.locate import find_workspace

Capture = pytest.CaptureFixture[str]

ASKS = """# Asks

## STEP 1: Choose

@elicit(select, "Which one?", "red", "green", "3")
@output(choice)

## STEP 2: Choose

@elicit(select, "Which one?", "red", "green", "3")
"""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["check", ""], "the argument PATH is empty"),
        (["check", "a.playbook.md", " "], "the argument PATH is empty"),
        (["new", "playbook", ""], "the argument NAME is empty"),
        (["new", "directive", ""], "the argument NAME is empty"),
        (["show", ""], "the argument FILE|NAME is empty"),
        (["run", ""], "the argument DOC is empty"),
        (["run", "a.playbook.md", "--out", ""], "--out is empty"),
        (["run", "a.playbook.md", "--script", ""], "--script is empty"),
        (["run", "a.playbook.md", "--model", ""], "--model is empty"),
        (["run", "a.playbook.md", "--allow", ""], "--allow is empty"),
        (["resume", "last", "--out", ""], "--out is empty"),
        (["answer", "last", "x", "--out", ""], "--out is empty"),
    ],
)
def test_an_empty_argument_is_one_line(workspace: Path, capsys: Capture, arguments: list[str], said: str) -> None:
    (workspace / "a.playbook.md").write_text(ASKS)
    before = sorted(workspace.iterdir())
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and err.startswith(f"quire: {said}"), err
    assert sorted(workspace.iterdir()) == before


def test_what_is_not_given_is_not_empty(workspace: Path, capsys: Capture) -> None:
    assert main(["new", "playbook"]) == 0
    assert capsys.readouterr().out == "example.playbook.md\n"


@pytest.mark.parametrize(
    ("allow", "hint"),
    [
        ("nosuch", ""),
        ("shel", "did you mean shell?"),
        ("dcos__search", ""),
        ("nosuch=example.org", ""),
        ("mcp/nowhere/x", ""),
        ("zzz*", ""),
        ("rye", ""),
        ("rye.bsh", "did you mean rye/bash?"),
        ("rye/file-system/wite", "did you mean rye/file-system/write?"),
        ("rye.exceute.tool.rye.bash", "did you mean rye.execute.tool.rye.bash?"),
        ("rye.execute.tol.x", "did you mean rye.execute.tool.x?"),
        ("rye.reach.shell.unsandboxed", ""),
    ],
)
def test_a_grant_of_nothing(workspace: Path, allow: str, hint: str) -> None:
    with pytest.raises(BadInputs) as caught:
        require_known(["shell", allow], load_settings(find_workspace(workspace)))
    (problem,) = caught.value.problems
    assert problem.startswith(f"--allow {allow}: no tool or capability of that name exists")
    assert problem.endswith(hint or "of that name exists")


@pytest.mark.parametrize(
    "allow",
    ["shell", "shell=network", "http__get=example.org", "rye/bash", "file__*", "*", "rye.execute.tool.rye.*", "ask",
     "docs", "docs__search", "docs/search", "docs/*", "mcp/docs/search", "python/add", "python__add", "run_pipeline",
     "pipeline__report", "rye/web/*", "rye.bash", "rye.file-system.*", "rye/bash/*", "rye.*", "rye.execute.*",
     "rye.fetch.directive", "rye.sign.directive.a.b", "rye.execute.tool.acme.later", "rye.agent.threads.*",
     "file__write=user:.ai", "spawn_thread"],
)  # fmt: skip
def test_a_grant_of_something(workspace: Path, allow: str) -> None:
    (workspace / ".mcp.json").write_text('{"mcpServers": {"docs": {"command": "false"}}}')
    require_known([allow], load_settings(find_workspace(workspace)))


def test_where_there_are_servers_a_grant_of_nothing_says_how_tools_are_named(workspace: Path) -> None:
    (workspace / ".mcp.json").write_text('{"mcpServers": {"docs": {"command": "false"}}}')
    with pytest.raises(BadInputs, match="the tool of a server is SERVER/TOOL, a Python function python/NAME"):
        require_known(["search"], load_settings(find_workspace(workspace)))


@pytest.mark.parametrize(
    "verb", [["run", "p.yaml"], ["fork", "last", "--from", "1"], ["can", "p.yaml", "sign", "tool"]]
)
def test_a_grant_of_nothing_is_one_line_and_nothing_runs(workspace: Path, capsys: Capture, verb: list[str]) -> None:
    (workspace / "p.yaml").write_text("pipeline: p\nsteps:\n- transform: {value: '1'}\n")
    assert main(["run", "p.yaml", "-q"]) == 0
    capsys.readouterr()
    assert main([*verb, "--allow", "shel"]) == 2
    said = "quire: --allow shel: no tool or capability of that name exists; did you mean shell?\n"
    assert tuple(capsys.readouterr()) == ("", said)
    assert len(json_of(capsys, "runs")) == 1


def test_a_number_answers_a_choice_beforehand(workspace: Path, capsys: Capture) -> None:
    (workspace / "a.playbook.md").write_text(ASKS)
    assert main(["run", "a.playbook.md", "--json", "--answer", "1=2", "--answer", "2=3"]) == 0
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    # An option that is itself a number wins over the number of an option.
    assert (result["named"]["choice"], result["output"]) == ("green", "3")


def test_a_number_beyond_the_options_is_no_answer(workspace: Path, capsys: Capture) -> None:
    (workspace / "a.playbook.md").write_text(ASKS)
    assert main(["run", "a.playbook.md", "-q", "--answer", "1=9"]) == 2
    assert "answer 1: answer one of: red | green | 3" in capsys.readouterr().err


def test_a_number_answers_a_choice_whose_options_only_the_run_knows(workspace: Path, capsys: Capture) -> None:
    options = "!expr ctx.colours"
    ask = f"{{name: ask, args: {{prompt: Which?, type: select, options: {options}}}}}"
    (workspace / "p.yaml").write_text(f"pipeline: p\nsteps:\n- tool: {ask}\n")
    given = ["-i", 'colours=["red", "green"]', "--answer", "1=2"]
    assert main(["run", "p.yaml", "-q", *given]) == 0
    assert capsys.readouterr().out == "green\n"


def test_a_waiting_run_is_said_to_wait(workspace: Path, capsys: Capture) -> None:
    (workspace / "a.playbook.md").write_text(ASKS)
    assert main(["run", "a.playbook.md", "-q"]) == 4
    said = capsys.readouterr().err
    for arguments in (
        ["answer", "last", "7", "red"],
        ["runs", "last", "--output"],
        ["resume", "last", "--set", "choice=x"],
    ):
        assert main(arguments) != 0
        said += (told := capsys.readouterr().err)
        assert "waiting for an answer" in told
    assert main(["runs"]) == 0
    assert "awaiting_input" not in said + capsys.readouterr().out


def test_doctor_tells_of_pipelines_that_do_not_load(workspace: Path, capsys: Capture) -> None:
    (workspace / "pipelines").mkdir()
    (workspace / "pipelines" / "good.yaml").write_text("pipeline: good\nsteps:\n- transform: {value: '1'}\n")
    assert main(["doctor", "--json"]) in (0, 1)
    found = [one for one in json.loads(capsys.readouterr().out) if one["what"] == "pipelines"]
    assert found == [{"what": "pipelines", "state": "ok", "detail": "good"}]
    (workspace / "pipelines" / "bad.yaml").write_text("pipeline: bad\nsteps:\n- nonsense: {}\n")
    assert main(["doctor", "--json"]) == 1
    found = [one for one in json.loads(capsys.readouterr().out) if one["what"] == "pipelines"]
    assert [one["state"] for one in found] == ["ok", "problem"]
    assert "bad.yaml:3: " in found[1]["detail"]
