from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import Invoke
from tests.cli.signed_project import FILES, write_project
from tests.cli.test_terminal import Screen

from quire.cli.sign import sign_command
from quire.cli.sign import verify_command as verify
from quire.cli.trust import keys_command as keys


@pytest.fixture(autouse=True)
def project(workspace: Path) -> Path:
    write_project(workspace)
    return workspace


@pytest.fixture
def key_id(invoke: Invoke) -> str:
    return str(invoke(keys, "new").stdout.strip())


def test_without_a_key_nothing_is_signed_and_none_is_made(invoke: Invoke, project: Path, tmp_path: Path) -> None:
    done = invoke(sign_command, ".")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "quire trust keys new" in done.stderr
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
        (["demo/greet"], list(FILES)[:1]),
        (["greet"], list(FILES)[:1]),
    ],
)
def test_files_folders_and_globs(invoke: Invoke, key_id: str, arguments: list[str], signed: list[str]) -> None:
    done = invoke(sign_command, *(arguments or ["."]), "--yes")
    assert (done.exit_code, done.stdout.split()) == (0, signed)
    assert f"{len(signed)} signed with the key default ({key_id})" in done.stderr
    assert invoke(verify, *signed).exit_code == 0


def test_a_batch_reports_what_failed_and_signs_the_rest(invoke: Invoke, project: Path, key_id: str) -> None:
    bad = project / ".ai" / "directives" / "demo" / "bad.md"
    bad.write_text(FILES[".ai/directives/demo/greet.md"])
    done = invoke(sign_command, ".ai", "--json", "--yes")
    assert done.exit_code == 1
    report = json.loads(done.stdout)
    assert (report["total"], report["failed"]) == (3, [".ai/directives/demo/bad.md"])
    assert report["signed"] == list(FILES)[:2]
    assert report["key_id"] == key_id
    (issue,) = report["issues"][".ai/directives/demo/bad.md"]
    assert "bad" in issue and "greet" in issue
    assert bad.read_text() == FILES[".ai/directives/demo/greet.md"]
    told = invoke(sign_command, ".ai", "--yes")
    assert told.stderr.startswith(f"quire: .ai/directives/demo/bad.md: {issue}\n")
    assert "2 signed" in told.stderr and "1 not signed" in told.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        ([], 2, "name a document"),
        (["nothing.md"], 2, "does not exist"),
        (["demo/nothing"], 2, "does not exist"),
        (["*.nothing"], 2, "matches nothing"),
        ([".ai/config"], 2, "holds nothing that can be signed"),
        ([".ai/config/x.yaml"], 2, "neither a directive nor knowledge"),
        (["quire.toml"], 2, "cannot be signed: signed documents end in"),
        (["page.playbook.md", "--key", "nope"], 2, "no key named nope"),
        (["link.md"], 6, "is a link"),
        (["notes.md"], 1, "line 1"),
    ],
)
def test_what_cannot_be_signed(
    invoke: Invoke, project: Path, key_id: str, arguments: list[str], status: int, words: str
) -> None:
    (project / "link.md").symlink_to(project / "page.playbook.md")
    done = invoke(sign_command, *arguments)
    assert (done.exit_code, done.stdout) == (status, "")
    assert words in done.stderr


def test_another_key_can_be_chosen(invoke: Invoke, project: Path, key_id: str) -> None:
    other = invoke(keys, "new", "other").stdout.strip()
    assert invoke(sign_command, "page.playbook.md", "--key", "other").exit_code == 0
    assert f":{other}|playbook:page.playbook.md -->" in (project / "page.playbook.md").read_text()
    assert invoke(sign_command, "page.playbook.md").exit_code == 0
    assert (project / "page.playbook.md").read_text().count("rye:signed") == 1
    assert other not in (project / "page.playbook.md").read_text()


def test_a_directive_outside_of_its_folder_has_no_name_to_sign(invoke: Invoke, project: Path, key_id: str) -> None:
    stray = project / "stray.md"
    stray.write_text(FILES[".ai/directives/demo/greet.md"])
    done = invoke(sign_command, "stray.md")
    assert done.exit_code == 1
    assert stray.read_text() == FILES[".ai/directives/demo/greet.md"]


PLANTED = ".ai/directives/demo/planted.md"
WIDE = (
    FILES[".ai/directives/demo/greet.md"]
    .replace('"greet"', '"planted"')
    .replace(
        "<execute><tool>rye.file-system.*</tool></execute>",
        "<execute><tool>rye.bash</tool></execute><acknowledge risk='elevated'>x</acknowledge>",
    )
)


