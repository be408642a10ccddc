"""The language operation: what a session answers, and what it refuses."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest
from tests.server.served import Served, served

from quire.lsp.session import Session
from quire.server.handlers import language_sessions as language
from quire.server.site import SiteOptions
from quire.source import OPEN_TEXTS

pytestmark = pytest.mark.asyncio(loop_scope="session")

TEXT = """# Notes

## INPUTS

- `version` (string): The version

## STEP 1: Draft

Write about {{version}} for {{reader}}.
"""
ID = "flows/notes.playbook.md"
FILES = {ID: TEXT, "other.playbook.md": "# Other\n\n## STEP 1: A\n\nSay no.\n"}
EDIT = SiteOptions(edit=True)
READER = {"line": 8, "character": 31}
VERSION = {"line": 8, "character": 15}


def opened(text: str = TEXT, **more: Any) -> dict[str, Any]:
    document = {"uri": "file:///etc/passwd", "version": 1, "text": text, **more}
    return {"method": "textDocument/didOpen", "params": {"textDocument": document}}


def asked(method: str, id: int = 1, **params: Any) -> dict[str, Any]:
    return {"id": id, "method": f"textDocument/{method}", "params": {"textDocument": {"uri": "file:///x"}, **params}}


def changed(version: int, line: int, start: int, end: int, text: str) -> dict[str, Any]:
    place = {"start": {"line": line, "character": start}, "end": {"line": line, "character": end}}
    change = {"range": place, "text": text}
    document = {"uri": "file:///x", "version": version}
    return {"method": "textDocument/didChange", "params": {"textDocument": document, "contentChanges": [change]}}


async def post(
    server: Served, *messages: object, tab: str = "tab", id: str = ID, status: int = 200
) -> list[dict[str, Any]]:
    async with server.client() as client:
        answer = await client.post(f"/documents/{id}/language", json={"session": tab, "messages": list(messages)})
        assert answer.status_code == status, answer.text
        return answer.json()["messages"] if status == 200 else [answer.json()]


def codes(messages: list[dict[str, Any]]) -> list[str]:
    """The codes of the last findings that were told."""
    told = [one["params"]["diagnostics"] for one in messages if one.get("method") == "textDocument/publishDiagnostics"]
    return [finding["code"] for finding in told[-1]]


def result(messages: list[dict[str, Any]], id: int = 1) -> Any:
    return next(one["result"] for one in messages if one.get("id") == id)


async def test_an_edited_text_has_findings_completions_and_fixes(tmp_path: Path) -> None:
    async with served(tmp_path / "team", FILES, options=EDIT) as server:
        assert codes(await post(server, opened())) == ["PB201"]
        hover = result(await post(server, asked("hover", position=VERSION)))
        assert "version" in hover["contents"]["value"]
        offers = result(await post(server, asked("completion", position={"line": 8, "character": 30})))["items"]
        assert "version" in [one["label"] for one in offers]
        assert codes(await post(server, changed(2, 8, 30, 36, "versio"))) == ["PB201"]
        whole = {"start": READER, "end": READER}
        (fix, *_) = result(await post(server, asked("codeAction", range=whole, context={"diagnostics": []})))
        assert fix["edit"]["changes"][ID][0]["newText"] == "version"
        assert codes(await post(server, changed(3, 8, 30, 36, "version"))) == []
        lenses = result(await post(server, asked("codeLens")))
        assert {"title": "Prompt", "command": "quire.showPrompt", "arguments": [ID, "1"]} in [
            lens["command"] for lens in lenses
        ]
        place = result(await post(server, asked("definition", position=VERSION)))
        assert ID in str(place) and "file:" not in str(place)
        tokens = result(await post(server, asked("semanticTokens/full")))
        assert len(tokens["data"]) >= 20 and len(tokens["data"]) % 5 == 0
        # The unsaved text is that of the session alone.
        assert (server.folder / ID).read_text() == TEXT
        assert not OPEN_TEXTS
        async with server.client() as client:
            data = (await client.get(f"/documents/{ID}?fields=source,diagnostics")).json()
        assert data["source"]["text"] == TEXT and [one["code"] for one in data["diagnostics"]] == ["PB201"]


async def test_without_edit_the_text_is_that_of_the_file(tmp_path: Path) -> None:
    async with served(tmp_path / "team", FILES) as server:
        assert codes(await post(server, opened("# Another text"))) == ["PB201"]
        assert "version" in result(await post(server, asked("hover", position=VERSION)))["contents"]["value"]
        assert result(await post(server, asked("semanticTokens/full")))["data"]
        for message in (changed(2, 0, 0, 0, "x"), asked("completion"), asked("codeAction"), asked("codeLens")):
            (problem,) = await post(server, message, status=422)
            assert "is not allowed here" in problem["detail"]


@pytest.mark.parametrize(
    "message",
    [
        asked("rename"),
        asked("formatting"),
        {"id": 1, "method": "workspace/executeCommand", "params": {"command": "quire.test", "textDocument": {}}},
        {"id": 1, "method": "workspace/symbol", "params": {"textDocument": {}}},
        {"id": 1, "method": "initialize", "params": {"textDocument": {}}},
        {"id": 1, "method": "shutdown", "params": {"textDocument": {}}},
        {"method": "exit", "params": {"textDocument": {}}},
        {"method": "$/cancelRequest", "params": {"id": 1, "textDocument": {}}},
        {"method": "textDocument/hover", "params": {"textDocument": {}}},
        {"id": 1, "method": "textDocument/hover"},
        {"id": [], "method": "textDocument/hover", "params": {"textDocument": {}}},
        {"id": 1, "method": "textDocument/hover", "params": {"textDocument": "file:///etc/passwd"}},
        {"id": 1, "method": ["textDocument/hover"], "params": {"textDocument": {}}},
        {"id": 1, "result": {}},
        opened("x" * 200_001),
        opened() | {"id": 5},
        "didOpen",
    ],
    ids=str,
)
async def test_other_messages_are_refused(tmp_path: Path, message: object) -> None:
    async with served(tmp_path / "team", FILES, options=EDIT) as server:
        await post(server, message, status=422)
        assert codes(await post(server, opened())) == ["PB201"]


async def test_a_session_belongs_to_one_tab_and_one_document(tmp_path: Path) -> None:
    async with served(tmp_path / "team", FILES, options=EDIT) as server:
        (problem,) = await post(server, asked("hover", position=VERSION), status=409)
        assert problem["code"] == "no-session"
        await post(server, opened())
        await post(server, asked("hover", position=VERSION), tab="other", status=409)
        await post(server, asked("hover", position=VERSION), id="other.playbook.md", status=409)
        await post(server, opened(), tab="t" * 65, status=422)
        await post(server, opened(), tab="", status=422)
        await post(server, opened(), id="../outside.playbook.md", status=404)
        await post(server, *[asked("hover", id, position=VERSION) for id in range(101)], status=422)
        many = await post(server, *[asked("hover", id, position=VERSION) for id in range(100)])
        assert sorted(one["id"] for one in many) == list(range(100))


async def test_the_ninth_session_takes_the_place_of_the_oldest(tmp_path: Path) -> None:
    async with served(tmp_path / "team", FILES, options=EDIT) as server:
        for tab in range(9):
            await post(server, opened(), tab=f"tab {tab}")
        assert len(server.site.languages._sessions) == 8
        await post(server, asked("hover", position=VERSION), tab="tab 0", status=409)
        await post(server, asked("hover", position=VERSION), tab="tab 1")


async def test_a_session_ends_when_nothing_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language, "IDLE_SECONDS", 0.05)
    async with served(tmp_path / "team", FILES, options=EDIT) as server:
        await post(server, opened())
        (session,) = server.site.languages._sessions.values()
        while not session.is_ended:
            await asyncio.sleep(0.01)
        await post(server, asked("hover", position=VERSION), status=409)


async def test_a_text_that_grows_too_large_ends_the_session(tmp_path: Path) -> None:
    async with served(tmp_path / "team", FILES, options=EDIT) as server:
        await post(server, opened())
        for version in range(2, 5):
            await post(server, changed(version, 0, 0, 0, "x" * 70_000))
        await post(server, asked("hover", position=VERSION), status=409)


async def test_a_slow_document_keeps_no_other_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = Session.work

    def slow(session: Any) -> Any:
        if any("notes" in uri for uri in session.desk.documents):
            time.sleep(5)  # the session's own thread
        return work(session)

    async with served(tmp_path / "team", FILES, options=EDIT) as server:
        monkeypatch.setattr(Session, "work", slow)
        began = time.monotonic()
        waiting = [asyncio.create_task(post(server, opened(), tab=f"slow {at}")) for at in range(4)]
        await asyncio.sleep(0.1)
        other = await post(server, opened(FILES["other.playbook.md"]), id="other.playbook.md")
        assert codes(other) == []
        assert time.monotonic() - began < 2
        await asyncio.gather(*waiting)
        assert time.monotonic() - began < 4.5


async def test_hostile_texts_are_answered(tmp_path: Path) -> None:
    texts = ["\0", "\ud800", "{{" * 9_000, "# " + "<b>" * 9_000, "- " * 9_000, "a: &a [*a]", "\u202e" * 500, ""]
    async with served(tmp_path / "team", FILES, options=EDIT) as server:
        for at, text in enumerate(texts):
            far = {"line": 10**9, "character": -5}
            async with server.client() as client:
                messages = [opened(text), asked("hover", position=far), asked("semanticTokens/full", 2)]
                body = {"session": f"tab {at}", "messages": messages}
                headers = {"Content-Type": "application/json"}
                answer = await client.post(f"/documents/{ID}/language", content=json.dumps(body), headers=headers)
            assert answer.status_code in (200, 400), (text[:9], answer.text)
