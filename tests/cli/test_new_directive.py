"""A first directive: ready to be checked and signed, in its place."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path, PurePath

import pytest
from click.testing import Result
from tests.cli.conftest import json_of

from quire import formats
from quire.cli import main
from quire.cli.new import COMPLEXITIES, COMPLEXITY, command
from quire.formats.directive.validate import issues
from quire.library.document import load
from quire.plan.thread import Thread
from quire.source import read_source

Invoke = Callable[..., Result]
LIMITS = {
    "simple": {"turns": 6, "tokens": 4096, "spend": 0.05},
    "moderate": {"turns": 15, "tokens": 200000, "spend": 0.5},
    "complex": {"turns": 30, "tokens": 200000, "spend": 1.0},
}


@pytest.mark.parametrize(
    ("arguments", "file", "name", "category"),
    [
        (("greet_guest",), "greet_guest.md", "greet_guest", ""),
        (("team/greet_guest",), "team/greet_guest.md", "greet_guest", "team"),
        (("greet_guest.md", "--category", "team/door"), "team/door/greet_guest.md", "greet_guest", "team/door"),
        (("--title", "Greet Guest"), "greet_guest.md", "greet_guest", ""),
        ((), "write_note.md", "write_note", ""),
    ],
)
def test_where_it_goes_and_what_it_is_called(
    invoke: Invoke, workspace: Path, arguments: tuple[str, ...], file: str, name: str, category: str
) -> None:
    result = invoke(command, "directive", *arguments)
    path = PurePath(".ai/directives", file)
    assert (result.exit_code, result.stdout) == (0, f"{path}\n")
    assert f"quire sign {path}" in result.stderr
    source = read_source(workspace / path)
    assert formats.check(source) == ()
    assert issues(source, PurePath(file)) == []
    work = load(workspace / path).runnable().body.steps[0].work
    assert isinstance(work, Thread) and (work.name, work.category) == (name, category)


@pytest.mark.parametrize("complexity", [None, "simple", "moderate", "complex"])
def test_complexity_sets_the_limits(invoke: Invoke, workspace: Path, complexity: str | None) -> None:
    result = invoke(command, "directive", "a", *(["--complexity", complexity] if complexity else []))
    assert result.exit_code == 0
    work = load(workspace / ".ai/directives/a.md").runnable().body.steps[0].work
    assert isinstance(work, Thread) and work.limits == LIMITS[complexity or "simple"]
    assert tuple(COMPLEXITIES) == COMPLEXITY


@pytest.mark.parametrize(
    "arguments",
    [
        ("Greet",),
        ("greet-guest",),
        ("../greet",),
        ("/tmp/greet",),
        ("greet", "--category", "../x"),
        ("greet", "--category", ".hidden"),
        ("a/greet", "--category", "b"),
        ("greet", "--complexity", "huge"),
        ("link/greet",),
    ],
)
def test_what_is_refused(invoke: Invoke, workspace: Path, arguments: tuple[str, ...]) -> None:
    (workspace / ".ai/directives").mkdir(parents=True)
    (workspace / ".ai/directives/link").symlink_to(workspace.parent)
    before = sorted(workspace.parent.rglob("*"))
    assert invoke(command, "directive", *arguments).exit_code == 2
    assert sorted(workspace.parent.rglob("*")) == before


def test_nothing_is_overwritten_unless_asked(invoke: Invoke, workspace: Path) -> None:
    assert invoke(command, "directive", "a").exit_code == 0
    assert invoke(command, "directive", "a").exit_code == 2
    assert invoke(command, "directive", "a", "--force").exit_code == 0


def test_options_of_directives_are_not_for_playbooks(invoke: Invoke) -> None:
    assert invoke(command, "playbook", "x", "--complexity", "simple").exit_code == 2


def test_parse_prints_the_fields(invoke: Invoke, workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(command, "directive", "a").exit_code == 0
    tree = json_of(capsys, "parse", ".ai/directives/a.md")
    assert (tree["valid"], tree["errors"], tree["warnings"]) == (True, [], [])
    assert tree["fields"]["capabilities"] == ["rye.execute.tool.rye.file-system.write"]
    assert [one["name"] for one in tree["fields"]["inputs"]] == ["subject", "path"]


def test_parse_prints_what_is_wrong(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path, text, code in (("directives/a.md", "x", "DR001"), ("knowledge/k.md", "---\na: 1\n---\n", "KN001")):
        file = workspace / ".ai" / path
        file.parent.mkdir(parents=True)
        file.write_text(text)
        assert main(["parse", str(file)]) == 1
        tree = json.loads(capsys.readouterr().out)
        assert tree["valid"] is False and [one["code"] for one in tree["errors"]] == [code]
