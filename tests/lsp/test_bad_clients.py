"""Editors that do everything wrong, and documents that nobody would write: the session goes on."""

from __future__ import annotations

from typing import Any

import pytest
from tests.lsp.editor import CAPABILITIES, PULLING, Editor
from tests.lsp.every_place import try_everything

from quire.lsp.languages import REQUESTS
from quire.lsp.protocol import REQUEST_CANCELLED, framed

NOTE = "# Note\n\n## INPUTS\n\n- `topic` (string): T.\n\n## STEP 1: Say\n\nSay {{topic}}.\n"
PIPELINE = "pipeline: a\nsteps:\n  - transform: {value: ctx.topic, output: said}\n"
ADDRESSES = (
    *("", "untitled:Untitled-1", "git:/a.playbook.md?x", "http://example.org/a.playbook.md", "file:", "file:///"),
    *(
        "file:///%00.playbook.md",
        "file:///nowhere/at/all/a.playbook.md",
        "file:///" + "a" * 5_000 + ".md",
        "\ud800",
        "//",
    ),
    *("file:///dev/null", "file:///etc", "FILE:///a.yaml", "file://host/share/a.yaml"),
)


def everything(uri: object, position: object) -> list[tuple[str, dict[str, Any]]]:
    """Return all requests about a place, with parameters that fit all of them."""
    place = {
        "textDocument": {"uri": uri},
        "position": position,
        "positions": [position],
        "range": {"start": position, "end": position},
        "context": {"diagnostics": [], "includeDeclaration": True},
        "options": {},
        "newName": "other",
        "query": "a",
        "item": {"data": {"path": "/nowhere/a.yaml", "scope": ""}},
        "files": [{"oldUri": uri, "newUri": uri}],
        "command": "quire.showProof",
        "arguments": [uri],
    }
    item = {"label": "x", "data": {"uri": uri, "resolve": "x"}}
    methods = (*REQUESTS, "textDocument/diagnostic")
    return [(method, item if method == "completionItem/resolve" else place) for method in methods]


def require_alive(editor: Editor) -> None:
    """Everything that was sent can be written, and the next document is checked."""
    for message in editor.messages:
        framed(message)
        assert message["method"] != "window/logMessage", message
    editor.open("alive.playbook.md", NOTE.replace("{{topic}}", "{{name}}"))
    if not editor.session.client.pulls:
        assert "PB201" in editor.codes("alive.playbook.md")


@pytest.mark.parametrize("uri", ADDRESSES)
def test_any_address(editor: Editor, uri: str) -> None:
    for opened in (False, True):
        if opened:
            item = {"uri": uri, "languageId": "", "version": 1, "text": NOTE}
            editor.tell("textDocument/didOpen", {"textDocument": item})
        for method, params in everything(uri, {"line": 8, "character": 8}):
            answer = editor.answer(editor.begin(method, params))
            framed(answer)
            assert answer.get("error", {}).get("code") in (None, -32803, -32602), (method, answer)
        editor.pause()
    require_alive(editor)


def test_documents_that_are_not_open_are_changed_and_closed(editor: Editor) -> None:
    where = {"uri": editor.uri("a.playbook.md"), "version": 3}
    for _ in range(2):
        editor.tell("textDocument/didClose", {"textDocument": where})
        editor.tell("textDocument/didChange", {"textDocument": where, "contentChanges": [{"text": NOTE}]})
        editor.tell("textDocument/didSave", {"textDocument": where})
        assert (
            editor.ask("textDocument/hover", {"textDocument": where, "position": {"line": 1, "character": 1}}) is None
        )
    editor.open("a.playbook.md", NOTE)
    editor.open("a.playbook.md", NOTE.replace("{{topic}}", "{{name}}"))
    assert "PB201" in editor.codes("a.playbook.md")
    require_alive(editor)


@pytest.mark.parametrize("version", [1, 0, -5, 2**40, None, "2", 1.5, True])
def test_versions_that_do_not_rise(editor: Editor, version: object) -> None:
    editor.open("a.playbook.md", NOTE)
    text = NOTE.replace("{{topic}}", "{{name}}")
    where = {"uri": editor.uri("a.playbook.md"), "version": version}
    editor.tell("textDocument/didChange", {"textDocument": where, "contentChanges": [{"text": text}]})
    assert "PB201" in editor.codes("a.playbook.md")
    require_alive(editor)


@pytest.mark.parametrize(
    "changes",
    [
        None,
        [None],
        [{"text": 1}],
        [{"range": {}, "text": "x"}],
        [{"range": {"start": None, "end": None}, "text": "x"}],
        [{"range": {"start": {"line": 9, "character": 9}, "end": {"line": 0, "character": 0}}, "text": "x"}],
        [{"range": {"start": {"line": -1, "character": -1}, "end": {"line": 10**12, "character": 0}}, "text": "x"}],
        [{"range": {"start": {"line": 8, "character": 10**12}, "end": {"line": 8, "character": 10**12}}, "text": "x"}],
    ],
)
def test_changes_of_any_form(editor: Editor, changes: object) -> None:
    editor.open("a.playbook.md", NOTE)
    where = {"uri": editor.uri("a.playbook.md"), "version": 2}
    editor.tell("textDocument/didChange", {"textDocument": where, "contentChanges": changes})
    for method, params in everything(where["uri"], {"line": 10**12, "character": -1}):
        framed(editor.answer(editor.begin(method, params)))
    require_alive(editor)


