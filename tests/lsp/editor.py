"""An editor for tests: it speaks to a session in this process, with a clock that only moves when it is told to.

A text may hold `‸`, which marks the cursor and is not part of the text.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.given import given
from tests.lsp.message_types import require_valid_answer, require_valid_message

from quire.lsp.desk import uri_of
from quire.lsp.session import Session
from quire.source import OPEN_TEXTS

CURSOR = "‸"
CAPABILITIES: dict[str, Any] = {
    "general": {"positionEncodings": ["utf-32", "utf-16"]},
    "textDocument": {
        "completion": {"completionItem": {"snippetSupport": True}},
        "documentSymbol": {"hierarchicalDocumentSymbolSupport": True},
        "hover": {"contentFormat": ["markdown"]},
    },
    "workspace": {
        "applyEdit": True,
        "workspaceEdit": {"documentChanges": True, "resourceOperations": ["create", "rename"]},
    },
}
PULLING = {**CAPABILITIES, "textDocument": {**CAPABILITIES["textDocument"], "diagnostic": {}}}


class Editor:
    """An editor with a folder open."""

    def __init__(self, folder: Path, capabilities: Mapping[str, Any] = CAPABILITIES) -> None:
        OPEN_TEXTS.clear()
        self.folder = folder
        self.now = 0.0
        self.session = Session(clock=lambda: self.now)
        self.messages: list[dict[str, Any]] = []
        """The notifications and requests of the server, in their order."""
        self._answers: dict[object, dict[str, Any]] = {}
        self._asked: dict[object, str] = {}
        self._next = 0
        self.versions: dict[str, int] = {}
        self.texts: dict[str, str] = {}
        self.initialized = self.ask(
            "initialize",
            {
                "processId": None,
                "capabilities": dict(capabilities),
                "workspaceFolders": [{"uri": uri_of(str(folder)), "name": folder.name}],
            },
        )
        self.tell("initialized", {})

    # Messages

    def tell(self, method: str, params: Mapping[str, Any]) -> None:
        self.session.take({"jsonrpc": "2.0", "method": method, "params": dict(params)})
        self._settle()

    def begin(self, method: str, params: Mapping[str, Any]) -> int:
        """Send a request and return its number, without handling it."""
        self._next += 1
        self._asked[self._next] = method
        self.session.take({"jsonrpc": "2.0", "id": self._next, "method": method, "params": dict(params)})
        return self._next

    def ask(self, method: str, params: Mapping[str, Any]) -> Any:
        """Send a request and return the result. Raises `AssertionError` for an error."""
        answer = self.answer(self.begin(method, params))
        assert "error" not in answer, answer["error"]
        return answer["result"]

    def refused(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request and return its error."""
        answer = self.answer(self.begin(method, params))
        assert "error" in answer, answer
        error: dict[str, Any] = answer["error"]
        return error

    def answer(self, request: int) -> dict[str, Any]:
        self._settle()
        return self._answers.pop(request)

    def has_answer(self, request: int) -> bool:
        self._settle()
        return request in self._answers

    def pause(self, seconds: float = 2.0) -> None:
        """Let time pass, and everything happen that is due."""
        until = self.now + seconds
        while (wait := self.session.wait) is not None and self.now + wait <= until:
            self.now += wait
            self._settle()
        self.now = until

    def _settle(self) -> None:
        while self.session.wait == 0:
            job = self.session.work()
            if job is not None:
                job.done(job.run())
        for message in self.session.sent():
            if "method" in message:
                require_valid_message(message)
                self.messages.append(message)
            else:
                if message["id"] in self._asked:
                    require_valid_answer(self._asked[message["id"]], message)
                self._answers[message["id"]] = message

    # Documents

    def uri(self, name: str) -> str:
        return uri_of(str(self.folder / name))

    def open(self, name: str, text: str) -> dict[str, Any]:
        """Open a document. Return the parameters of a request at its cursor."""
        text, cursor = split(text)
        self.texts[name] = text
        self.versions[name] = 1
        item = {"uri": self.uri(name), "languageId": "", "version": 1, "text": text}
        self.tell("textDocument/didOpen", {"textDocument": item})
        return self.place(name, cursor)

    def type(self, name: str, at: int, new: str, remove: int = 0) -> None:
        """Replace some characters at an offset, as an editor does."""
        text = self.texts[name]
        change = {"range": {"start": position(text, at), "end": position(text, at + remove)}, "text": new}
        self.texts[name] = text[:at] + new + text[at + remove :]
        self.versions[name] += 1
        document = {"uri": self.uri(name), "version": self.versions[name]}
        self.tell("textDocument/didChange", {"textDocument": document, "contentChanges": [change]})

    def replace(self, name: str, text: str) -> dict[str, Any]:
        """Give a document another text as a whole. Return the parameters of a request at its cursor."""
        text, cursor = split(text)
        self.texts[name] = text
        self.versions[name] += 1
        document = {"uri": self.uri(name), "version": self.versions[name]}
        self.tell("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]})
        return self.place(name, cursor)

    def place(self, name: str, offset: int) -> dict[str, Any]:
        return {"textDocument": {"uri": self.uri(name)}, "position": position(self.texts[name], offset)}

    def write(self, name: str, text: str) -> Path:
        """Write a file that is not open."""
        return given({name: textwrap.dedent(text)}, self.folder) / name

    # Answers

    def findings(self, name: str) -> list[dict[str, Any]]:
        """Return the findings that were last published about a document."""
        self.pause()
        uri = self.uri(name)
        published = [
            one["params"]["diagnostics"]
            for one in self.messages
            if one["method"] == "textDocument/publishDiagnostics" and one["params"]["uri"] == uri
        ]
        return list(published[-1]) if published else []

    def codes(self, name: str) -> list[str]:
        return [one["code"] for one in self.findings(name)]

    def hover(self, name: str, text: str) -> str:
        """Return the text of the hover at the cursor; empty without one."""
        found = self.ask("textDocument/hover", self.open(name, text))
        return str(found["contents"]["value"]) if found else ""

    def completions(self, name: str, text: str) -> dict[str, dict[str, Any]]:
        """Return the completions at the cursor by their labels."""
        found = self.ask("textDocument/completion", self.open(name, text))
        return {item["label"]: item for item in found["items"]}

    def edited(self, edit: Mapping[str, Any]) -> dict[str, str]:
        """Return the texts of all files that a workspace edit changes, by their names."""
        texts: dict[str, str] = {}
        for change in edit["documentChanges"]:
            if "kind" in change:
                continue
            path = Path(change["textDocument"]["uri"].removeprefix("file://"))
            name = str(path.relative_to(self.folder))
            before = self.texts.get(name) or (path.read_text() if path.exists() else "")
            texts[name] = apply(before, change["edits"])
        return texts

    def chosen(self, action: Mapping[str, Any]) -> dict[str, Any]:
        """Return the edit of an action; if it is a command, the one that the server asks for."""
        if "edit" in action:
            return dict(action["edit"])
        before = len(self.messages)
        command = {key: action["command"][key] for key in ("command", "arguments")}
        self.ask("workspace/executeCommand", command)
        [asked] = [one for one in self.messages[before:] if one["method"] == "workspace/applyEdit"]
        edit: dict[str, Any] = asked["params"]["edit"]
        return edit

    def words(self, name: str, ranges: list[dict[str, Any]]) -> list[str]:
        """Return the texts that stand at some ranges of a document."""
        text = self.texts[name]
        return [text[offset(text, one["start"]) : offset(text, one["end"])] for one in ranges]


def split(text: str) -> tuple[str, int]:
    """Return a text without its cursor, and where that was."""
    text = textwrap.dedent(text)
    at = text.find(CURSOR)
    return (text, 0) if at < 0 else (text.replace(CURSOR, ""), at)


def position(text: str, at: int) -> dict[str, int]:
    before = text[:at]
    return {"line": before.count("\n"), "character": len(before) - before.rfind("\n") - 1}


def offset(text: str, place: Mapping[str, int]) -> int:
    lines = text.split("\n")
    return sum(len(line) + 1 for line in lines[: place["line"]]) + place["character"]


def apply(text: str, edits: list[dict[str, Any]]) -> str:
    """Return a text after some edits, which do not touch each other."""
    for edit in sorted(edits, key=lambda one: offset(text, one["range"]["start"]), reverse=True):
        start, end = offset(text, edit["range"]["start"]), offset(text, edit["range"]["end"])
        text = text[:start] + edit["newText"] + text[end:]
    return text