@pytest.mark.parametrize("argument", [".", ".ai", ".ai/directives", ".ai/**/*.md", ".ai/directives/demo/p*.md"])
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_what_was_planted_in_a_folder_is_not_signed_by_itself(
    invoke: Invoke, project: Path, key_id: str, argument: str, options: tuple[str, ...]
) -> None:
    assert invoke(sign_command, *FILES).exit_code == 0
    before = {name: (project / name).read_text() for name in FILES}
    (project / PLANTED).write_text(WIDE)
    done = invoke(sign_command, argument, *options)
    assert (project / PLANTED).read_text() == WIDE, "it is signed"
    assert (done.exit_code, done.stdout) == (6, "")
    assert done.stderr == (
        f"error: 1 document here would be signed for the first time, or changed since: {PLANTED}; nothing is signed. "
        "Look at them, then name the files, or say --yes\n"
    )
    assert {name: (project / name).read_text() for name in FILES} == before


@pytest.mark.parametrize("change", [lambda text: text + "\nAnd more.\n", lambda text: text.partition("\n")[2]])
def test_what_was_changed_since_it_was_signed_is_asked_for(
    invoke: Invoke, project: Path, key_id: str, change: Callable[[str], str]
) -> None:
    assert invoke(sign_command, ".", "--yes").exit_code == 0
    assert invoke(sign_command, ".").exit_code == 0, "all of it is signed as it is"
    changed = project / "page.playbook.md"
    changed.write_text(change(changed.read_text()))
    assert invoke(sign_command, ".").exit_code == 6
    assert invoke(sign_command, "page.playbook.md").exit_code == 0, "a file that is named is meant"
    assert invoke(sign_command, ".").exit_code == 0


@pytest.mark.parametrize(("answer", "code", "signed"), [("\n", 6, False), ("yes\n", 0, True)])
def test_on_a_terminal_it_is_listed_with_what_it_may_do(
    invoke: Invoke, project: Path, key_id: str, answer: str, code: int, signed: bool
) -> None:
    assert invoke(sign_command, ".", "--yes").exit_code == 0
    (project / PLANTED).write_text(WIDE)
    (project / "late.playbook.md").write_text("# T\n\n## STEP 1: A\n\n@tool(files, wipe, {})\n")
    screen = Screen(["sign", "."], {}, (40, 200))
    try:
        shown = screen.wait_for("Sign 2 documents? yes or no [no]: ")
        screen.press(answer)
        ended, _ = screen.end()
    finally:
        screen.close()
    lines = [line.strip() for line in shown.splitlines()]
    assert lines[:6] == [
        f"{PLANTED}: directive, unsigned",
        "may: rye.execute.tool.rye.bash",
        "acknowledges the risk elevated",
        "limits: turns 25, tokens 200000, spend 1, spawns 50, depth 10, duration_seconds 1800",
        "late.playbook.md: playbook, unsigned",
        "calls: files/wipe",
    ]
    assert ended == code
    assert ("rye:signed" in (project / PLANTED).read_text()) == signed


def test_a_file_that_is_named_beside_its_folder_is_meant(invoke: Invoke, project: Path, key_id: str) -> None:
    assert invoke(sign_command, ".", "--yes").exit_code == 0
    (project / PLANTED).write_text(WIDE)
    assert invoke(sign_command, ".", PLANTED).exit_code == 0


def test_what_is_changed_while_somebody_looks_at_it(
    invoke: Invoke, project: Path, key_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run may go on meanwhile: only the text that was listed is signed."""
    (project / PLANTED).write_text(WIDE.replace("rye.bash", "rye.file-system.read"))

    def agree(*given: object, **more: object) -> None:
        (project / PLANTED).write_text(WIDE)

    monkeypatch.setattr("quire.cli.sign.require_consent", agree)
    done = invoke(sign_command, ".ai")
    assert done.exit_code == 1 and "was changed after it was looked at" in done.stderr
    assert (project / PLANTED).read_text() == WIDE


def test_letters_that_are_not_seen_are_told_of(invoke: Invoke, project: Path, key_id: str) -> None:
    page = project / "page.playbook.md"
    page.write_text(page.read_text().replace("\nx\n", "\nx\U000e0073\U000e0065\n"))
    done = invoke(sign_command, "page.playbook.md")
    assert done.exit_code == 0
    assert (
        "quire: warning: page.playbook.md: line 6: TX101 2 invisible characters: "
        "U+E0073 TAG LATIN SMALL LETTER S, U+E0065 TAG LATIN SMALL LETTER E\n"
    ) in done.stderr


def test_an_elevated_permission_that_is_not_acknowledged_is_told_of(invoke: Invoke, project: Path, key_id: str) -> None:
    """seeds S7, ruling 19 of directives: signing warns as a run does."""
    (project / PLANTED).parent.mkdir(parents=True, exist_ok=True)
    (project / PLANTED).write_text(WIDE.replace("elevated", "write"))
    done = invoke(sign_command, PLANTED)
    assert done.exit_code == 0
    assert f"quire: warning: {PLANTED}: the capability rye.execute.tool.rye.bash is elevated" in done.stderr
