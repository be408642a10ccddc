from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Invoke
from tests.cli.signed_project import FILES, write_project

from quire.cli.keys import command as keys
from quire.cli.sign import command
from quire.cli.verify import command as verify


@pytest.fixture(autouse=True)
def project(workspace: Path) -> Path:
    write_project(workspace)
    return workspace


@pytest.fixture
def key_id(invoke: Invoke) -> str:
    return str(invoke(keys, "new").stdout.strip())


def test_without_a_key_nothing_is_signed_and_none_is_made(invoke: Invoke, project: Path, tmp_path: Path) -> None:
    done = invoke(command, ".")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "quire keys new" in done.stderr
    assert not (tmp_path / "home").exists()
    assert (project / "page.playbook.md").read_text() == FILES["page.playbook.md"]


@pytest.mark.parametrize(
    ("arguments", "signed"),
    [
        ([], list(FILES)),
        ([".ai"], list(FILES)[:2]),
        ([".ai/directives"], list(FILES)[:1]),
        (["pipelines"], list(FILES)[3:]),
        ([".ai/**/*.md"], list(FILES)[:2]),
        (["pipelines/p.yaml", "pipelines"], list(FILES)[3:]),
    ],
)
def test_files_folders_and_globs(invoke: Invoke, key_id: str, arguments: list[str], signed: list[str]) -> None:
    done = invoke(command, *(arguments or ["."]))
    assert (done.exit_code, done.stdout.split()) == (0, signed)
    assert f"{len(signed)} signed with the key default ({key_id})" in done.stderr
    assert invoke(verify, *signed).exit_code == 0


def test_a_batch_reports_what_failed_and_signs_the_rest(invoke: Invoke, project: Path, key_id: str) -> None:
    bad = project / ".ai" / "directives" / "demo" / "bad.md"
    bad.write_text(FILES[".ai/directives/demo/greet.md"])
    done = invoke(command, ".ai", "--json")
    assert done.exit_code == 1
    report = json.loads(done.stdout)
    assert (report["total"], report["failed"]) == (3, [".ai/directives/demo/bad.md"])
    assert report["signed"] == list(FILES)[:2]
    assert report["key_id"] == key_id
    (issue,) = report["issues"][".ai/directives/demo/bad.md"]
    assert "bad" in issue and "greet" in issue
    assert bad.read_text() == FILES[".ai/directives/demo/greet.md"]
    told = invoke(command, ".ai")
    assert told.stderr.startswith(f"quire: .ai/directives/demo/bad.md: {issue}\n")
    assert "2 signed" in told.stderr and "1 not signed" in told.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        ([], 2, "name a document"),
        (["nothing.md"], 2, "does not exist"),
        (["*.nothing"], 2, "matches nothing"),
        ([".ai/config"], 2, "holds nothing that can be signed"),
        ([".ai/config/x.yaml"], 2, "neither a directive nor knowledge"),
        (["quire.toml"], 2, "no document that can be signed"),
        (["page.playbook.md", "--key", "nope"], 2, "no key named nope"),
        (["link.md"], 6, "is a link"),
        (["notes.md"], 1, "line 1"),
    ],
)
def test_what_cannot_be_signed(
    invoke: Invoke, project: Path, key_id: str, arguments: list[str], status: int, words: str
) -> None:
    (project / "link.md").symlink_to(project / "page.playbook.md")
    done = invoke(command, *arguments)
    assert (done.exit_code, done.stdout) == (status, "")
    assert words in done.stderr


def test_another_key_can_be_chosen(invoke: Invoke, project: Path, key_id: str) -> None:
    other = invoke(keys, "new", "other").stdout.strip()
    assert invoke(command, "page.playbook.md", "--key", "other").exit_code == 0
    assert f":{other}|playbook:page.playbook.md -->" in (project / "page.playbook.md").read_text()
    assert invoke(command, "page.playbook.md").exit_code == 0
    assert (project / "page.playbook.md").read_text().count("rye:signed") == 1
    assert other not in (project / "page.playbook.md").read_text()


def test_a_directive_outside_of_its_folder_has_no_name_to_sign(invoke: Invoke, project: Path, key_id: str) -> None:
    stray = project / "stray.md"
    stray.write_text(FILES[".ai/directives/demo/greet.md"])
    done = invoke(command, "stray.md")
    assert done.exit_code == 1
    assert stray.read_text() == FILES[".ai/directives/demo/greet.md"]
