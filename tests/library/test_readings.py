"""A text is parsed once in a run, however often the run asks for the document (U1)."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.directives import directive

from quire.cli.check import command as check
from quire.cli.run import command
from quire.formats.directive import parse as directives
from quire.formats.pipeline import parse as pipelines
from quire.formats.playbook import parse as playbooks
from quire.source import Source
from quire.trust.keys import SigningKey
from quire.trust.sign_file import sign_file, signable
from quire.trust.trusted_keys import keep, own_key
from quire.values import Value
from quire.workspace.configuration import load_settings
from quire.workspace.locate import Workspace

EXAMPLES = Path(__file__).parents[2] / "examples"
PLAYBOOK = """# Notes

## STEP 1: Plan

Plan something.

@output(plan)

## STEP 2: Draft

Draft {{plan}}.

## STEP 3: End

Finish it.
"""
BOARD = """
pipeline: board
steps:
- for_each:
    over: ctx.readers
    do: {agent: {prompt: "Ask {item}"}}
    on_error: abort
    collect: {transform: {value: pipe}}
- call: {pipeline: end}
"""
END = """
pipeline: end
steps:
- transform: {value: "1"}
"""
DIRECTIVE = directive(
    "keeper",
    "<execute><tool>rye.file-system.*</tool><pipeline>*</pipeline><directive>*</directive></execute>",
    "Keep notes.",
    extends="{extends}",
    more='<outputs><output name="done" required="true">What was done</output></outputs>',
)


class Readings(Counter[tuple[str, str]]):
    """How often each text was parsed, by format."""

    def count(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for format, module, step in (
            ("playbook", playbooks, "scan"),
            ("pipeline", pipelines, "read_yaml"),
            ("directive", directives, "read_xml"),
        ):
            monkeypatch.setattr(module, step, self._counted(format, getattr(module, step)))

    def _counted(self, format: str, step: Callable[..., object]) -> Callable[..., object]:
        def counted(text: str | Source, *rest: object, **more: object) -> object:
            self[format, text if isinstance(text, str) else text.text] += 1
            return step(text, *rest, **more)

        return counted


@pytest.fixture
def folder(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "work"
    (folder / ".ai" / "directives" / "demo").mkdir(parents=True)
    (folder / "pipelines").mkdir()
    for name, text in (("board", BOARD), ("end", END)):
        (folder / "pipelines" / f"{name}.yaml").write_text(f"# {tmp_path}\n{text}")  # no other test has read it
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> Readings:
    found = Readings()
    found.count(monkeypatch)
    return found


def run(folder: Path, file: Path, script: list[Value], *more: str) -> None:
    (folder / "script.json").write_text(json.dumps(script))
    given = [str(file), "--script", str(folder / "script.json"), "--unattended", *more]
    done = CliRunner().invoke(command, given, catch_exceptions=False)
    assert done.exit_code == 0, done.output


def use(tool: str, /, **given: Value) -> Value:
    return {"tool_calls": [{"name": tool, "input": given}]}


def signed(file: Path, folder: Path, text: str) -> Path:
    settings = load_settings(Workspace(folder))
    if not (settings.user / "keys").exists():
        keep(settings, SigningKey.generate("default"), datetime.now(UTC))
    file.write_text(f"{text}\n{folder}\n")
    assert sign_file(signable(file, folder), own_key(settings), datetime.now(UTC)) == []
    return file


def test_a_playbook_of_three_steps(folder: Path, readings: Readings) -> None:
    (folder / "notes.playbook.md").write_text(f"{PLAYBOOK}\n{folder}\n")
    run(folder, folder / "notes.playbook.md", ["a plan", "a draft", "an end"])
    assert set(readings.values()) == {1}
    assert len(readings) == 1


def test_a_pipeline_with_a_fan(folder: Path, readings: Readings) -> None:
    run(folder, folder / "pipelines" / "board.yaml", ["one", "two"], "-i", 'readers=["a", "b"]')
    assert set(readings.values()) == {1}
    assert len(readings) == 2


def test_a_playbook_that_is_checked(folder: Path, readings: Readings) -> None:
    (folder / "calls.playbook.md").write_text(f"{PLAYBOOK.replace('Finish it.', '@tool(end)')}\n{folder}\n")
    for option in ("--strict", "--portable"):
        CliRunner().invoke(check, [option, str(folder / "calls.playbook.md")], catch_exceptions=False)
    assert [times for (format, _), times in readings.items() if format == "playbook"] == [1]


def test_an_example(folder: Path, readings: Readings, monkeypatch: pytest.MonkeyPatch) -> None:
    house = folder / "guest-house"
    shutil.copytree(EXAMPLES / "guest-house", house)
    monkeypatch.chdir(house)
    for file in (house / ".ai").rglob("*.md"):
        signed(file, house, file.read_text())
    readings.clear()
    script = json.loads((house / "scripts" / "greet_guest.json").read_text())
    file = house / ".ai" / "directives" / "house" / "greet_guest.md"
    run(house, file, script, "-i", "guest=Ada", "-i", "language=German")
    assert set(readings.values()) == {1}
    assert len(readings) <= 6


def test_a_directive_of_four_turns(folder: Path, readings: Readings) -> None:
    items = folder / ".ai" / "directives" / "demo"
    signed(items / "base.md", folder, DIRECTIVE.replace("{extends}", "").replace("keeper", "base"))
    file = signed(items / "keeper.md", folder, DIRECTIVE.replace("{extends}", ' extends="demo/base"'))
    readings.clear()
    write = use("rye/file-system/write", path="a.txt", content="a")
    pipeline = use("rye_execute", item_type="pipeline", item_id="end")
    base = use("rye_execute", item_type="directive", item_id="demo/base")
    run(folder, file, [write, pipeline, base, use("directive_return", done="all")])
    assert set(readings.values()) == {1}
    # Directives that come with Quire are read once for a process: an earlier test may have done it.
    assert len([text for _, text in readings if str(folder.parent) in text]) == 4
