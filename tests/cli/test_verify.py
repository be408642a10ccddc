from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Invoke
from tests.cli.signed_project import FILES, write_project

from quire.cli.sign import sign_command as sign
from quire.cli.sign import verify_command
from quire.cli.trust import keys_command as keys


@pytest.fixture(autouse=True)
def project(workspace: Path, invoke: Invoke) -> Path:
    write_project(workspace)
    invoke(keys, "new")
    return workspace


def test_what_must_be_signed_and_what_may(invoke: Invoke, project: Path) -> None:
    done = invoke(verify_command, ".")
    assert (done.exit_code, done.stdout.split()) == (
        6,
        ["unsigned", ".ai/directives/demo/greet.md", "unsigned", ".ai/knowledge/demo/terms.md"],
    )
    assert "quire sign .ai/directives/demo/greet.md" in done.stderr
    assert "2 without a signature passed over" in done.stderr
    assert invoke(verify_command, "page.playbook.md").exit_code == 6, "one that is named is asked about"
    (project / "quire.toml").write_text("[trust]\ndocuments = true\n")
    assert len(invoke(verify_command, ".").stdout.splitlines()) == 4


def test_signed_changed_moved(invoke: Invoke, project: Path) -> None:
    assert invoke(sign, ".", "--yes").exit_code == 0
    fine = invoke(verify_command, ".")
    assert (fine.exit_code, fine.stdout.split()[::2]) == (0, ["ok"] * 4)
    assert "4 of 4 verified" in fine.stderr
    page = project / "page.playbook.md"
    page.write_text(page.read_text() + "more\n")
    (project / "pipelines" / "p.yaml").rename(project / "pipelines" / "q.yaml")
    greet = project / ".ai" / "directives" / "demo" / "greet.md"
    (greet.parent / "other.md").write_text(greet.read_text())
    done = invoke(verify_command, ".", "--json")
    assert done.exit_code == 6
    report = json.loads(done.stdout)
    assert {row["path"]: row["outcome"] for row in report["files"]} == {
        ".ai/directives/demo/greet.md": "ok",
        ".ai/directives/demo/other.md": "misplaced",
        ".ai/knowledge/demo/terms.md": "ok",
        "page.playbook.md": "modified",
        "pipelines/q.yaml": "misplaced",
    }
    assert (report["total"], report["refused"]) == (5, 3)
    assert report["files"][1]["message"].startswith("the directive demo/other was signed as directive demo/greet")


def test_a_revoked_key_counts_for_nothing(invoke: Invoke, project: Path) -> None:
    invoke(sign, ".", "--yes")
    invoke(keys, "revoke", "default")
    done = invoke(verify_command, ".")
    assert (done.exit_code, set(done.stdout.split()[::2])) == (6, {"revoked"})


@pytest.mark.parametrize("arguments", [["nothing.md"], ["quire.toml"], []])
def test_what_cannot_be_read(invoke: Invoke, arguments: list[str]) -> None:
    assert invoke(verify_command, *arguments).exit_code == 2


def test_verifying_changes_nothing(invoke: Invoke, project: Path) -> None:
    invoke(verify_command, ".")
    assert {name: (project / name).read_text() for name in FILES} == FILES


def test_a_signed_document_still_runs(invoke: Invoke, project: Path) -> None:
    from quire.library.document import load

    invoke(sign, ".", "--yes")
    for name in ("page.playbook.md", "pipelines/p.yaml"):
        assert load(project / name).runnable()


@pytest.mark.parametrize(
    ("folder", "named", "shown"),
    [
        (".", "{project}/.ai", ".ai/directives/demo/greet.md"),
        (".", "{project}", ".ai/directives/demo/greet.md"),
        ("sub/deep", "../../.ai", "../../.ai/directives/demo/greet.md"),
        ("sub/deep", "{project}/.ai", "../../.ai/directives/demo/greet.md"),
        ("../elsewhere", "{project}/.ai", "{project}/.ai/directives/demo/greet.md"),
    ],
)
def test_hints_name_the_file_as_one_would_type_it_here(
    invoke: Invoke, project: Path, monkeypatch: pytest.MonkeyPatch, folder: str, named: str, shown: str
) -> None:
    (project / folder).mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(project / folder)
    done = invoke(verify_command, named.format(project=project))
    assert f"is unsigned; sign it: quire sign {shown.format(project=project)}\n" in done.stderr
