"""When documents are checked, and what the editor is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.lsp.editor import PULLING, Editor

from quire.lsp import checks

GOOD = "# Note\n\n## STEP 1: Say\n\nSay something.\n"
BAD = GOOD.replace("something", "{{name}}")
CALLEE = "pipeline: callee\nsteps:\n  - transform: {value: ctx.text}\n"
CALLER = "pipeline: caller\nsteps:\n  - call: {pipeline: callee, pass: [text]}\n"


def published(editor: Editor, name: str) -> list[list[str]]:
    uri = editor.uri(name)
    return [
        [item["code"] for item in one["params"]["diagnostics"]]
        for one in editor.messages
        if one["method"] == "textDocument/publishDiagnostics" and one["params"]["uri"] == uri
    ]


def test_findings_come_and_go_with_the_text(editor: Editor) -> None:
    editor.open("note.playbook.md", BAD)
    assert editor.codes("note.playbook.md") == ["PB201"]
    editor.replace("note.playbook.md", GOOD)
    assert editor.codes("note.playbook.md") == []


def test_a_finding_has_its_place_help_and_severity(editor: Editor) -> None:
    editor.open("note.playbook.md", BAD)
    (found,) = editor.findings("note.playbook.md")
    assert (found["severity"], found["source"]) == (3, "quire")
    assert found["range"]["start"]["line"] == 4
    assert "help: " in found["message"]


def test_a_closed_document_has_no_findings_of_its_text(editor: Editor) -> None:
    editor.open("note.playbook.md", BAD)
    editor.pause()
    editor.tell("textDocument/didClose", {"textDocument": {"uri": editor.uri("note.playbook.md")}})
    assert published(editor, "note.playbook.md")[-1] == []


def test_a_new_finding_at_the_cursor_waits_for_a_pause(editor: Editor) -> None:
    editor.open("note.playbook.md", GOOD)
    editor.pause()
    editor.type("note.playbook.md", len(GOOD) - 2, " {{x}}")
    assert published(editor, "note.playbook.md")[-1] == []
    editor.type("note.playbook.md", len(GOOD) + 2, "y")
    assert published(editor, "note.playbook.md")[-1] == []
    editor.pause(0.31)
    assert published(editor, "note.playbook.md")[-1] == ["PB201"]


def test_a_known_finding_at_the_cursor_stays(editor: Editor) -> None:
    editor.open("note.playbook.md", BAD)
    editor.pause()
    editor.type("note.playbook.md", BAD.index("{{name}}") + 8, ",")
    assert published(editor, "note.playbook.md")[-1] == ["PB201"]


def test_an_unsaved_callee_counts_for_its_callers(editor: Editor) -> None:
    editor.write("pipelines/callee.yaml", CALLEE)
    editor.open("caller.yaml", CALLER)
    before = editor.codes("caller.yaml")
    editor.open("pipelines/callee.yaml", CALLEE.replace("pipeline: callee", "pipeline: renamed"))
    assert editor.codes("caller.yaml") != before
    editor.replace("pipelines/callee.yaml", CALLEE)
    assert editor.codes("caller.yaml") == before
    editor.replace("pipelines/callee.yaml", CALLEE.replace("pipeline: callee", "pipeline: renamed"))
    editor.tell("textDocument/didClose", {"textDocument": {"uri": editor.uri("pipelines/callee.yaml")}})
    assert editor.codes("caller.yaml") == before


def test_a_file_that_changes_on_disk_counts(editor: Editor) -> None:
    path = editor.write("pipelines/callee.yaml", CALLEE)
    editor.open("caller.yaml", CALLER)
    before = editor.codes("caller.yaml")
    path.unlink()
    editor.tell(
        "workspace/didChangeWatchedFiles", {"changes": [{"uri": editor.uri("pipelines/callee.yaml"), "type": 3}]}
    )
    assert editor.codes("caller.yaml") != before


def test_documents_that_are_not_open_are_checked_too(editor: Editor) -> None:
    editor.write("closed.playbook.md", BAD)
    editor.write("fine.playbook.md", GOOD)
    editor.tell("workspace/didChangeWatchedFiles", {"changes": []})
    assert editor.codes("closed.playbook.md") == ["PB201"]
    assert published(editor, "fine.playbook.md") == []


def test_a_document_can_change_its_format(editor: Editor) -> None:
    editor.open("any.md", GOOD)
    assert editor.codes("any.md") == []
    directive = '# D\n\n```xml\n<directive name="d" version="1.0.0">\n</directive>\n```\n'
    editor.replace("any.md", directive)
    assert {code[:2] for code in editor.codes("any.md")} == {"DR"}
    editor.replace("any.md", GOOD)
    assert editor.codes("any.md") == []


def test_settings_that_cannot_be_read_leave_the_document_its_own_findings(editor: Editor) -> None:
    editor.write("quire.toml", "[runs\n")
    editor.open("caller.yaml", CALLER.replace("steps:", "stepz:"))
    assert any(code.startswith("PL") for code in editor.codes("caller.yaml"))


def test_an_empty_text_is_not_a_mistake_of_ours(editor: Editor) -> None:
    for name in ("note.playbook.md", "some.yaml", "x.test.yaml", ".ai/directives/d.md", "plain.txt"):
        editor.open(name, "")
        editor.pause()
    assert [one for one in editor.messages if one["method"] == "window/logMessage"] == []


# Editors that ask


@pytest.fixture
def pulling(editor: Editor) -> Editor:
    return Editor(editor.folder, PULLING)


def pull(editor: Editor, name: str, known: str = "") -> Any:
    return editor.ask("textDocument/diagnostic", {"textDocument": {"uri": editor.uri(name)}, "previousResultId": known})


def test_an_editor_that_asks_is_not_told(pulling: Editor) -> None:
    pulling.open("note.playbook.md", BAD)
    pulling.pause()
    assert pulling.messages == []
    report = pull(pulling, "note.playbook.md")
    assert [one["code"] for one in report["items"]] == ["PB201"]
    assert pull(pulling, "note.playbook.md", report["resultId"])["kind"] == "unchanged"
    pulling.replace("note.playbook.md", GOOD)
    assert pull(pulling, "note.playbook.md", report["resultId"])["items"] == []


def test_a_request_for_all_documents_waits_until_there_is_something_new(pulling: Editor) -> None:
    pulling.write("closed.playbook.md", BAD)
    request = pulling.begin("workspace/diagnostic", {"previousResultIds": []})
    pulling.pause()
    (first,) = [one for one in pulling.answer(request)["result"]["items"] if one["uri"].endswith("closed.playbook.md")]
    assert [one["code"] for one in first["items"]] == ["PB201"]
    known = [{"uri": first["uri"], "value": first["resultId"]}]
    request = pulling.begin("workspace/diagnostic", {"previousResultIds": known})
    pulling.pause()
    assert not pulling.has_answer(request)
    pulling.write("closed.playbook.md", GOOD)
    pulling.tell("workspace/didChangeWatchedFiles", {"changes": []})
    pulling.pause()
    (second,) = pulling.answer(request)["result"]["items"]
    assert second["items"] == []


# Documents that take long


def test_a_slow_document_is_checked_in_a_job_and_only_its_newest_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "QUICK_SECONDS", -1.0)
    monkeypatch.chdir(tmp_path)
    editor = Editor(tmp_path)
    editor.session._forks = True
    editor.session._checks = None
    editor.open("note.playbook.md", BAD)
    editor.pause(0.2)
    assert published(editor, "note.playbook.md") == [["PB201"]]
    editor.replace("note.playbook.md", BAD)
    editor.pause(0.5)
    editor.session.take(
        {
            "method": "textDocument/didChange",
            "params": {
                "textDocument": {"uri": editor.uri("note.playbook.md"), "version": 2},
                "contentChanges": [{"text": GOOD}],
            },
        }
    )
    editor.session.work()
    editor.now += 0.03
    job = editor.session.work()
    assert job is not None
    result = job.run()
    editor.replace("note.playbook.md", BAD)
    assert job.is_old()
    job.done(result)
    editor.pause()
    assert published(editor, "note.playbook.md")[-1] == ["PB201"]
