"""The life of a session: its beginning and end, requests that are cancelled or wrong, and texts that change."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.lsp.editor import Editor

from quire.lsp.protocol import INVALID_REQUEST, METHOD_NOT_FOUND, NOT_INITIALIZED, REQUEST_CANCELLED
from quire.lsp.session import LOAD_SECONDS, Session

GOOD = "# Note\n\n## STEP 1: Say\n\nSay something.\n"
BAD = GOOD.replace("something", "{{name}}")


def answers(session: Session) -> list[dict[str, object]]:
    while session.wait == 0:
        session.work()
    return session.sent()


def test_nothing_is_answered_before_initialize() -> None:
    session = Session()
    session.take({"id": 1, "method": "textDocument/hover", "params": {}})
    session.take({"method": "textDocument/didOpen", "params": {}})
    (answer,) = answers(session)
    assert answer["error"]["code"] == NOT_INITIALIZED  # type: ignore[index]


@pytest.mark.parametrize(("shut", "code"), [(True, 0), (False, 1)])
def test_exit_says_whether_the_session_was_shut_down(editor: Editor, shut: bool, code: int) -> None:
    if shut:
        assert editor.ask("shutdown", {}) is None
        assert editor.refused("textDocument/hover", {})["code"] == INVALID_REQUEST
    editor.tell("exit", {})
    assert editor.session.ended == code


def test_it_is_initialized_once(editor: Editor) -> None:
    assert editor.refused("initialize", {"capabilities": {}})["code"] == INVALID_REQUEST


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [
        ([], "utf-16"),
        (["utf-16"], "utf-16"),
        (["utf-8", "utf-16"], "utf-8"),
        (["utf-8", "utf-32"], "utf-32"),
        ("x", "utf-16"),
    ],
)
def test_the_encoding_is_agreed_on(tmp_path: Path, offered: object, chosen: str) -> None:
    found = Editor(tmp_path, {"general": {"positionEncodings": offered}}) if isinstance(offered, list) else None
    session = Session()
    session.take(
        {"id": 1, "method": "initialize", "params": {"capabilities": {"general": {"positionEncodings": offered}}}}
    )
    (answer,) = answers(session)
    assert answer["result"]["capabilities"]["positionEncoding"] == chosen  # type: ignore[index]
    assert found is None or found.initialized["capabilities"]["positionEncoding"] == chosen


def test_wrong_messages_are_refused_and_the_session_goes_on(editor: Editor) -> None:
    assert editor.refused("textDocument/nonsense", {})["code"] == METHOD_NOT_FOUND
    assert "names no document" in editor.refused("textDocument/hover", {})["message"]
    editor.session.take({"id": 77})
    editor.session.take({"id": 78, "result": 5})
    editor.tell("textDocument/didChange", {"textDocument": {"uri": editor.uri("unknown.md"), "version": 1}})
    editor.tell("textDocument/didClose", {"textDocument": {"uri": editor.uri("unknown.md")}})
    editor.tell("textDocument/didOpen", {"textDocument": {"uri": 5}})
    editor.tell("$/setTrace", {"value": "off"})
    editor.open("note.playbook.md", BAD)
    assert editor.codes("note.playbook.md") == ["PB201"]


def test_a_request_that_is_cancelled_in_the_queue_is_not_begun(editor: Editor) -> None:
    place = editor.open("note.playbook.md", GOOD)
    request = editor.begin("textDocument/hover", place)
    editor.session.take({"method": "$/cancelRequest", "params": {"id": request}})
    assert editor.answer(request)["error"]["code"] == REQUEST_CANCELLED
    editor.session.take({"method": "$/cancelRequest", "params": {"id": 4711}})
    assert editor.ask("textDocument/documentHighlight", place) is None


def test_a_mistake_of_a_feature_ends_one_request_only(editor: Editor, monkeypatch: pytest.MonkeyPatch) -> None:
    from quire.lsp import languages

    def broken(session: object, params: object) -> None:
        raise ZeroDivisionError("a mistake")

    monkeypatch.setattr(languages, "handler", lambda method: broken)
    assert "ZeroDivisionError" in editor.refused("textDocument/hover", {})["message"]
    logged = [one["params"]["message"] for one in editor.messages if one["method"] == "window/logMessage"]
    assert len(logged) == 1
    assert "test_session.py" in logged[0]


def test_the_files_to_watch_are_registered_where_the_editor_can(tmp_path: Path) -> None:
    can = {"workspace": {"didChangeWatchedFiles": {"dynamicRegistration": True}}}
    (asked,) = Editor(tmp_path, can).messages
    assert asked["method"] == "client/registerCapability"
    assert Editor(tmp_path).messages == []


def test_modules_of_hovers_and_completions_are_loaded_when_the_user_pauses(
    editor: Editor, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[tuple[str, str]] = []
    monkeypatch.setattr("quire.lsp.languages.function", lambda format, module, name: loaded.append((format, module)))
    editor.open("main.yaml", "pipeline: p\nsteps:\n  - transform: {value: '1'}\n")
    editor.pause(LOAD_SECONDS / 2)
    editor.type("main.yaml", 0, "# ")
    editor.pause(LOAD_SECONDS / 2)
    assert loaded == []
    editor.pause(LOAD_SECONDS)
    assert loaded == [("pipeline", "hover"), ("pipeline", "completion")]
    editor.type("main.yaml", 2, "x")
    editor.open("other.yaml", "pipeline: q\nsteps:\n  - transform: {value: '1'}\n")
    editor.pause(1.0)
    assert len(loaded) == 2
