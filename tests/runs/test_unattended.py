"""A run without people says yes only where that writes nothing (newcomer M10; ruling 16 of playbooks)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.given import given

import quire
from quire.cli import main
from quire.errors import Refused

WRITE = '@tool(quire, file__write, {"path": "a.txt", "content": "x"})'
READ = '@tool(quire, file__read, {"path": "replies.json"})'
ARM = '```if ok == "yes"```\n\n### STEP 2a: W\n\n{}\n\n```endif```'


@pytest.fixture(autouse=True)
def space(here: Path) -> None:
    given({"replies.json": [{"default": "fine"}]})


def page(step: str, question: str = '@elicit(confirm, "Publish?")') -> str:
    Path("p.playbook.md").write_text(f"# P\n\n## STEP 1: A\n\n{question}\n@output(ok)\n\n## STEP 2: B\n\n{step}\n")
    return "p.playbook.md"


def run(*more: str) -> int:
    return main(["run", "p.playbook.md", "--script", "replies.json", "--allow", "file__write", *more])


@pytest.mark.parametrize("step", [WRITE, ARM.format(WRITE)])
def test_a_yes_that_may_write_is_refused(step: str, capsys: pytest.CaptureFixture[str]) -> None:
    page(step)
    assert run("--unattended") == 6
    assert "step 1: this confirm has no default, and step 2" in capsys.readouterr().err
    assert not Path("a.txt").exists()
    assert main(["runs", "--json"]) == 0 and json.loads(capsys.readouterr().out) == []
    assert run("--unattended=yes") == 0
    assert Path("a.txt").exists()


@pytest.mark.parametrize(
    ("step", "question", "more"),
    [
        (READ, '@elicit(confirm, "Publish?")', []),
        ("Say {{ok}}.", '@elicit(confirm, "Publish?")', []),
        (WRITE, '@elicit(confirm, "Publish?", default:"no")', []),
        (WRITE, '@elicit(select, "Which?", "a", "b")', []),
        (WRITE, '@elicit(confirm, "Publish?")', ["--answer", "1=yes"]),
    ],
)
def test_otherwise_it_runs(step: str, question: str, more: list[str]) -> None:
    page(step, question)
    assert run("--unattended", *more) == 0


def test_resume_and_fork_are_held_to_it() -> None:
    page(WRITE)
    assert run("--json") == 4
    assert main(["resume", "last", "--unattended"]) == 6
    assert main(["fork", "last", "--from", "1", "--unattended"]) == 6
    assert not Path("a.txt").exists()
    assert main(["resume", "last", "--unattended=yes"]) == 0
    assert Path("a.txt").exists()


def test_an_option_before_the_document_is_still_a_flag() -> None:
    page(READ)
    assert main(["run", "--unattended", "p.playbook.md", "--script", "replies.json"]) == 0


async def test_python_says_it_too() -> None:
    file, model = page(WRITE), quire.ScriptedModel([{"default": "x"}])
    with pytest.raises(Refused):
        await quire.run(file, model=model, unattended=True, allow=["file__write"])
    assert (await quire.run(file, model=model, unattended="yes", allow=["file__write"])).status == "completed"


async def test_a_called_playbook_counts() -> None:
    Path("playbooks").mkdir()
    Path("playbooks/inner.playbook.md").write_text(Path(page(WRITE)).read_text())
    Path("c.yaml").write_text("pipeline: c\nsteps:\n- call: {pipeline: inner}\n")
    with pytest.raises(Refused, match="step 1 › 1"):
        await quire.run("c.yaml", model=quire.ScriptedModel([]), unattended=True)