@pytest.mark.parametrize(
    "name", ["a.playbook.md", "pipelines/a.yaml", ".ai/directives/d.md", "a.test.yaml", "quire.toml"]
)
def test_halves_of_characters(editor: Editor, name: str) -> None:
    """A lone half of a character can come in and never goes out, because it cannot be written as UTF-8."""
    text = (NOTE if name.endswith(".md") else PIPELINE).replace("topic", "to\ud83dpic")
    editor.open(name, text)
    editor.type(name, 2, "\udc00\ud800")
    editor.pause()
    for at in range(0, len(text), 7):
        for method, params in everything(editor.uri(name), editor.place(name, at)["position"]):
            half = {"newName": "x\ud800"} if "newName" in params else {}
            framed(editor.answer(editor.begin(method, {**params, **half})))
    require_alive(editor)


@pytest.mark.parametrize("capabilities", [CAPABILITIES, PULLING], ids=["told", "asked"])
def test_a_client_that_cancels_everything(editor: Editor, capabilities: dict[str, Any]) -> None:
    fresh = Editor(editor.folder, capabilities)
    fresh.write("a.playbook.md", NOTE)
    place = fresh.open("a.playbook.md", NOTE)
    begun: list[int] = []
    for method, params in everything(fresh.uri("a.playbook.md"), place["position"]) * 20:
        begun.append(fresh.begin(method, params))
    begun.append(fresh.begin("workspace/diagnostic", {"previousResultIds": []}))
    begun.append(
        fresh.begin("workspace/executeCommand", {"command": "quire.test", "arguments": [fresh.uri("a.playbook.md")]})
    )
    for request in (*begun, *begun, 10**9, "x", None):
        fresh.session.take({"method": "$/cancelRequest", "params": {"id": request}})
    assert {fresh.answer(request)["error"]["code"] for request in begun} == {REQUEST_CANCELLED}
    fresh.pause()
    require_alive(fresh)


def large(piece: str, head: str = "") -> str:
    return head + "".join(piece.replace("N", str(number)) for number in range(1, 200_000 // len(piece)))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "a.playbook.md",
            large("## STEP N: Say\n\nSay {{topic}} and {{x‸.\n\n```if {{a}} ==\n\n@output(\n\n", "# T\n\n"),
        ),
        ("pipelines/a.yaml", large("  - agent: {prompt: 'Say {ctx.topic'\n", "pipeline: a\nsteps:\n")),
        (".ai/directives/d.md", large('<input name="aN" type=\n', "# D\n\n```xml\n<directive>\n<inputs>\n")),
        ("a.test.yaml", large("  - name: N\n    inputs: {topic: \n", "cases:\n")),
        ("quire.toml", large("[models.tiers.aN]\nmodel = \n")),
        ("pipelines/b.yaml", "pipeline: a\n" + "a: &a [" * 20_000),
        ("b.playbook.md", "# T\n\n## STEP 1: x\n\n" + "{{" * 100_000),
    ],
)
def test_large_texts_half_typed(editor: Editor, name: str, text: str) -> None:
    text = text.replace("‸", "")
    try_everything(editor, name, text, [0, len(text) // 2, len(text)])
    editor.pause()
    require_alive(editor)


LOOPS = {
    "a.playbook.md": '# A\n\n## STEP 1: Call\n\n@tool(quire, b, {"topic": "x"})\n',
    "b.playbook.md": "# B\n\n## INPUTS\n\n- `topic` (string): T.\n\n## STEP 1: Call\n\n@tool(quire, a, {})\n",
    "pipelines/p.yaml": "pipeline: p\nsteps:\n  - call: {pipeline: q, pass: {x: ctx.x}, output: y}\n",
    "pipelines/q.yaml": "pipeline: q\nsteps:\n  - call: {pipeline: p, pass: {x: ctx.x}, output: y}\n",
    "pipelines/own.yaml": "pipeline: own\nsteps:\n  - call: {pipeline: own, output: y}\n",
    ".ai/directives/d.md": '# D\n\n```xml\n<directive name="d" version="1.0.0" extends="e">\n</directive>\n```\n',
    ".ai/directives/e.md": '# E\n\n```xml\n<directive name="e" version="1.0.0" extends="d">\n</directive>\n```\n',
}


@pytest.mark.parametrize("name", LOOPS)
def test_a_callee_that_loops(editor: Editor, name: str) -> None:
    for file, text in LOOPS.items():
        editor.write(file, text)
    text = LOOPS[name]
    try_everything(editor, name, text, range(0, len(text), 5))
    for method, params in everything(editor.uri(name), {"line": 2, "character": 20}):
        editor.answer(editor.begin(method, params))
    for _ in range(4):
        (item,) = editor.ask("textDocument/prepareCallHierarchy", editor.place(name, 0))
        for way in ("incoming", "outgoing"):
            editor.ask(f"callHierarchy/{way}Calls", {"item": item})
    editor.pause()
    require_alive(editor)
