"""The progress of work in the background: shown if it takes long, never to an editor that cannot show it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.lsp.editor import CAPABILITIES, PULLING, Editor
from tests.lsp.language_server import LanguageServer, language_server

from quire.lsp.jobs import Job, packed

NOTE = "# Note\n\n## STEP 1: Say\n\nSay {{name}}.\n"
ABLE = {"window": {"workDoneProgress": True}}


def forking(folder: Path, capabilities: Any) -> Editor:
    editor = Editor(folder, capabilities)
    editor.session._forks = True
    editor.session._checks = None
    editor.write("note.playbook.md", NOTE)
    editor.messages.clear()
    return editor


@pytest.fixture
def able(editor: Editor) -> Editor:
    """An editor that can show progress, and whose jobs are done by hand."""
    return forking(editor.folder, {**CAPABILITIES, **ABLE})


def survey(editor: Editor) -> Job:
    """Begin a survey, and return its job."""
    editor.session.checks.survey.files_changed()
    return wait_for_job(editor)


def wait_for_job(editor: Editor) -> Job:
    while True:
        wait = editor.session.wait
        assert wait is not None, "there is no job"
        editor.now += wait
        job = editor.session.work()
        if job is not None:
            return job


def pass_time(editor: Editor, seconds: float) -> None:
    editor.now += seconds
    while editor.session.wait == 0:
        assert editor.session.work() is None
    editor._settle()


def shown(editor: Editor) -> list[tuple[object, str, object]]:
    """Return the steps of all progress: token, kind and message."""
    values = [one["params"] for one in editor.messages if one["method"] == "$/progress"]
    return [(one["token"], one["value"]["kind"], one["value"].get("message")) for one in values]


def created(editor: Editor) -> str:
    """Return the token of the place that the server has asked for."""
    (token,) = [one["params"]["token"] for one in editor.messages if one["method"] == "window/workDoneProgress/create"]
    return str(token)


def test_a_survey_that_takes_long_is_shown(able: Editor) -> None:
    job = survey(able)
    job.heard(packed((1, 4)))
    pass_time(able, 0.51)
    token = created(able)
    assert shown(able) == [], "nothing is shown before the editor has made a place"
    able.session.take({"id": token, "result": None})
    able._settle()
    job.heard(packed((2, 4)))
    able._settle()
    job.done(job.run())
    able._settle()
    assert shown(able) == [(token, "begin", "1 of 4"), (token, "report", "2 of 4"), (token, "end", None)]
    begin = next(one["params"]["value"] for one in able.messages if one["method"] == "$/progress")
    assert (begin["title"], begin["cancellable"], begin["percentage"]) == ("Quire: check documents", True, 25)
    assert able.codes("note.playbook.md") == ["PB201"]


def test_a_short_survey_is_not_shown(able: Editor) -> None:
    job = survey(able)
    pass_time(able, 0.49)
    job.done(job.run())
    pass_time(able, 5.0)
    assert "window/workDoneProgress/create" not in [one["method"] for one in able.messages]
    assert shown(able) == []


def test_an_editor_that_cannot_show_progress_is_sent_none(editor: Editor) -> None:
    unable = forking(editor.folder, CAPABILITIES)
    job = survey(unable)
    pass_time(unable, 5.0)
    job.heard(packed((1, 4)))
    job.done(job.run())
    unable._settle()
    assert {one["method"] for one in unable.messages} == {"textDocument/publishDiagnostics"}


@pytest.mark.parametrize("ended_first", [True, False])
def test_a_place_that_the_editor_refuses_or_makes_too_late(able: Editor, ended_first: bool) -> None:
    job = survey(able)
    pass_time(able, 0.51)
    token = created(able)
    if ended_first:
        job.done(job.run())
        able.session.take({"id": token, "result": None})
        able._settle()
        assert [kind for _, kind, _ in shown(able)] == ["begin", "end"]
    else:
        able.session.take({"id": token, "error": {"code": 1, "message": "no"}})
        able._settle()
        job.done(job.run())
        able._settle()
        assert shown(able) == []


def test_a_user_stops_a_survey(able: Editor) -> None:
    job = survey(able)
    pass_time(able, 0.51)
    token = created(able)
    able.session.take({"id": token, "result": None})
    able._settle()
    able.tell("window/workDoneProgress/cancel", {"token": "another"})
    assert not job.is_old()
    able.tell("window/workDoneProgress/cancel", {"token": token})
    assert job.is_old()
    job.done(None)
    pass_time(able, 5.0)
    assert [kind for _, kind, _ in shown(able)] == ["begin", "end"]
    assert "window/logMessage" not in [one["method"] for one in able.messages]
    again = survey(able)
    assert not again.is_old()
    again.done(again.run())
    able._settle()
    assert able.codes("note.playbook.md") == ["PB201"]


@pytest.mark.parametrize("cancelled", [True, False])
def test_a_request_for_all_findings_brings_its_own_token(editor: Editor, cancelled: bool) -> None:
    pulling = forking(editor.folder, PULLING)
    request = pulling.begin("workspace/diagnostic", {"previousResultIds": [], "workDoneToken": 7})
    job = wait_for_job(pulling)
    pass_time(pulling, 0.51)
    assert shown(pulling) == [(7, "begin", None)]
    if cancelled:
        pulling.session.take({"method": "$/cancelRequest", "params": {"id": request}})
        pulling._settle()
        assert shown(pulling) == [(7, "begin", None), (7, "end", None)]
    job.done(job.run())
    pulling._settle()
    assert shown(pulling) == [(7, "begin", None), (7, "end", None)]
    assert ("error" in pulling.answer(request)) == cancelled


def test_an_editor_without_progress_that_cancels_its_request_is_sent_none(editor: Editor) -> None:
    pulling = forking(editor.folder, PULLING)
    request = pulling.begin("workspace/diagnostic", {"previousResultIds": [], "workDoneToken": 7})
    job = wait_for_job(pulling)
    pulling.session.take({"method": "$/cancelRequest", "params": {"id": request}})
    pass_time(pulling, 5.0)
    job.done(job.run())
    pulling._settle()
    assert pulling.messages == []


TEST = "cases:\n  - name: one\n    model: [Yes]\n    expect: {output: Yes}\n"


@pytest.mark.parametrize("token", [None, "mine"])
def test_a_run_of_tests_is_shown_and_can_be_stopped(able: Editor, token: str | None) -> None:
    able.write("note.playbook.md", NOTE.replace("{{name}}", "yes"))
    able.write("note.test.yaml", TEST)
    params: dict[str, Any] = {"command": "quire.test", "arguments": [able.uri("note.playbook.md")]}
    request = able.begin("workspace/executeCommand", {**params, **({"workDoneToken": token} if token else {})})
    job = wait_for_job(able)
    pass_time(able, 0.1)
    assert shown(able) == []
    able.now += 0.41
    assert able.session.work() is None
    for message in able.session.sent():
        able.messages.append(message)
    if token is None:
        token = created(able)
        able.session.take({"id": token, "result": None})
        able.session.work()
    able.messages += able.session.sent()
    assert shown(able) == [(token, "begin", None)]
    able.session.take({"method": "window/workDoneProgress/cancel", "params": {"token": token}})
    able.session.work()
    assert job.is_old()
    job.done(None)
    answer = able.answer(request)
    assert answer["error"]["code"] == -32800
    assert [kind for _, kind, _ in shown(able)] == ["begin", "end"]


# A real process


def values(server: LanguageServer, kind: str) -> list[dict[str, Any]]:
    """Read messages until there is a progress of a kind, and return all of them."""
    found: list[dict[str, Any]] = []
    while not found or found[-1]["kind"] != kind:
        message = server.receive()
        server.told.append(message)
        if message.get("method") == "window/workDoneProgress/create":
            server.send({"id": message["id"], "result": None})
        elif message.get("method") == "$/progress":
            found.append(message["params"]["value"])
    return found


def test_a_real_survey_is_shown_and_stopped(editor: Editor) -> None:
    for number in range(3_000):
        (editor.folder / f"note{number}.md").write_text(NOTE)
    with language_server(editor.folder) as server:
        server.begin(editor.folder, ABLE)
        begun = values(server, "report")
        assert begun[0]["kind"] == "begin"
        assert begun[-1]["message"].endswith(" of 3,001")
        token = next(one for one in server.told if one.get("method") == "$/progress")["params"]["token"]
        server.send({"method": "window/workDoneProgress/cancel", "params": {"token": token}})
        values(server, "end")
        server.ask("workspace/symbol", {"query": "nothing of this name"})
        assert "textDocument/publishDiagnostics" not in [one.get("method") for one in server.told]
