"""Declared inputs of pipelines at the command line: typed, checked before anything is started, asked for, shown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import Said, json_of
from tests.cli.test_terminal import Quire, Screen
from tests.given import given

from quire.cli import main

GREET = """\
pipeline: greet
dialect: quire
input:
  readers: {type: list, of: {type: string}, max_items: 3, description: "Who reads it."}
  tone: {type: enum, values: [warm, dry], default: dry}
  times: {type: number, minimum: 1, required: false}
  loud: {type: bool, default: false}
steps:
  - transform: {value: ctx}
"""
ASKING = """\
pipeline: ask
dialect: quire
input:
  tone: {type: enum, values: [warm, 2], description: "How it sounds."}
  times: {type: number, minimum: 1}
  loud: {type: bool}
  names: {type: list, of: {type: string}, max_items: 2}
  code: {type: string, pattern: '^[a-z]+$'}
  story: {type: string}
  box: {type: object, fields: {n: {type: number}}}
  spare: {type: string, default: none}
steps:
  - transform: {value: "[tone, times, loud, names, code, story, box.n, spare]"}
"""


@pytest.fixture
def greet(workspace: Path) -> Path:
    return given({"greet.yaml": GREET}, workspace) / "greet.yaml"


@pytest.fixture
def quire(workspace: Path) -> Iterator[Quire]:
    screens: list[Screen] = []

    def start(*arguments: str, **env: str) -> Screen:
        screens.append(Screen(list(arguments), env))
        return screens[-1]

    yield start
    for screen in screens:
        screen.close()


def test_texts_of_the_command_line_become_values_of_their_types(greet: Path, said: Said) -> None:
    (greet.parent / "names.txt").write_text("Ann\nBob, Jr.\n")
    code = main(["run", "greet.yaml", "-i", "readers=@names.txt", "-i", "times=2", "-i", "loud=yes", "-q"])
    assert (code, json.loads(said()[0])) == (
        0,
        {"readers": ["Ann", "Bob, Jr."], "tone": "dry", "times": 2, "loud": True},
    )


def test_values_of_a_file_are_taken_as_they_are(greet: Path, said: Said) -> None:
    (greet.parent / "in.json").write_text('{"readers": "Ann", "loud": "yes"}')
    assert main(["run", "greet.yaml", "--inputs", "in.json"]) == 2
    err = said()[1]
    assert 'input readers must be a list, not "Ann"' in err and 'input loud must be true or false, not "yes"' in err


def test_nothing_starts_with_wrong_inputs(greet: Path, said: Said, workspace: Path) -> None:
    wrong = ("-i", "readers=a,b,c,d", "-i", "tone=sober", "-i", "times=0", "-i", "tines=1")
    assert main(["run", "greet.yaml", *wrong]) == 2
    assert said() == (
        "",
        "quire: unknown input tines (did you mean times?)\n"
        "  input readers must have at most 3 items, not 4\n"
        '  input tone must be one of "warm", "dry", not "sober"\n'
        "  input times must be at least 1, not 0\n",
    )
    assert main(["run", "greet.yaml"]) == 2
    assert said()[1] == "quire: missing input readers (list of string (at most 3)): Who reads it.\n"
    assert json_of(said, "runs") == []


def test_defaults_are_pinned(greet: Path, said: Said) -> None:
    assert main(["run", "greet.yaml", "-i", "readers=a", "-q"]) == 0
    said()
    greet.write_text(GREET.replace("default: dry", "default: warm"))
    assert json_of(said, "runs", "last")["inputs"] == {"readers": ["a"], "tone": "dry", "loud": False}


def test_a_fork_checks_the_inputs_that_it_sets(greet: Path, said: Said) -> None:
    assert main(["run", "greet.yaml", "-i", "readers=a", "-q"]) == 0
    said()
    assert main(["fork", "last", "--from", "1", "--set", "tone=sober"]) == 2
    assert 'input tone must be one of "warm", "dry"' in said()[1]
    assert main(["fork", "last", "--from", "1", "--set", "tone=warm", "-q"]) == 0
    assert json.loads(said()[0])["tone"] == "warm"


def test_an_edited_document_takes_the_inputs_that_it_still_declares(greet: Path, said: Said) -> None:
    assert main(["run", "greet.yaml", "-i", "readers=a", "-i", "times=3", "-q"]) == 0
    said()
    lines = [line for line in GREET.splitlines(keepends=True) if "times" not in line]
    greet.write_text("".join(lines).replace("default: dry", "default: warm"))
    assert main(["fork", "last", "--document", "-q"]) == 0
    assert json.loads(said()[0]) == {"readers": ["a"], "tone": "dry", "loud": False}


def test_show_lists_types_defaults_and_descriptions(greet: Path, said: Said) -> None:
    assert main(["show", "greet.yaml"]) == 0
    out = said()[0]
    assert "  readers  list of string (at most 3)  required       Who reads it.\n" in out
    assert '  tone     one of "warm" | "dry"       default "dry"\n' in out.replace("  \n", "\n")
    tone = json_of(said, "show", "greet.yaml")["inputs"][1]
    assert tone == {
        "name": "tone",
        "required": False,
        "schema": {"type": "string", "enum": ["warm", "dry"], "default": "dry"},
    }


def test_a_prompt_is_shown_with_defaults(workspace: Path, said: Said) -> None:
    (workspace / "p.yaml").write_text(
        GREET.replace("transform: {value: ctx}", 'agent: {prompt: "{tone} {readers} {ctx.times}"}')
    )
    assert main(["show", "p.yaml", "--prompt", "1", "-i", "times=4"]) == 0
    out, err = said()
    assert "dry [readers] 4" in out
    assert "no value for readers" in out + err and "no value for tone" not in out + err


def test_completion_knows_the_options(greet: Path, monkeypatch: pytest.MonkeyPatch, said: Said) -> None:
    monkeypatch.setenv("_QUIRE_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "quire run greet.yaml -i tone=")
    monkeypatch.setenv("COMP_CWORD", "4")
    with pytest.raises(SystemExit):
        main([])
    assert "tone=warm" in said()[0]


def test_missing_inputs_are_asked_for_by_their_type(quire: Quire, workspace: Path) -> None:
    (workspace / "ask.yaml").write_text(ASKING)
    screen = quire("run", "ask.yaml")
    for prompt, keys in (
        ('tone (one of "warm" | 2): How it sounds.\r\n  1. warm\r\n  2. 2\r\n', ""),
        ("a number or an option: ", "hot\n"),
        ('tone must be one of "warm", 2, not "hot"', "1\n"),
        ("a number: ", "0\n"),
        ("times must be at least 1, not 0", "3\n"),
        ("y or n: ", "y\n"),
        ("one item on each line", "a, b\nc\n.\n"),
        ("> ", "X\n"),
        ('code must match ^[a-z]+$, not "X"', "x\n"),
        ("a line with only . or Ctrl-D ends)", "one\n\ntwo\n.\n"),
        ("as JSON", '{"n": 7}\n.\n'),
    ):
        screen.wait_for(prompt)
        screen.press(keys)
    code, rest = screen.end()
    assert code == 0
    found = json.loads(rest[rest.index("[\r\n") :])
    assert found == ["warm", 3, True, ["a, b", "c"], "x", "one\n\ntwo", 7, "none"]
