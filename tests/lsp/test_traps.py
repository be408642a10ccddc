"""Traps that language servers fall into: secrets in hovers, lenses that cost money, line ends and units of texts."""

from __future__ import annotations

import json
import socket
import subprocess
from typing import Any

import pytest
from tests.directives import directive
from tests.lsp.editor import CAPABILITIES, Editor

PLAYBOOK = """\
# Note

## INPUTS

- `topic` (string): 😀 The topic.

## STEP 1: Say

@model(own)

Say 😀 {{topic}} to 😀{{topic}}.

@output(said)
"""
PIPELINE = """\
pipeline: talk
dialect: quire
steps:
  - agent: {prompt: "Say {ctx.topic}", identity: writer, output: said}
  - agent: {prompt: "Say {ctx.said}", model: own}
"""
DIRECTIVE = directive(
    "d", "", '<process><step name="one">Say.</step></process>', description="x", category="a", author="me", tier="own"
)
TEST = "document: a.playbook.md\ncases:\n  - name: one\n    inputs: {topic: x}\n    model: [said]\n"
DOCUMENTS = {"a.playbook.md": PLAYBOOK, "pipelines/talk.yaml": PIPELINE, ".ai/directives/a/d.md": DIRECTIVE}
SETTINGS = """\
[models]
default = "http://me:hunter22@localhost:1/v1?key=hunter22"
[models.tiers]
own = "http://me:hunter22@localhost:1/v1?key=hunter22"
[agents.writer]
model = "http://me:hunter22@localhost:1/v1?key=hunter22"
"""
FREE = {"", "quire.test", "quire.showPrompt", "quire.showProof", "quire.fixAll", "quire.lockDiff", "quire.writeTest"}
OF_THE_CLIENT = {"quire.run", "quire.sign", "quire.can"}
"""Commands that the editor shows in a terminal and does not send: they may cost money, or write."""


@pytest.mark.parametrize("name", DOCUMENTS)
def test_no_answer_has_the_password_of_a_model(editor: Editor, name: str) -> None:
    (editor.folder.parent / "home").mkdir()
    (editor.folder.parent / "home" / "quire.toml").write_text(SETTINGS)
    text = DOCUMENTS[name]
    editor.open(name, text)
    where = {"textDocument": {"uri": editor.uri(name)}}
    whole = {"start": {"line": 0, "character": 0}, "end": {"line": 99, "character": 0}}
    answers = [editor.ask(f"textDocument/{one}", where) for one in ("codeLens", "documentSymbol")]
    answers.append(editor.ask("textDocument/inlayHint", {**where, "range": whole}))
    for at in range(len(text)):
        place = editor.place(name, at)
        answers += [editor.ask("textDocument/hover", place), editor.ask("textDocument/completion", place)]
    said = json.dumps(answers)
    assert "localhost:1" in said
    assert "hunter22" not in said


def test_lenses_and_commands_of_the_server_cost_nothing(editor: Editor, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **named: object) -> Any:
        raise AssertionError("a connection or a process was started")

    for name, text in {**DOCUMENTS, "a.test.yaml": TEST}.items():
        editor.write(name, text)
    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(subprocess, "Popen", refuse)
    seen = set()
    for name, text in {**DOCUMENTS, "a.test.yaml": TEST}.items():
        editor.open(name, text)
        for lens in editor.ask("textDocument/codeLens", {"textDocument": {"uri": editor.uri(name)}}):
            command = lens["command"]
            seen.add(command["command"])
            if command["command"] in FREE - {""}:
                editor.answer(editor.begin("workspace/executeCommand", command))
    assert {"quire.run", "quire.test", "quire.showPrompt"} <= seen <= FREE | OF_THE_CLIENT
    offered = set(editor.initialized["capabilities"]["executeCommandProvider"]["commands"])
    assert offered == FREE - {""}
    for command in OF_THE_CLIENT:
        params = {"command": command, "arguments": [editor.uri("a.playbook.md")]}
        assert editor.refused("workspace/executeCommand", params)
    assert not (editor.folder / ".quire").exists()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["plain", "with a mark"])
def test_a_rename_in_every_kind_of_text(editor: Editor, encoding: str, end: str, mark: str) -> None:
    """The editor counts in its own units, in the text as it is: with its line ends and its byte order mark."""
    fresh = Editor(editor.folder, {**CAPABILITIES, "general": {"positionEncodings": [encoding]}})
    text = mark + PLAYBOOK.replace("# Note", "# 😀 Note").replace("\n", end)
    uri = fresh.uri("a.playbook.md")
    item = {"uri": uri, "languageId": "", "version": 1, "text": text}
    fresh.tell("textDocument/didOpen", {"textDocument": item})
    line = text.split(end)[10]
    column = len(_units(line[: line.rindex("topic")], encoding))
    params = {"textDocument": {"uri": uri}, "position": {"line": 10, "character": column + 1}, "newName": "theme"}
    (change,) = fresh.ask("textDocument/rename", params)["documentChanges"]
    lines = [_units(one, encoding) for one in text.split(end)]
    for edit in reversed(change["edits"]):
        start, stop = edit["range"]["start"], edit["range"]["end"]
        assert start["line"] == stop["line"]
        lines[start["line"]][start["character"] : stop["character"]] = _units(edit["newText"], encoding)
    assert end.join(_text(one, encoding) for one in lines) == text.replace("topic}", "theme}").replace(
        "`topic", "`theme"
    )


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_new_lines_have_the_line_end_of_the_text(editor: Editor, end: str) -> None:
    """A fix that adds lines to a text with CRLF adds CRLF."""
    text = PLAYBOOK.replace("{{topic}}", "{{theme}}").replace("\n", end)
    editor.open("a.playbook.md", text)
    editor.pause()
    line = {"line": 10, "character": 9}
    where = {"textDocument": {"uri": editor.uri("a.playbook.md")}, "range": {"start": line, "end": line}}
    actions = editor.ask("textDocument/codeAction", {**where, "context": {"diagnostics": []}})
    written = [
        edit["newText"]
        for action in actions
        for change in action["edit"]["documentChanges"]
        if change.get("textDocument", {}).get("uri") == editor.uri("a.playbook.md")
        for edit in change["edits"]
        if "\n" in edit["newText"]
    ]
    assert written
    assert all(new.count(end) == new.count("\n") for new in written)


def _units(text: str, encoding: str) -> list[bytes]:
    """Return a text as the units that an encoding counts in."""
    if encoding == "utf-8":
        return [bytes([one]) for one in text.encode()]
    raw, size = text.encode(f"{encoding}-le"), 2 if encoding == "utf-16" else 4
    return [raw[at : at + size] for at in range(0, len(raw), size)]


def _text(units: list[bytes], encoding: str) -> str:
    return b"".join(units).decode(encoding if encoding == "utf-8" else f"{encoding}-le")
