"""Renames in directives, and documents that follow when files are renamed."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.given import given
from tests.lsp.directive.sample_workspace import FILES, GREET, LEAD
from tests.lsp.editor import Editor

from quire.library.check import DocumentCheck
from quire.source import OPEN_TEXTS, Source, read_source

NAME = ".ai/directives/team/greet_guest.md"
DEEP = ".ai/directives/team/deep/lead.md"


def findings(folder: Path) -> dict[str, list[str]]:
    """Return the codes of all documents, as `quire check` finds them."""
    OPEN_TEXTS.clear()
    check = DocumentCheck(imports=False)
    files = sorted((folder / ".ai").rglob("*.md"))
    return {path.name: sorted(one.code.id for one in check.of(read_source(path))) for path in files}


def save(team: Editor, edit: dict[str, Any]) -> dict[str, str]:
    """Write the result of an edit to the files, as an editor would."""
    texts = team.edited(edit)
    given(texts, team.folder)
    return texts


def rename(team: Editor, name: str, text: str, new: str) -> dict[str, Any]:
    place = team.open(name, text)
    team.ask("textDocument/prepareRename", place)
    found: dict[str, Any] = team.ask("textDocument/rename", {**place, "newName": new})
    return found


def test_an_input_is_renamed_in_its_directive_and_in_its_callers(team: Editor) -> None:
    before = findings(team.folder)
    edit = rename(team, NAME, GREET.replace("about {input:guest}", "about {input:gue‸st}"), "visitor")
    texts = save(team, edit)
    assert set(texts) == {NAME, DEEP}
    assert "{input:guest}" not in texts[NAME]
    assert "${inputs.guest}" not in texts[NAME]
    assert "guest is a word." in texts[NAME]
    assert 'name="greet_guest"' in texts[NAME]
    assert '<param name="visitor">' in texts[DEEP]
    assert texts[DEEP].count('{"visitor": "{input:who}"') == 2
    assert findings(team.folder) == before


def test_an_input_is_renamed_from_a_caller(team: Editor) -> None:
    edit = rename(team, DEEP, LEAD.replace('{"guest": "{input:who}", "s', '{"gue‸st": "{input:who}", "s'), "visitor")
    assert '<input name="visitor"' in save(team, edit)[NAME]


def test_a_keyed_output_is_renamed_with_both_tags(team: Editor) -> None:
    before = findings(team.folder)
    texts = save(team, rename(team, NAME, GREET.replace("<letter>", "<let‸ter>"), "note"))
    assert "<note>The greeting</note>" in texts[NAME]
    assert 'path="outputs.note"' in texts[NAME]
    assert "${outputs.note || inputs.guest}" in texts[NAME]
    assert findings(team.folder) == before


def test_a_hook_is_renamed_where_it_is_suppressed(team: Editor) -> None:
    before = findings(team.folder)
    base = FILES[".ai/directives/team/base.md"]
    texts = save(
        team, rename(team, ".ai/directives/team/base.md", base.replace("bring_voice", "bring‸_voice"), "speak")
    )
    assert "<suppress>speak</suppress>" in texts[NAME]
    assert findings(team.folder) == before


@pytest.mark.parametrize(
    ("mark", "new", "reason"),
    [
        ('name="gue‸st"', "a guest", "only letters, digits and _"),
        ('name="gue‸st"', "seats", "there is already an input seats"),
        ("<let‸ter>", "success", "a meaning of its own"),
        ("<let‸ter>", "1st", "begins with a letter"),
        ("<let‸ter>", "path", "there is already an output path"),
        ('id="too_lo‸ng"', "a b", "no spaces"),
    ],
)
def test_names_that_are_refused(team: Editor, mark: str, new: str, reason: str) -> None:
    place = team.open(NAME, GREET.replace(mark.replace("‸", ""), mark, 1))
    assert reason in team.refused("textDocument/rename", {**place, "newName": new})["message"]


@pytest.mark.parametrize(
    "mark", ['name="greet‸_guest"', "<system>team/vo‸ice", "rye/file-system/wr‸ite", 'name="look‸_up"']
)
def test_names_that_are_not_renamed_here(team: Editor, mark: str) -> None:
    place = team.open(NAME, GREET.replace(mark.replace("‸", ""), mark, 1))
    assert team.refused("textDocument/prepareRename", place)["message"]


def move(team: Editor, old: str, new: str) -> dict[str, Any] | None:
    """Ask for the edits, make them, and move the file or folder."""
    files = [{"oldUri": team.uri(old), "newUri": team.uri(new)}]
    edit: dict[str, Any] | None = team.ask("workspace/willRenameFiles", {"files": files})
    if edit is not None:
        save(team, edit)
        for change in edit["documentChanges"]:
            if change.get("kind") == "rename":
                source, target = (Path(change[key].removeprefix("file://")) for key in ("oldUri", "newUri"))
                target.parent.mkdir(parents=True, exist_ok=True)
                source.rename(target)
    (team.folder / new).parent.mkdir(parents=True, exist_ok=True)
    shutil.move(team.folder / old, team.folder / new)
    return edit


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (".ai/directives/team/base.md", ".ai/directives/team/common/ground.md"),
        (".ai/directives/team/base.md", ".ai/directives/ground.md"),
        (".ai/directives/team/greet_guest.md", ".ai/directives/desk/welcome_guest.md"),
        (".ai/directives/team/deep", ".ai/directives/team/deeper/still"),
        (".ai/directives/team", ".ai/directives/crew"),
        (".ai/knowledge/team/voice.md", ".ai/knowledge/team/house/tone.md"),
        (".ai/knowledge/team", ".ai/knowledge/our/team"),
    ],
)
def test_documents_follow_files(team: Editor, old: str, new: str) -> None:
    before = findings(team.folder)
    move(team, old, new)
    names = {Path(old).name: Path(new).name} if old.endswith(".md") else {}
    assert findings(team.folder) == {names.get(name, name): codes for name, codes in before.items()}


def test_a_permission_for_a_folder_does_not_come_to_cover_more(team: Editor) -> None:
    other = team.write(".ai/knowledge/other/secret.md", FILES[".ai/knowledge/team/rules.md"].replace("rules", "secret"))
    edit = team.ask(
        "workspace/willRenameFiles",
        {"files": [{"oldUri": team.uri(".ai/knowledge/team"), "newUri": team.uri(".ai/knowledge/other")}]},
    )
    assert other.exists()
    assert "<knowledge>team/*</knowledge>" in team.edited(edit)[NAME]


def test_a_test_follows_its_document(team: Editor) -> None:
    team.write(".ai/directives/team/base.test.yaml", "cases:\n  - name: one\n")
    move(team, ".ai/directives/team/base.md", ".ai/directives/crew/ground.md")
    assert (team.folder / ".ai/directives/crew/ground.test.yaml").is_file()
    assert not (team.folder / ".ai/directives/team/base.test.yaml").exists()


def test_a_category_that_is_wrong_already_stays(team: Editor) -> None:
    wrong = GREET.replace("<category>team</category>", "<category>other</category>")
    team.write(NAME, wrong)
    move(team, NAME, ".ai/directives/desk/greet_guest.md")
    assert "<category>other</category>" in (team.folder / ".ai/directives/desk/greet_guest.md").read_text()


def test_an_unsaved_document_follows(team: Editor) -> None:
    team.open(DEEP, LEAD.replace("# Lead", "# Lead them"))
    files = [{"oldUri": team.uri(NAME), "newUri": team.uri(".ai/directives/team/hello.md")}]
    text = team.edited(team.ask("workspace/willRenameFiles", {"files": files}))[DEEP]
    assert text.startswith("# Lead them")
    assert text.count("team/hello") == 3
    assert "<directive>team.hello</directive>" in text


def test_sources_are_what_the_reader_reads() -> None:
    assert Source.of(GREET).text == GREET
