"""`quire grammar`: what it prints is a document that checks and runs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.cli.conftest import Invoke, Said

from quire.cli import main
from quire.cli.syntax import grammar_command
from quire.display.json_schemas import SCHEMAS, json_schema
from quire.formats.grammars import GRAMMARS, Grammar
from quire.values import Value

TEST = next(one for one in GRAMMARS if one.name == "test")
each = pytest.mark.parametrize("grammar", GRAMMARS, ids=lambda one: one.key)


def arguments(grammar: Grammar) -> tuple[str, ...]:
    return (grammar.name, *(("--dialect", grammar.dialect) if grammar.dialect else ()))


@each
def test_the_text_and_the_example(invoke: Invoke, grammar: Grammar) -> None:
    printed = invoke(grammar_command, *arguments(grammar))
    assert (printed.exit_code, printed.stdout, printed.stderr) == (0, grammar.text, "")
    data = json.loads(invoke(grammar_command, *arguments(grammar), "--json").stdout)
    assert (
        data["format"] == grammar.name and data["examples"] == list(grammar.examples) and data["text"] == grammar.text
    )


def test_without_a_name_they_are_listed(invoke: Invoke) -> None:
    listed = invoke(grammar_command).stdout.splitlines()
    assert [line.split("  ")[0] for line in listed] == [f"quire grammar {' '.join(arguments(one))}" for one in GRAMMARS]
    assert [one["text"] for one in json.loads(invoke(grammar_command, "--json").stdout)] == [
        one.text for one in GRAMMARS
    ]


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        (["pipline"], "unknown grammar 'pipline': did you mean pipeline?"),
        (["zebra"], "unknown grammar 'zebra': there are pipeline, playbook, directive, test"),
        (["PIPELINE"], "unknown grammar 'PIPELINE'"),
        (["playbook", "--dialect", "quire"], "a playbook has no dialect 'quire': it has none"),
        (["pipeline", "--dialect", "nonsense"], "a pipeline has no dialect 'nonsense': there is quire"),
        (["--dialect", "quire"], "--dialect needs a FORMAT"),
        (["playbook", "--schema"], "'playbook' has no JSON Schema: there are pipeline, test, settings, lock"),
        (["setings", "--schema"], "did you mean settings?"),
        (["--schema"], "--schema needs a FORMAT"),
        (["pipeline", "--schema", "--dialect", "quire"], "--schema needs a FORMAT, and no --dialect"),
        ([""], "the argument FORMAT is empty"),
        (["pipeline", "playbook"], "unexpected extra argument"),
    ],
)
def test_what_there_is_not(workspace: Path, said: Said, given: list[str], hint: str) -> None:
    assert main(["grammar", *given]) == 2
    out, err = said()
    assert out == "" and hint in err and len(err.splitlines()) == 1


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_json_schema(invoke: Invoke, name: str) -> None:
    assert json.loads(invoke(grammar_command, name, "--schema").stdout) == json_schema(name)


FILES = {
    "pipeline": "pipelines/example.yaml",
    "playbook": "playbooks/example.playbook.md",
    "directive": ".ai/directives/team/summarise_file.md",
    "test": "tests/tagline.test.yaml",
}
TESTED = re.search(r"^````text\n(.*?)^````$", TEST.text, re.MULTILINE | re.DOTALL)
"""The document that the example of a test is for."""
EXAMPLES = {f"{one.key}-{at}": (one, text) for one in GRAMMARS for at, text in enumerate(one.examples, 1)}


@pytest.fixture(params=EXAMPLES)
def example(request: pytest.FixtureRequest, workspace: Path) -> tuple[str, str]:
    """The key of an example and its file, which is there."""
    grammar, text = EXAMPLES[request.param]
    file = workspace / FILES[grammar.name]
    file.parent.mkdir(parents=True)
    file.write_text(text, encoding="utf-8")
    if grammar is TEST and TESTED:
        (file.parent / "tagline.playbook.md").write_text(TESTED[1], encoding="utf-8")
    return request.param, FILES[grammar.name]


def test_the_example_has_no_findings(example: tuple[str, str], said: Said) -> None:
    assert main(["check", "--strict", example[1]]) == 0


REPLIES: dict[str, list[Value]] = {
    "pipeline-1": ["Tea is green."],
    "pipeline-2": [
        {"contains": "First", "reply": '{"passed": true, "notes": "clear"}'},
        {"contains": "Second", "reply": '{"passed": false, "notes": "long"}'},
        {"contains": "Third", "reply": '{"passed": true, "notes": "short"}'},
    ],
    "pipeline-3": [{"contains": "good about tea", "reply": "It is warm."}, {"contains": "bad", "reply": "It is slow."}],
    "pipeline/quire-1": ["Tea is green."],
    "pipeline/quire-2": [f'{{"text": "draft {at}", "score": {4 * at}}}' for at in (1, 2, 3)],
    "playbook-1": ['She asks.\n{"kind": "question"}', "On Sunday.", "Dear Ada, on Sunday."],
    "directive-1": [
        {"text": "", "tool_calls": [{"name": "rye_file_system_read", "input": {"path": "a.txt"}}]},
        {"text": "", "tool_calls": [{"name": "rye_file_system_write", "input": {"path": "b.md", "content": "Tea."}}]},
        {"text": "", "tool_calls": [{"name": "directive_return", "input": {"path": "b.md"}}]},
    ],
}
INPUTS = {
    "pipeline-1": ["country=Assam"],
    "pipeline-2": ['drafts=["First", "Second", "Third"]'],
    "pipeline-3": [],
    "pipeline/quire-1": ["country=Assam"],
    "pipeline/quire-2": ["topic=tea"],
    "playbook-1": ["letter=When are you open?", "tone=warm"],
    "directive-1": ["source=a.txt"],
}
RESULTS: dict[str, Value] = {
    "pipeline-2": "clear, short",
    "pipeline-3": {"good": "It is warm.", "bad": "It is slow."},
    "pipeline/quire-2": "draft 2",
    "playbook-1": "Dear Ada, on Sunday.",
    "directive-1": {"path": "b.md"},
}
WRITTEN = {
    "pipeline-1": ("tea.txt", "Tea is green."),
    "pipeline/quire-1": ("tea.txt", "Tea is green."),
    "directive-1": ("b.md", "Tea."),
}


def test_the_example_runs(example: tuple[str, str], workspace: Path, said: Said) -> None:
    key, file = example
    if file.endswith(".test.yaml"):
        assert main(["test", file]) == 0
        return
    (workspace / "a.txt").write_text("All about tea.")
    (workspace / "replies.json").write_text(json.dumps(REPLIES[key]))
    if file.endswith("summarise_file.md"):
        assert main(["keys", "new"]) == main(["sign", file, "--yes"]) == 0
    given = [word for one in INPUTS[key] for word in ("-i", one)]
    said()
    code = main(["run", file, *given, "--script", "replies.json", "--unattended"])
    out, err = said()
    assert code == 0, err
    if key in RESULTS:
        expected = RESULTS[key]
        assert (out.rstrip("\n") if isinstance(expected, str) else json.loads(out)) == expected
    if key in WRITTEN:
        name, text = WRITTEN[key]
        assert (workspace / name).read_text() == text
