"""The table of docs/reference/editor-methods.md, printed from the server: `python -m tests.docs.editor_methods`.

A mark says that the server has answered a real request about a small document of that format with something.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.docs.editor_samples import FILES, SAMPLES, WRONG_SETTINGS
from tests.given import given
from tests.lsp.editor import CAPABILITIES, Editor, position

from quire.lsp.languages import FORMATS, REQUESTS
from quire.lsp.protocol import COMMANDS
from quire.source import OPEN_TEXTS

OTHERS = ("textDocument/diagnostic", "workspace/diagnostic", "textDocument/publishDiagnostics")
"""Methods that are not in the server's table of requests, because checks answer them."""
OF_THE_SESSION = (
    "window/workDoneProgress/create",
    "window/workDoneProgress/cancel",
    "$/progress",
    "workspace/diagnostic/refresh",
    "workspace/codeLens/refresh",
    "workspace/inlayHint/refresh",
    "workspace/semanticTokens/refresh",
    "workspace/applyEdit",
    "client/registerCapability",
    "quire/didRunTests",
)
"""Methods that are not about a document of one format. Their tests are in `tests/lsp`."""
_WORD = re.compile(r"\w+|[({\[,.\"'<]")
_NO_CONTEXT: dict[str, Any] = {"diagnostics": []}
_EDITABLE = {"options": {"tabSize": 2, "insertSpaces": True}}


def lines() -> Iterator[str]:
    """Yield the lines of the table, and of the list below it."""
    yield f"| method | {' | '.join(FORMATS)} |"
    yield f"| --- |{' --- |' * len(FORMATS)}"
    with tempfile.TemporaryDirectory() as place:
        asked = [Asked(Path(place).resolve() / format, format) for format in FORMATS]
        for method in [*REQUESTS, *OTHERS]:
            marks = ["✓" if one.is_answered(method) else "" for one in asked]
            yield f"| `{method}` | {' | '.join(marks)} |"
    OPEN_TEXTS.clear()
    yield ""
    yield "Methods that are not about a document of one format:"
    yield ""
    yield from (f"- `{method}`" for method in OF_THE_SESSION)


