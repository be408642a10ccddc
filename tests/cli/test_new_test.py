"""`quire new test`: writes the first test of a document beside it, and never over another one."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Said
from tests.given import given

from quire.cli import main

PLAYBOOK = '# T\n\n## STEP 1: Ask\n\n@elicit(confirm, "Go?")\n\n@output(go)\n\n## STEP 2: Say\n\nSay {{go}}.\n'


@pytest.fixture
def document(workspace: Path) -> Path:
    return given({"x.playbook.md": PLAYBOOK}, workspace) / "x.playbook.md"


def test_it_is_written_and_its_cases_are_drafts(document: Path, workspace: Path, said: Said) -> None:
    assert main(["new", "test", "x.playbook.md"]) == 0
    assert said()[0] == "x.test.yaml\n"
    text = (workspace / "x.test.yaml").read_text()
    assert text.count("expect: todo") == 2 and 'answers: {"1": "no"}' in text
    assert main(["check", "x.test.yaml"]) == 0
    assert main(["test", "x.test.yaml"]) == 1
    assert said()[0].count("TS013") == 2


def test_another_test_is_kept(document: Path, workspace: Path, said: Said) -> None:
    (workspace / "x.test.yaml").write_text("mine")
    assert main(["new", "test", "x.playbook.md"]) == 2
    assert "x.test.yaml exists already: --force overwrites it" in said()[1]
    assert (workspace / "x.test.yaml").read_text() == "mine"
    assert main(["new", "test", "x.playbook.md", "--force"]) == 0
    assert (workspace / "x.test.yaml").read_text() != "mine"


def test_the_text_alone(document: Path, workspace: Path, said: Said) -> None:
    assert main(["new", "test", "x.playbook.md", "--stdout"]) == 0
    assert said()[0].startswith("# The replies") and not (workspace / "x.test.yaml").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "a test needs its document"),
        (["y.playbook.md"], "does not exist"),
        (["x.playbook.md", "--title", "T"], "--title, --category and --complexity are not for test"),
        (["broken.playbook.md"], "cannot run"),
        (["../out.playbook.md"], "leads out of this folder"),
    ],
)
def test_one_line_about_a_mistake(
    arguments: list[str], message: str, document: Path, workspace: Path, said: Said
) -> None:
    (workspace / "broken.playbook.md").write_text("# T\n\nno steps\n")
    (workspace.parent / "out.playbook.md").write_text(PLAYBOOK)
    assert main(["new", "test", *arguments]) == 2
    assert message in said()[1]
    assert not (workspace.parent / "out.test.yaml").exists()
