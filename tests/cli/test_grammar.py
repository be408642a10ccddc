"""`quire grammar`: what it prints is a document that checks and runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Invoke, Said

from quire.cli import main
from quire.cli.grammar import command
from quire.formats.grammars import GRAMMARS, Grammar

each = pytest.mark.parametrize("grammar", GRAMMARS, ids=lambda one: one.key)


def arguments(grammar: Grammar) -> tuple[str, ...]:
    return (grammar.name, *(("--dialect", grammar.dialect) if grammar.dialect else ()))


@each
def test_the_text_and_the_example(invoke: Invoke, grammar: Grammar) -> None:
    printed = invoke(command, *arguments(grammar))
    assert (printed.exit_code, printed.stdout, printed.stderr) == (0, grammar.text, "")
    data = json.loads(invoke(command, *arguments(grammar), "--json").stdout)
    assert data["format"] == grammar.name and data["example"] == grammar.example and data["text"] == grammar.text


def test_without_a_name_they_are_listed(invoke: Invoke) -> None:
    listed = invoke(command).stdout.splitlines()
    assert [line.split("  ")[0] for line in listed] == [f"quire grammar {' '.join(arguments(one))}" for one in GRAMMARS]
    assert [one["text"] for one in json.loads(invoke(command, "--json").stdout)] == [one.text for one in GRAMMARS]


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        (["pipline"], "there is no grammar for 'pipline': did you mean pipeline?"),
        (["zebra"], "there is no grammar for 'zebra': there are pipeline, playbook, directive"),
        (["PIPELINE"], "there is no grammar for 'PIPELINE'"),
        (["playbook", "--dialect", "quire"], "a playbook has no dialect 'quire': it has none"),
        (["pipeline", "--dialect", "nonsense"], "a pipeline has no dialect 'nonsense'"),
        (["--dialect", "quire"], "--dialect needs a FORMAT"),
        ([""], "the argument FORMAT is empty"),
        (["pipeline", "playbook"], "unexpected extra argument"),
    ],
)
def test_what_there_is_not(workspace: Path, said: Said, given: list[str], hint: str) -> None:
    assert main(["grammar", *given]) == 2
    out, err = said()
    assert out == "" and hint in err and len(err.splitlines()) == 1


@pytest.fixture(params=GRAMMARS, ids=lambda one: one.key)
def example(request: pytest.FixtureRequest, workspace: Path) -> Grammar:
    grammar: Grammar = request.param
    file = workspace / grammar.file_name
    file.parent.mkdir(parents=True)
    file.write_text(grammar.example, encoding="utf-8")
    return grammar


def test_the_example_has_no_findings(example: Grammar, said: Said) -> None:
    assert main(["check", "--strict", example.file_name]) == 0


REPLIES = {
    "pipeline": [
        {"contains": "First", "reply": '{"passed": true, "notes": "clear"}'},
        {"contains": "Second", "reply": '{"passed": false, "notes": "long"}'},
    ],
    "playbook": ['She asks.\n{"kind": "question"}', "On Sunday.", "Dear Ada, on Sunday."],
    "directive": [
        {"text": "", "tool_calls": [{"name": "rye_file_system_read", "input": {"path": "a.txt"}}]},
        {"text": "", "tool_calls": [{"name": "rye_file_system_write", "input": {"path": "b.md", "content": "Tea."}}]},
        {"text": "", "tool_calls": [{"name": "directive_return", "input": {"path": "b.md"}}]},
    ],
}
INPUTS = {
    "pipeline": ['drafts=["First", "Second"]', "reader=Ada"],
    "playbook": ["letter=When are you open?", "tone=warm"],
    "directive": ["source=a.txt"],
}


def test_the_example_runs(example: Grammar, workspace: Path, said: Said) -> None:
    (workspace / "a.txt").write_text("All about tea.")
    (workspace / "replies.json").write_text(json.dumps(REPLIES[example.key]))
    if example.name == "directive":
        assert main(["keys", "new"]) == main(["sign", example.file_name, "--yes"]) == 0
    given = [word for one in INPUTS[example.key] for word in ("-i", one)]
    said()
    code = main(["run", example.file_name, *given, "--script", "replies.json", "--unattended"])
    out, err = said()
    assert code == 0, err
    if example.name == "pipeline":
        assert (workspace / "praise.txt").read_text() == "Passed: clear"
    elif example.name == "playbook":
        assert out == "Dear Ada, on Sunday.\n"
    else:
        assert json.loads(out) == {"path": "b.md"} and (workspace / "b.md").read_text() == "Tea."
