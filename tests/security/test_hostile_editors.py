"""Clients and workspaces that are hostile to the language server: it answers, reads nothing outside, and goes on."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from tests.given import given
from tests.growth import within
from tests.lsp.editor import Editor
from tests.lsp.language_server import language_server

from quire.lsp.protocol import INVALID_REQUEST
from quire.lsp.session import Session

STRANGER = 54321
PLAYBOOK = "# Note\n\n## STEP 1: Say\n\nSay {{name}}.\n"

as_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give a file to another account"
)


def _answers(session: Session) -> list[dict[str, Any]]:
    while session.wait == 0:
        session.work()
    return session.sent()


@pytest.mark.parametrize("request_id", [[1], {"a": 1}, [[[]]]])
def test_an_id_that_is_neither_a_number_nor_a_text_is_refused(request_id: object) -> None:
    session = Session()
    session.take({"id": request_id, "method": "initialize", "params": {}})
    session.take({"id": 5, "method": "initialize", "params": {}})
    refused, answered = _answers(session)
    assert (refused["id"], refused["error"]["code"]) == (None, INVALID_REQUEST)
    assert (answered["id"], "result" in answered) == (5, True)


def test_cancelling_does_not_search_the_queue() -> None:
    session = Session()
    for number in range(9_000):
        session.take({"id": number, "method": "textDocument/hover", "params": {}})
    with within(2.0):
        for number in range(20_000):
            session.take({"method": "$/cancelRequest", "params": {"id": 9_000 + number}})
        for number in range(9_000):
            session.take({"method": "$/cancelRequest", "params": {"id": number}})
    assert {one["error"]["message"] for one in _answers(session)} == {"cancelled"}


def test_the_same_id_twice_is_cancelled_while_one_of_them_waits() -> None:
    session = Session()
    for _ in range(2):
        session.take({"id": 7, "method": "initialize", "params": {}})
    session.work()
    session.take({"method": "$/cancelRequest", "params": {"id": 7}})
    session.work()
    sent: list[dict[str, Any]] = session.sent()
    first, second = sent
    assert "result" in first
    assert second["error"]["message"] == "cancelled"


@pytest.mark.parametrize("process", [2**31, 10**20, -1, 0, "x", None])
def test_a_number_that_is_not_one_of_a_process_is_not_looked_for(process: object) -> None:
    session = Session()
    session.take({"id": 1, "method": "initialize", "params": {"processId": process}})
    assert "result" in _answers(session)[0]
    assert session.process is None


def test_findings_that_are_asked_for_come_also_to_an_editor_that_did_not_say_so(tmp_path: Path) -> None:
    editor = Editor(tmp_path)
    place = editor.open("note.playbook.md", PLAYBOOK)
    editor.type("note.playbook.md", 3, "x")
    asked = editor.begin("textDocument/diagnostic", {"textDocument": place["textDocument"]})
    editor.pause()
    assert [one["code"] for one in editor.answer(asked)["result"]["items"]] == ["PB201"]


def test_changes_for_thousands_of_findings_are_not_offered_at_once(tmp_path: Path) -> None:
    editor = Editor(tmp_path)
    inputs = "".join(f"- `i{number}` (string): x\n" for number in range(400))
    place = editor.open("note.playbook.md", f"# Note\n\n## INPUTS\n\n{inputs}\n## STEP 1: Say\n\nSay it.\n")
    assert len(editor.codes("note.playbook.md")) == 400
    whole = {"start": {"line": 0, "character": 0}, "end": {"line": 500, "character": 0}}
    offered = editor.ask(
        "textDocument/codeAction",
        {"textDocument": place["textDocument"], "range": whole, "context": {"diagnostics": []}},
    )
    assert 0 < sum(len(one.get("diagnostics", [])) for one in offered) <= 2_500


def test_findings_that_cannot_be_written_end_neither_the_session_nor_the_other_checks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from quire.lsp import wire

    written = wire.diagnostic

    def broken(text: Any, found: Any, desk: Any) -> Any:
        if "bad" in text.name:
            raise ZeroDivisionError("a mistake")
        return written(text, found, desk)

    monkeypatch.setattr(wire, "diagnostic", broken)
    editor = Editor(tmp_path)
    editor.open("bad.playbook.md", PLAYBOOK)
    editor.open("good.playbook.md", PLAYBOOK)
    editor.pause()
    assert editor.codes("good.playbook.md") == ["PB201"]
    logged = [one["params"]["message"] for one in editor.messages if one["method"] == "window/logMessage"]
    assert logged
    assert all("failed: ZeroDivisionError" in one for one in logged)


@as_root
@pytest.mark.parametrize("name", ["quire.toml", ".quire", ".mcp.json"])
def test_a_workspace_of_another_account_is_not_read_and_does_not_end_the_session(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    path = folder / name
    path.mkdir() if name == ".quire" else path.write_text('[models]\ndefault = "scripted:theirs"\n')
    os.chown(path, STRANGER, STRANGER)
    with language_server(folder) as server:
        server.begin(folder)
        server.open(folder / "note.playbook.md", PLAYBOOK)
        assert server.findings(folder / "note.playbook.md") == ["PB201"]
        start = {
            "textDocument": {"uri": (folder / "note.playbook.md").as_uri()},
            "position": {"line": 4, "character": 8},
        }
        assert "theirs" not in str(server.ask("textDocument/hover", start))
        server.ask("textDocument/references", {**start, "context": {"includeDeclaration": True}})


def test_one_file_of_a_large_folder_does_not_search_the_folders_below(tmp_path: Path) -> None:
    given({"below/other.playbook.md": PLAYBOOK, "beside.playbook.md": PLAYBOOK}, tmp_path)
    alone = Editor(tmp_path / "elsewhere")
    alone.folder = tmp_path
    alone.open("note.playbook.md", PLAYBOOK)
    files = alone.session.desk.folder_of(str(tmp_path / "note.playbook.md")).files
    assert [Path(one).name for one in files] == ["beside.playbook.md", "note.playbook.md"]
    opened = Editor(tmp_path).session.desk.folder_of(str(tmp_path / "note.playbook.md")).files
    assert [Path(one).name for one in opened] == ["beside.playbook.md", "other.playbook.md"]


def test_a_huge_workspace_is_searched_up_to_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from quire.lsp import desk

    monkeypatch.setattr(desk, "MOST_FILES", 3)
    for number in range(2):
        (tmp_path / f"part{number}").mkdir()
        for other in range(2):
            (tmp_path / f"part{number}" / f"note{other}.playbook.md").write_text(PLAYBOOK)
    files = Editor(tmp_path).session.desk.folder_of(str(tmp_path / "note.playbook.md")).files
    assert [Path(one).name for one in files] == ["note0.playbook.md", "note1.playbook.md", "note0.playbook.md"]


@pytest.fixture
def tempting(tmp_path: Path) -> Path:
    """A workspace that leads to a file outside in every way that there is."""
    outside, work = tmp_path / "outside", tmp_path / "work"
    (work / "prompts").mkdir(parents=True)
    given({"secret.md": "do not show this\n"}, outside)
    (work / "link.md").symlink_to(outside / "secret.md")
    (work / "folder").symlink_to(outside)
    (work / "prompts" / "linked.md").symlink_to(outside / "secret.md")
    return given({"quire.toml": '[prompts]\nfolders = ["../outside"]\n'}, work)


@pytest.mark.parametrize(
    "reference",
    [
        "file:link.md",
        "file:folder/secret.md",
        "file:../outside/secret.md",
        "library:linked",
        "library:secret",
        "library:../../outside/secret",
    ],
)
def test_prompts_outside_of_the_workspace_are_not_shown(tempting: Path, reference: str) -> None:
    editor = Editor(tempting)
    place = editor.open(
        "note.playbook.md", f"# Note\n\n## STEP 1: Say\n\n@prompt({reference[:-2]}\u2038{reference[-2:]})\n"
    )
    assert "do not show" not in str(editor.ask("textDocument/hover", place))
    assert not editor.ask("textDocument/definition", place)
    assert not editor.ask("textDocument/documentLink", place)


def test_names_of_a_folder_outside_are_not_proposed(tempting: Path) -> None:
    editor = Editor(tempting)
    place = editor.open("note.playbook.md", "# Note\n\n## STEP 1: Say\n\n@prompt(file:folder/\u2038)\n")
    assert "secret" not in str(editor.ask("textDocument/completion", place))
    place = editor.open("other.playbook.md", "# Note\n\n## STEP 1: Say\n\n@prompt(library:\u2038)\n")
    assert "'secret'" not in str(editor.ask("textDocument/completion", place))
