"""What the front door and the verbs propose for a slip."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from quire.cli import main
from quire.library.lookup import find_signables

PAGE = "# T\n\n## STEP 1: A\n\nGo.\n"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["rnu"], "did you mean 'run'?"),
        (["verison"], "did you mean 'version'?"),
        (["hlep"], "did you mean 'help'?"),
        (["fokr"], "did you mean 'fork'?"),
        (["validate", "x"], "did you mean 'check'?"),
        (["page.playbook.md"], "did you mean 'quire run page.playbook.md'?"),
        (["run", "page.playbook.md", "product=tea"], "did you mean quire run … -i product=tea?"),
        (["run", "pgae.playbook.md"], "pgae.playbook.md does not exist; did you mean page.playbook.md?"),
        (["run", "page.md"], "page.md does not exist; did you mean page.playbook.md?"),
        (["check", "pgae.playbook.md"], "pgae.playbook.md does not exist; did you mean page.playbook.md?"),
        (["show", "pgae.playbook.md"], "pgae.playbook.md does not exist; did you mean page.playbook.md?"),
        (["verify", "pgae.playbook.md"], "did you mean page.playbook.md?"),
        (["run", "page.playbook.md", "--budget", "abc"], "'abc' is not a number"),
    ],
)
def test_a_slip_is_answered_with_what_was_meant(
    workspace: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], expected: str
) -> None:
    (workspace / "page.playbook.md").write_text(PAGE)
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert expected in said and "cannot be the workspace" not in said


def test_a_word_that_is_near_to_nothing_gets_no_proposal(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["zzz"]) == 2
    assert "did you mean" not in capsys.readouterr().err


def test_check_without_a_path_looks_at_the_current_folder(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (workspace / "page.playbook.md").write_text("# T\n\n## STEP 1: A\n\n{{nope}}\n")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    main(["check"])
    out, err = capsys.readouterr()
    assert "lint[PB201]" in out and "page.playbook.md" in out
    assert "the meaning of a code: quire check --explain PB201" in err
    main(["check", "--json"])
    assert "--explain" not in capsys.readouterr().err


def test_a_file_to_sign_that_is_not_there_is_called_that(workspace: Path) -> None:
    found, problems = find_signables(["nosuch"])
    assert not found and problems == ["nosuch does not exist"]
