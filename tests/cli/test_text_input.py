"""`quire run DOC TEXT`: the one input of a document without its name."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Said, json_of
from tests.given import given

from quire.cli import main

BODY = "\n## STEP 1: Say\n\nSay it.\n"
ONE = "# One\n\n## INPUTS\n\n- `topic` (string): x\n- `tone` (string: dry): y\n" + BODY
TWO = "# Two\n\n## INPUTS\n\n- `topic` (string): x\n- `depth` (number): y\n" + BODY
DEFAULT = "# Default\n\n## INPUTS\n\n- `place` (string: a market): x\n" + BODY
DEFAULTS = "# Defaults\n\n## INPUTS\n\n- `a` (string: x): x\n- `b` (string: y): y\n" + BODY
NONE = "# None\n" + BODY
INFERRED = "pipeline: p\nsteps:\n- transform: {value: ctx.n}\n"
DECLARED = (
    "pipeline: p\ndialect: quire\ninput: {n: {type: string}, tone: {type: string, default: dry}}\n"
    "steps:\n- transform: {value: ctx.n}\n"
)


def run(workspace: Path, document: str, *arguments: str) -> int:
    name = "d.yaml" if document.startswith("pipeline") else "d.md"
    given({name: document, "s.json": '[{"default": "said"}]'}, workspace)
    return main(["run", name, *arguments, "--script", "s.json", "-q"])


def inputs(said: Said) -> dict[str, object]:
    said()
    found: dict[str, object] = json_of(said, "runs", "last")["inputs"]
    return found


@pytest.mark.parametrize(
    ("document", "arguments", "expected"),
    [
        (ONE, ["green tea"], {"topic": "green tea", "tone": "dry"}),
        (ONE, ["-i", "tone=warm", "tea = good"], {"topic": "tea = good", "tone": "warm"}),
        (ONE, ["E=mc2"], {"topic": "E=mc2", "tone": "dry"}),
        (TWO, ["tea", "-i", "depth=3"], {"topic": "tea", "depth": "3"}),
        (DEFAULT, ["a station"], {"place": "a station"}),
        (INFERRED, ["5"], {"n": 5}),
        (INFERRED, ["five"], {"n": "five"}),
        (DECLARED, ["5"], {"n": "5"}),
        (ONE, ["@note.txt"], {"topic": "of a file", "tone": "dry"}),
        (ONE, ["@@note"], {"topic": "@note", "tone": "dry"}),
        (ONE, ["--", "-x"], {"topic": "-x", "tone": "dry"}),
    ],
)
def test_it_is_the_value_of_the_one_input(
    workspace: Path, said: Said, document: str, arguments: list[str], expected: dict[str, object]
) -> None:
    (workspace / "note.txt").write_text("of a file")
    name = "d.yaml" if document.startswith("pipeline") else "d.md"
    given({name: document, "s.json": '[{"default": "said"}]'}, workspace)
    assert main(["run", name, "--script", "s.json", "-q", *arguments]) == 0
    found = inputs(said)
    assert {key: found[key] for key in expected} == expected


def test_a_dash_is_stdin(workspace: Path, said: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        buffer = io.BytesIO(b"from a pipe")

        def isatty(self) -> bool:
            return False

    monkeypatch.setattr(sys, "stdin", Stdin())
    assert run(workspace, ONE, "-") == 0
    assert inputs(said)["topic"] == "from a pipe"


@pytest.mark.parametrize(
    ("document", "arguments", "message"),
    [
        (TWO, ["tea"], "d.md has 2 inputs (topic, depth): pass each with -i NAME=VALUE"),
        (DEFAULTS, ["tea"], "d.md has 2 inputs (a, b): pass each with -i NAME=VALUE"),
        (NONE, ["tea"], "TEXT is the value of an input, and d.md declares none"),
        (ONE, ["tea", "-i", "topic=x"], "TEXT is for an input that is not given yet"),
        (ONE, ["green", "tea"], "the TEXT is one argument: put it in quotes, 'green tea'"),
        (ONE, ["topic=tea"], "topic=tea is not the value of an input; did you mean quire run … -i topic=tea?"),
        (ONE, ["topic=tea", "tone=dry"], "the TEXT is one argument; did you mean quire run … -i topic=tea?"),
        (NONE, ["product=tea"], "did you mean quire run … -i product=tea?"),
        (ONE, [""], "the argument TEXT is empty"),
        (ONE, ["-", "-i", "tone=@-"], "stdin can be read only once"),
        (ONE, ["@nowhere.txt"], "the file nowhere.txt does not exist"),
    ],
)
def test_what_is_unclear_is_one_line(
    workspace: Path, said: Said, document: str, arguments: list[str], message: str
) -> None:
    assert run(workspace, document, *arguments) == 2
    out, err = said()
    assert out == ""
    assert message in err
    assert "Traceback" not in err
