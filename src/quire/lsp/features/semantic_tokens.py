"""Colour the parts of a document that only its own language knows, and show types, bounds and names inside of lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from quire.lsp.answers import Token
from quire.lsp.document_text import units
from quire.lsp.features import ask, view_in
from quire.lsp.jobs import keep_newest
from quire.lsp.protocol import TOKEN_MARKS, TOKEN_TYPES
from quire.source import Span

if TYPE_CHECKING:
    from quire.lsp.answers import Hint
    from quire.lsp.document_view import View
    from quire.lsp.session import Session

_KINDS = {"type": 1, "parameter": 2}


def inlay_hints(session: Session, params: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    view = view_in(session, params)
    if view is None:
        return None
    span = view.text.span(params.get("range"))
    hints: list[Hint] = ask(view, "decorations", "hints", span) or []
    return [
        {
            "position": view.text.position(hint.offset),
            "label": hint.label,
            "kind": _KINDS[hint.kind],
            "paddingLeft": not hint.before,
            "paddingRight": hint.before,
            **({"tooltip": {"kind": "markdown", "value": hint.tooltip}} if hint.tooltip else {}),
        }
        for hint in hints
        if span.holds(hint.offset)
    ]


_TYPES = {name: number for number, name in enumerate(TOKEN_TYPES)}
_MARKS = {name: 1 << number for number, name in enumerate(TOKEN_MARKS)}
_UNRESOLVED = (_TYPES["variable"], _MARKS["deprecated"])
"""A name that nothing introduces is shown struck out, as most themes do for this mark."""
MOST_KEPT = 50
_KEPT: dict[str, tuple[str, list[int]]] = {}
"""The last tokens that were sent for a document, with their number."""


def full(session: Session, params: Mapping[str, Any]) -> dict[str, Any] | None:
    view = view_in(session, params)
    return _kept(params["textDocument"]["uri"], _data(view)) if view else None


def delta(session: Session, params: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the difference to the tokens that the editor has, or all of them if these are not known any more."""
    view = view_in(session, params)
    if view is None:
        return None
    uri = params["textDocument"]["uri"]
    number, before = _KEPT.get(uri, ("", []))
    answer = _kept(uri, data := _data(view))
    if not number or params.get("previousResultId") != number:
        return answer
    start = next((at for at, (old, new) in enumerate(zip(before, data, strict=False)) if old != new), None)
    if start is None:
        start = min(len(before), len(data))
    end = 0
    while end < min(len(before), len(data)) - start and before[-1 - end] == data[-1 - end]:
        end += 1
    edits = []
    if start < len(before) - end or start < len(data) - end:
        edits.append({"start": start, "deleteCount": len(before) - end - start, "data": data[start : len(data) - end]})
    return {"resultId": answer["resultId"], "edits": edits}


def _kept(uri: str, data: list[int]) -> dict[str, Any]:
    number = str(int(_KEPT.get(uri, ("0", []))[0]) + 1)
    keep_newest(_KEPT, uri, (number, data), MOST_KEPT)
    return {"resultId": number, "data": data}


def _data(view: View) -> list[int]:
    data: list[int] = []
    line = column = 0
    text = view.source.text
    for token in flat_tokens(text, ask(view, "decorations", "tokens") or []):
        at = view.text.position(token.span.start)
        length = units(token.span.of(text), view.text.encoding)
        ahead = at["character"] - (column if at["line"] == line else 0)
        type, marks = _numbers(token)
        data += [at["line"] - line, ahead, length, type, marks]
        line, column = at["line"], at["character"]
    return data


def _numbers(token: Token) -> tuple[int, int]:
    if token.kind == "unresolved":
        return _UNRESOLVED
    return _TYPES[token.kind], sum(_MARKS[mark] for mark in token.marks)


def flat_tokens(text: str, tokens: list[Token]) -> Iterator[Token]:
    """Yield pieces that do not overlap and do not go over a line end, in order. Pieces may lie in each other, such as a
    reference in a value: the inner one counts there."""
    open: list[Token] = []
    at = 0
    for token in sorted(tokens, key=lambda token: (token.span.start, -token.span.end)):
        while open and open[-1].span.end <= token.span.start:
            last = open.pop()
            yield from _lines(text, at, last.span.end, last)
            at = max(at, last.span.end)
        if open:
            yield from _lines(text, at, token.span.start, open[-1])
        at = max(at, token.span.start)
        open.append(token)
    while open:
        last = open.pop()
        yield from _lines(text, at, last.span.end, last)
        at = max(at, last.span.end)


def _lines(text: str, start: int, end: int, token: Token) -> Iterator[Token]:
    start = max(start, token.span.start)
    while start < end:
        stop = text.find("\n", start, end)
        stop = end if stop < 0 else stop
        if stop > start:
            yield Token(Span(start, stop), token.kind, token.marks)
        start = stop + 1
