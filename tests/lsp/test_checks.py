"""When documents are checked, and what the editor is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.lsp.editor import CAPABILITIES, PULLING, Editor

from quire.library.check import all_codes
from quire.lsp import checks, wire
from quire.lsp.findings import thorough_findings
from quire.lsp.jobs import Job

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


def test_a_part_without_effect_is_shown_faded(editor: Editor) -> None:
    editor.open("note.playbook.md", GOOD.replace("## STEP", "## INPUTS\n\n- `idle` (string): Not read.\n\n## STEP"))
    (found,) = editor.findings("note.playbook.md")
    assert (found["code"], found["tags"]) == ("PB203", [1])
    editor.replace("note.playbook.md", BAD)
    assert "tags" not in editor.findings("note.playbook.md")[0]


def test_codes_of_parts_without_effect_exist() -> None:
    assert {code.id for code in all_codes()} >= wire._WITHOUT_EFFECT


def test_a_closed_document_has_no_findings_of_its_text(editor: Editor) -> None:
    editor.open("note.playbook.md", BAD)
    editor.pause()
    editor.tell("textDocument/didClose", {"textDocument": {"uri": editor.uri("note.playbook.md")}})
    assert published(editor, "note.playbook.md")[-1] == []


def close(editor: Editor, name: str) -> None:
    editor.tell("textDocument/didClose", {"textDocument": {"uri": editor.uri(name)}})


@pytest.mark.parametrize("changed", [BAD, BAD + "\nAnd {{more}}.\n", GOOD])
def test_the_findings_about_the_file_come_back_when_it_is_closed(editor: Editor, changed: str) -> None:
    editor.write("note.playbook.md", BAD)
    editor.tell("workspace/didChangeWatchedFiles", {"changes": []})
    assert editor.codes("note.playbook.md") == ["PB201"]
    for _ in range(2):
        editor.open("note.playbook.md", BAD)
        editor.pause()
        editor.replace("note.playbook.md", changed)
        editor.pause()
        close(editor, "note.playbook.md")
        if changed == BAD:
            assert published(editor, "note.playbook.md")[-1] == ["PB201"], "they disappear for a moment"
        assert editor.codes("note.playbook.md") == ["PB201"]
    (editor.folder / "note.playbook.md").unlink()
    editor.tell("workspace/didChangeWatchedFiles", {"changes": []})
    assert editor.codes("note.playbook.md") == []


def test_a_document_that_is_closed_during_a_survey_keeps_its_findings(editor: Editor) -> None:
    editor.session._forks = True
    editor.session._checks = None
    editor.write("note.playbook.md", BAD)
    editor.open("note.playbook.md", BAD)
    editor.pause(0.2)
    editor.session.checks.survey.files_changed()
    (job,) = jobs_of(editor, 30)
    result = job.run()
    close(editor, "note.playbook.md")
    job.done(result)
    editor._settle()
    assert published(editor, "note.playbook.md")[-1] == ["PB201"]
    editor.pause()
    assert [codes for codes in published(editor, "note.playbook.md") if not codes] == []


def test_an_address_that_the_editor_writes_in_another_way_is_kept(editor: Editor) -> None:
    path = editor.write("note.playbook.md", BAD)
    uri = editor.uri("note.playbook.md").replace("note", "n%6Fte")
    item = {"uri": uri, "languageId": "", "version": 1, "text": BAD}
    editor.tell("textDocument/didOpen", {"textDocument": item})
    editor.pause()
    editor.tell("textDocument/didClose", {"textDocument": {"uri": uri}})
    path.write_text(GOOD)
    editor.pause()
    told = [one["params"] for one in editor.messages if one["method"] == "textDocument/publishDiagnostics"]
    assert {one["uri"] for one in told} == {uri}
    assert told[-1]["diagnostics"] == []


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


def test_an_editor_that_asks_gets_the_findings_about_a_file_that_it_has_closed(pulling: Editor) -> None:
    pulling.write("note.playbook.md", BAD)
    request = pulling.begin("workspace/diagnostic", {"previousResultIds": []})
    pulling.pause()
    (first,) = [one for one in pulling.answer(request)["result"]["items"] if one["uri"].endswith("note.playbook.md")]
    known = [{"uri": first["uri"], "value": first["resultId"]}]
    pulling.open("note.playbook.md", GOOD)
    pulling.tell("workspace/didChangeWatchedFiles", {"changes": []})
    pulling.pause()
    assert pull(pulling, "note.playbook.md")["items"] == []
    close(pulling, "note.playbook.md")
    # VS Code asks a last time for the document that it has closed, and then for all documents.
    last = pulling.begin("textDocument/diagnostic", {"textDocument": {"uri": pulling.uri("note.playbook.md")}})
    every = pulling.begin("workspace/diagnostic", {"previousResultIds": known})
    assert not pulling.has_answer(last)
    pulling.pause()
    assert [one["code"] for one in pulling.answer(last)["result"]["items"]] == ["PB201"]
    told = pulling.answer(every)["result"]["items"] if pulling.has_answer(every) else []
    assert [one for one in told if one.get("items") == [] and one["uri"] == first["uri"]] == []


def test_a_request_for_a_document_that_is_closed_meanwhile_is_answered(pulling: Editor) -> None:
    pulling.open("new.playbook.md", BAD)
    pulling.pause()
    close(pulling, "new.playbook.md")
    request = pulling.begin("textDocument/diagnostic", {"textDocument": {"uri": pulling.uri("new.playbook.md")}})
    pulling.pause()
    assert pulling.answer(request)["result"]["items"] == [], "the file does not exist"
    request = pulling.begin("textDocument/diagnostic", {"textDocument": {"uri": pulling.uri("new.playbook.md")}})
    assert pulling.has_answer(request)


# Documents that take long


UNUSED = f"schema: Row\nfields: {{id: {{type: number}}}}\n---\n{CALLEE}"


@pytest.mark.parametrize(
    ("name", "bad", "good", "code"),
    [("note.playbook.md", BAD, GOOD, "PB201"), ("callee.yaml", UNUSED, CALLEE, "PL208")],
)
def test_a_slow_document_is_checked_in_a_job_and_only_its_newest_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, bad: str, good: str, code: str
) -> None:
    monkeypatch.setattr(checks, "SLOW_SECONDS", -1.0)
    monkeypatch.chdir(tmp_path)
    editor = Editor(tmp_path)
    editor.session._forks = True
    editor.session._checks = None
    editor.open(name, bad)
    editor.pause(0.2)
    assert published(editor, name) == [[code]]
    editor.replace(name, bad)
    editor.pause(0.5)
    before = len(published(editor, name))
    editor.session.take(change(editor, name, good))
    editor.session.work()
    editor.now += 0.03
    job = editor.session.work()
    assert job is not None
    result = job.run()
    editor.texts[name] = good
    assert editor.ask("textDocument/documentSymbol", editor.place(name, 0)), "an answer waited for the check"
    assert len(published(editor, name)) == before, "the check was made in this process"
    editor.replace(name, bad)
    assert job.is_old()
    job.done(result)
    editor.pause()
    assert published(editor, name)[before:] == [[code]]


UNREAD = "pipeline: p\ndialect: quire\nsteps:\n  - transform: {value: '1', output: a}\n  - transform: {value: '2'}\n"


def forking(folder: Path, monkeypatch: pytest.MonkeyPatch, *, capabilities: Any = CAPABILITIES) -> Editor:
    """Return an editor whose server finds that every thorough part of a check takes long."""
    monkeypatch.setattr(checks, "QUICK_SECONDS", -1.0)
    monkeypatch.chdir(folder)
    editor = Editor(folder, capabilities)
    editor.session._forks = True
    editor.session._checks = None
    return editor


@pytest.mark.parametrize(
    ("seconds", "jobs"),
    [
        pytest.param([0.05, 0.002, 0.002], 0, id="modules are loaded first"),
        pytest.param([0.002, 0.05, 0.002, 0.05, 0.002], 0, id="other work of the machine"),
        pytest.param([0.05, 0.05, 0.002], 1, id="it takes long"),
        pytest.param([0.05, 0.05, 0.05, 0.002, 0.002], 2, id="it takes long for a while"),
    ],
)
def test_one_slow_check_alone_is_not_a_slow_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: list[float], jobs: int
) -> None:
    """`seconds` are those of the thorough parts, one after the other, here or in another process."""
    monkeypatch.chdir(tmp_path)
    editor = Editor(tmp_path)
    editor.session._forks = True
    editor.session._checks = None
    clock = [0.0]

    def timed(*given: Any) -> Any:
        clock[0] += durations.pop(0)
        return thorough_findings(*given)

    durations = list(seconds)
    monkeypatch.setattr(checks, "process_time", lambda: clock[0])
    monkeypatch.setattr(checks, "thorough_findings", timed)
    editor.open("p.yaml", UNREAD)
    found = jobs_of(editor)
    for number in range(len(seconds) - 1):
        editor.session.take(change(editor, "p.yaml", UNREAD + "\n" * (number + 1)))
        for job in jobs_of(editor):
            found.append(job)
            job.done(job.run())
        editor.pause()
    assert (len(found), durations) == (jobs, [])


def jobs_of(editor: Editor, turns: int = 20) -> list[Job]:
    """Let the time of a job pass without doing it, and return the jobs."""
    found = []
    for _ in range(turns):
        while editor.session.wait == 0:
            job = editor.session.work()
            found += [job] if job is not None else []
        editor.now += 0.02
    return found


def test_what_takes_long_is_moved_until_it_is_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    editor = forking(tmp_path, monkeypatch)
    editor.open("p.yaml", UNREAD)
    editor.pause()
    editor.replace("p.yaml", UNREAD + "\n")
    editor.pause()
    assert published(editor, "p.yaml")[-1] == ["DD104"]
    before = len(published(editor, "p.yaml"))
    editor.session.take(change(editor, "p.yaml", f"# one\n# two\n{UNREAD}"))
    (job,) = jobs_of(editor)
    editor._settle()
    assert published(editor, "p.yaml")[before:] == [["DD104"]]
    assert editor.findings("p.yaml")[0]["range"]["start"]["line"] == 5
    job.done(job.run())
    editor._settle()
    assert len(published(editor, "p.yaml")) == before + 1, "the same findings were told again"
    editor.session.take(change(editor, "p.yaml", UNREAD.replace("'2'", "'a'")))
    (job,) = jobs_of(editor)
    editor._settle()
    assert published(editor, "p.yaml")[-1] == ["DD104"]
    job.done(job.run())
    editor._settle()
    assert published(editor, "p.yaml")[-1] == []


@pytest.mark.parametrize(("capabilities", "told"), [(CAPABILITIES, [["DD104"], []]), (PULLING, [[]])])
def test_quick_findings_come_first_unless_the_editor_has_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capabilities: Any, told: list[list[str]]
) -> None:
    """The thorough part is short enough for this process, but long enough for a user who types to wait."""
    monkeypatch.setattr(checks, "AT_ONCE_SECONDS", -1.0)
    monkeypatch.setattr(checks, "QUICK_SECONDS", 100.0)
    monkeypatch.chdir(tmp_path)
    editor = Editor(tmp_path, capabilities)
    editor.session._forks = True
    editor.session._checks = None
    editor.open("p.yaml", UNREAD)
    editor.pause()
    asked = []
    if capabilities is PULLING:
        asked.append({"id": "ask", "method": "textDocument/diagnostic", "params": editor.place("p.yaml", 0)})
    for message in (change(editor, "p.yaml", UNREAD.replace("'2'", "'a'")), *asked):
        editor.session.take(message)
    codes: list[list[str]] = []
    answers: list[list[str]] = []
    while editor.session.wait == 0:
        assert editor.session.work() is None, "another process was wanted"
        for one in editor.session.sent():
            found: Any = one.get("params") or one.get("result") or {}
            codes += [[item["code"] for item in found["diagnostics"]]] if "diagnostics" in found else []
            answers += [[item["code"] for item in found["items"]]] if "items" in found else []
    assert codes + answers == told


def test_a_request_waits_for_all_findings_if_the_editor_cannot_be_told_to_ask_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor = forking(tmp_path, monkeypatch, capabilities=PULLING)
    editor.open("p.yaml", UNREAD.replace("'2'", "'a'"))
    for text in (UNREAD.replace("'2'", "'a + 1'"), UNREAD):
        editor.session.take(change(editor, "p.yaml", text))
        jobs = jobs_of(editor)
        request = editor.begin("textDocument/diagnostic", {"textDocument": {"uri": editor.uri("p.yaml")}})
        jobs += jobs_of(editor)
        assert editor.has_answer(request) is not bool(jobs)
        for job in jobs:
            job.done(job.run())
        report = editor.answer(request)["result"]
    assert [one["code"] for one in report["items"]] == ["DD104"]


def test_a_mistake_of_a_check_in_another_process_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a mistake")

    editor = forking(tmp_path, monkeypatch)
    editor.open("p.yaml", UNREAD)
    editor.pause()
    editor.replace("p.yaml", UNREAD + "\n")
    editor.pause()
    editor.session.take(change(editor, "p.yaml", UNREAD + "\n\n"))
    (job,) = jobs_of(editor)
    monkeypatch.setattr(checks, "thorough_findings", fail)
    job.done(job.run())
    editor._settle()
    (logged,) = [one["params"]["message"] for one in editor.messages if one["method"] == "window/logMessage"]
    assert "p.yaml failed: RuntimeError: a mistake (test_checks.py:" in logged
    monkeypatch.setattr(checks, "quick_findings", fail)
    editor.replace("p.yaml", GOOD)
    editor.pause()
    assert sum(one["method"] == "window/logMessage" for one in editor.messages) == 2


def change(editor: Editor, name: str, text: str) -> dict[str, Any]:
    params = {"textDocument": {"uri": editor.uri(name), "version": 7}, "contentChanges": [{"text": text}]}
    return {"method": "textDocument/didChange", "params": params}