class Asked:
    """A document of one format, and the requests about it."""

    def __init__(self, folder: Path, format: str) -> None:
        given(FILES, folder)
        self._folder = folder
        self.name = SAMPLES[format]
        self.text = WRONG_SETTINGS if format == "settings" else FILES[self.name]
        (folder / self.name).write_text(self.text)

    @cached_property
    def _editor(self) -> Editor:
        return Editor(self._folder, CAPABILITIES)

    def is_answered(self, method: str) -> bool:
        """Tell whether a request of this method is answered with something."""
        OPEN_TEXTS.clear()
        if self.name not in self._editor.texts or self._editor.texts[self.name] != self.text:
            self._editor.open(self.name, self.text)
        OPEN_TEXTS[str(self._folder / self.name)] = self._editor.session.desk.documents[self.uri].text.source
        own: Callable[[], bool] | None = getattr(self, f"_{method.replace('/', '_').replace('$', '')}", None)
        return own() if own is not None else any(self._answers(method))

    @property
    def uri(self) -> str:
        return self._editor.uri(self.name)

    @property
    def _where(self) -> dict[str, Any]:
        return {"textDocument": {"uri": self.uri}}

    @property
    def _whole(self) -> dict[str, Any]:
        return {"start": {"line": 0, "character": 0}, "end": position(self.text, len(self.text))}

    def _places(self) -> Iterator[dict[str, Any]]:
        """Yield the parameters of requests at the beginning and the end of every word."""
        for match in _WORD.finditer(self.text):
            for at in (match.start(), match.end()):
                yield {**self._where, "position": position(self.text, at)}

    def _result(self, method: str, params: dict[str, Any]) -> Any:
        """Return the result of a request; None for an error."""
        return self._editor.answer(self._editor.begin(method, params)).get("result")

    def _answers(self, method: str) -> Iterator[Any]:
        """Yield the answers to a request about the whole document, or at each of its places."""
        places = method in _AT_PLACES
        if method == "textDocument/inlayHint":  # those of a test show the results of its last run
            self._result("workspace/executeCommand", {"command": "quire.test", "arguments": [self.uri]})
        more = {**_EDITABLE, "range": self._whole}
        for params in self._places() if places else [{**self._where, **more}]:
            if method == "textDocument/references":
                params["context"] = {"includeDeclaration": False}
            if method == "textDocument/rename":
                params["newName"] = "other"
            if method == "textDocument/codeAction":
                params |= {"range": {"start": params["position"], "end": params["position"]}, "context": _NO_CONTEXT}
            found = self._result(method, params)
            yield found["items"] if isinstance(found, dict) and "items" in found else found

    # Methods that need more than a place

    def _completionItem_resolve(self) -> bool:  # noqa: N802
        offered = (item for items in self._answers("textDocument/completion") for item in items or ())
        return any(self._result("completionItem/resolve", item) != item for item in offered)

    def _workspace_willRenameFiles(self) -> bool:  # noqa: N802
        new = self.uri.replace(Path(self.name).name, "moved." + Path(self.name).name.partition(".")[2])
        found = self._result("workspace/willRenameFiles", {"files": [{"oldUri": self.uri, "newUri": new}]})
        return bool(found and any(one.get("edits") for one in found["documentChanges"]))

    def _workspace_symbol(self) -> bool:
        found = self._result("workspace/symbol", {"query": ""}) or []
        return any(one["location"]["uri"] == self.uri for one in found)

    def _textDocument_selectionRange(self) -> bool:  # noqa: N802
        params = {**self._where, "positions": [one["position"] for one in self._places()]}
        return any("parent" in one for one in self._result("textDocument/selectionRange", params) or ())

    def _textDocument_semanticTokens_full(self) -> bool:  # noqa: N802
        found = self._result("textDocument/semanticTokens/full", self._where)
        return bool(found and found["data"])

    def _textDocument_semanticTokens_full_delta(self) -> bool:  # noqa: N802
        known = self._result("textDocument/semanticTokens/full", self._where)
        found = self._result(
            "textDocument/semanticTokens/full/delta", {**self._where, "previousResultId": (known or {}).get("resultId")}
        )
        return bool(known and known["data"] and found and found.get("edits") == [])

    def _callHierarchy_incomingCalls(self) -> bool:  # noqa: N802
        return any(self._result("callHierarchy/incomingCalls", {"item": item}) for item in self._items())

    def _callHierarchy_outgoingCalls(self) -> bool:  # noqa: N802
        return any(self._result("callHierarchy/outgoingCalls", {"item": item}) for item in self._items())

    def _items(self) -> list[dict[str, Any]]:
        start = {**self._where, "position": {"line": 0, "character": 0}}
        return self._result("textDocument/prepareCallHierarchy", start) or []

    def _workspace_executeCommand(self) -> bool:  # noqa: N802
        for command in COMMANDS:
            if self._result("workspace/executeCommand", {"command": command, "arguments": [self.uri]}):
                return True
        return False

    def _workspace_diagnostic(self) -> bool:
        other = Editor(self._folder, {**CAPABILITIES, "textDocument": {"diagnostic": {}}})
        request = other.begin("workspace/diagnostic", {"previousResultIds": []})
        other.pause()
        found = other.answer(request)["result"]["items"]
        return any(one["items"] for one in found if one["uri"] == self.uri)

    def _textDocument_publishDiagnostics(self) -> bool:  # noqa: N802
        return bool(self._editor.findings(self.name))


_AT_PLACES = frozenset(
    f"textDocument/{name}"
    for name in (
        "hover",
        "completion",
        "signatureHelp",
        "definition",
        "references",
        "documentHighlight",
        "prepareRename",
        "rename",
        "linkedEditingRange",
        "prepareCallHierarchy",
        "codeAction",
    )
)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:
        os.environ["QUIRE_HOME"] = home
        print("\n".join(lines()))
