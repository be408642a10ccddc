"""With `--json`, a failure before the start is one JSON line on stdout; stderr is for people, as without it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.given import given

from quire import errors
from quire.cli import main
from quire.errors import QuireError
from quire.operations.problems import KINDS

ASKS = "# T\n\n## INPUTS\n\n- `name` (string): Who\n\n## STEP 1: A\n\nHello {{name}}.\n"
FAILURES = [
    ("run nosuch.md --json", 2, "no_such_document", "nosuch.md does not exist", ""),
    ("run aks.playbook.md --json", 2, "no_such_document", "aks.playbook.md does not exist", "did you mean"),
    ("run nosuch --json", 2, "no_such_document", "unknown file, pipeline", "known here are"),
    ("run empty.playbook.md --json", 2, "unreadable", "empty.playbook.md is empty", ""),
    ("run wrong.playbook.md --json", 2, "bad_document", "wrong.playbook.md cannot run", ""),
    ("run ask.playbook.md --script s.json --json", 2, "bad_inputs", "missing input name", ""),
    ("run ask.playbook.md x --json", 2, "no_model", "no model", ""),
    ("run ask.playbook.md --jsn --json", 2, "usage", "unknown option --jsn", "see quire run --help"),
    ("run --json", 2, "usage", "missing argument 'DOC'", "see quire run --help"),
    ("zzz --json", 2, "usage", "unknown verb 'zzz'", "see quire --help"),
    ("runs nosuch --json", 2, "no_such_run", "unknown run nosuch", ""),
    ("runs why last 1 --json", 2, "no_such_run", "no runs exist yet", ""),
    ("resume --json nosuch", 2, "no_such_run", "unknown run nosuch", ""),
    ("check nosuch.md --json", 2, "no_such_document", "nosuch.md does not exist", ""),
    ("check --format json nosuch.md", 2, "no_such_document", "nosuch.md does not exist", ""),
    ("check --format=json nosuch.md", 2, "no_such_document", "nosuch.md does not exist", ""),
    ("test --json nosuch", 2, "no_such_document", "nosuch does not exist", ""),
    ("show nosuch.md --json", 2, "no_such_document", "nosuch.md does not exist", ""),
    ("show empty.playbook.md --json", 2, "unreadable", "empty.playbook.md is empty", ""),
]


@pytest.fixture
def folder(workspace: Path) -> Path:
    files = {"ask.playbook.md": ASKS, "empty.playbook.md": "", "wrong.playbook.md": "# T\n", "s.json": ["x"]}
    return given(files, workspace)


@pytest.mark.parametrize(("line", "status", "code", "message", "hint"), FAILURES, ids=[row[0] for row in FAILURES])
def test_a_failure_is_one_json_line(
    line: str, status: int, code: str, message: str, hint: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(line.split()) == status
    out, err = capsys.readouterr()
    printed = json.loads(out)
    assert out.count("\n") == 1
    assert list(printed) == ["type", "code", "message", "hint", "exit"]
    assert (printed["type"], printed["code"], printed["exit"]) == ("error", code, status)
    assert printed["message"].startswith(message)
    assert printed["hint"].startswith(hint) if hint else True
    plain = [word for word in line.replace("--format json", "").split() if word not in ("--json", "--format=json")]
    assert main(plain) == status
    assert capsys.readouterr() == ("", err)


def test_all_wrong_inputs_are_the_message(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given({"two.playbook.md": ASKS.replace("- `name`", "- `age` (string): How old\n- `name`")}, folder)
    assert main(["run", "two.playbook.md", "--script", "s.json", "--json"]) == 2
    printed = json.loads(capsys.readouterr().out)
    assert "age" in printed["message"] and "name" in printed["message"] and printed["hint"] == ""


@pytest.mark.parametrize("words", [["run", "nosuch.md"], ["run", "ask.playbook.md", "x", "--", "--json"]])
def test_without_the_option_stdout_is_empty(words: list[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert capsys.readouterr().out == ""


def test_json_that_is_printed_already_stays_one_document(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["parse", "empty.playbook.md", "--json"]) == 2
    assert "valid" in json.loads(capsys.readouterr().out)


def test_a_hostile_name_cannot_break_the_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", 'x"\n{"type": "done"}\x1b[31m.md', "--json"]) == 2
    out = capsys.readouterr().out
    assert out.count("\n") == 1 and "\x1b" not in out
    assert json.loads(out)["type"] == "error"


def _all_errors(kind: type[QuireError] = QuireError) -> Iterator[type[QuireError]]:
    for below in kind.__subclasses__():
        yield from (below, *_all_errors(below))


@pytest.mark.parametrize("kind", [kind for kind in _all_errors() if kind.__module__ == errors.__name__])
def test_every_error_has_a_code(kind: type[QuireError]) -> None:
    assert kind.code != QuireError.code
    bases = [base for base in kind.__mro__ if issubclass(base, QuireError)]
    assert any(base.code.replace("_", "-") in KINDS for base in bases[:2])
