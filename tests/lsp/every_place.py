"""Ask for every feature at places of a document, and check that no answer lies outside of the text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from tests.lsp.editor import Editor, position

_AT = ("hover", "completion", "signatureHelp", "definition", "documentHighlight", "prepareRename")
_WHOLE = ("documentSymbol", "foldingRange", "documentLink", "codeLens", "formatting", "semanticTokens/full")


def try_everything(editor: Editor, name: str, text: str, offsets: Iterable[int]) -> None:
    """Open a text, and ask for everything at each offset."""
    editor.open(name, text)
    where = {"textDocument": {"uri": editor.uri(name)}}
    lines = text.split("\n")
    for method in _WHOLE:
        _inside(lines, editor.ask(f"textDocument/{method}", {**where, "options": {}}))
    whole = {"start": {"line": 0, "character": 0}, "end": position(text, len(text))}
    _inside(lines, editor.ask("textDocument/inlayHint", {**where, "range": whole}))
    for offset in offsets:
        place = {**where, "position": position(text, offset)}
        for method in _AT:
            answer = editor.answer(editor.begin(f"textDocument/{method}", place))
            assert answer.get("error", {}).get("code") in (None, -32803), (method, offset, answer)
            _inside(lines, answer.get("result"))
        around = {"start": place["position"], "end": place["position"]}
        _inside(
            lines, editor.ask("textDocument/codeAction", {**where, "range": around, "context": {"diagnostics": []}})
        )
    mistakes = [one for one in editor.messages if one["method"] == "window/logMessage"]
    assert mistakes == []


def _inside(lines: list[str], answer: Any) -> None:
    for one in _ranges(answer):
        start, end = one["start"], one["end"]
        assert (start["line"], start["character"]) <= (end["line"], end["character"]), one
        assert end["line"] < len(lines) and end["character"] <= len(lines[end["line"]]), one


def _ranges(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the ranges of this document in an answer; places in other documents have an address beside them."""
    if isinstance(value, list):
        for one in value:
            yield from _ranges(one)
    elif isinstance(value, dict):
        if "uri" in value or "textDocument" in value:
            return
        if "start" in value and "end" in value and isinstance(value["start"], dict):
            yield value
        for one in value.values():
            yield from _ranges(one)
