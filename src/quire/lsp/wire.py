"""Write answers as the JSON of the protocol.

A finding links to the page about its code, which comes with the package (`quire docs codes`), so it is readable without
a network and describes this version.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from quire.diagnostics import Severity
from quire.display.visible import visible
from quire.installed import docs_folder
from quire.lsp.desk import uri_of

if TYPE_CHECKING:
    from quire.diagnostics import Diagnostic, Edit
    from quire.lsp.answers import Completion, FileEdit, NameKind, Symbol
    from quire.lsp.desk import Desk
    from quire.lsp.document_text import EditorText


Json = dict[str, Any]
START: Json = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}
"""The range of the start of a text."""

_SEVERITIES = {Severity.ERROR: 1, Severity.WARNING: 2, Severity.LINT: 3, Severity.NOTE: 4}
_UNNECESSARY = 1
_WITHOUT_EFFECT = frozenset(
    {
        *("DD101", "DD102", "DD104", "EV101", "DR103", "DR201", "DR302", "PB203", "PB204", "PL023", "PL107", "PL206"),
        *("PL208", "TS101", "TS103", "TS105"),
    }
)
"""Codes of parts that have no effect; editors show these faded."""

_COMPLETION_KINDS = {
    "text": 1, "function": 3, "field": 5, "variable": 6, "class": 7, "module": 9, "property": 10, "value": 12,
    "enum": 13, "keyword": 14, "snippet": 15, "file": 17, "reference": 18, "folder": 19, "constant": 21,
    "operator": 24,
}  # fmt: skip
_SYMBOL_KINDS: dict[NameKind, int] = {
    "input": 13, "output": 13, "store": 13, "schema": 23, "field": 8, "step": 12, "branch": 22, "pipeline": 2,
    "document": 1, "directive": 5, "knowledge": 1, "prompt": 15, "file": 1, "tool": 6, "server": 3, "model": 14,
    "agent": 5, "capability": 20, "hook": 24, "case": 12, "element": 19,
}  # fmt: skip


def diagnostic(text: EditorText, finding: Diagnostic, desk: Desk) -> Json:
    """Write one finding. Its help stands under its message, because most editors show only that."""
    code = finding.code
    data: Json = {
        "range": text.range(finding.span),
        "severity": _SEVERITIES[code.severity],
        "code": code.id,
        "source": "quire",
        "message": _message(finding.message, finding.help),
        "data": {"name": code.name, "fix": finding.fix is not None},
    }
    if desk.links_codes and (address := code_address(code.id)):
        data["codeDescription"] = {"href": address}
    if code.id in _WITHOUT_EFFECT:
        data["tags"] = [_UNNECESSARY]
    if finding.related:
        data["relatedInformation"] = [
            {"location": related_location(text, near, desk), "message": visible(near.message)}
            for near in finding.related
        ]
    return data


@lru_cache(maxsize=4_000)
def _message(message: str, help: str) -> str:
    return visible(message) + (f"\nhelp: {visible(help)}" if help else "")


def related_location(text: EditorText, related: Any, desk: Desk) -> Json:
    """Write the place of a step of a path, which may be in another document."""
    if related.source is None or related.source.name == text.name:
        return {"uri": uri_at(desk, text.name), "range": text.range(related.span)}
    return location(desk, related.source.name, related.span)


def uri_at(desk: Desk, path: str) -> str:
    """Return the URI by which the editor knows a path."""
    document = desk.at(path)
    return document.uri if document else uri_of(path)


def location(desk: Desk, path: str, span: Any) -> Json:
    """Write a place in a document, open or not."""
    view = desk.view_of(path)
    return {"uri": uri_at(desk, path), "range": view.text.range(span) if view else START}


def text_edit(text: EditorText, edit: Edit) -> Json:
    new = edit.new if text.line_end == "\n" else edit.new.replace("\n", text.line_end)
    return {"range": text.range(edit.span), "newText": new}


def workspace_edit(desk: Desk, edits: Iterable[FileEdit], *, versioned: bool, creates: bool) -> Json | None:
    """Write the edits of several files. None if the client cannot make a file that has to be made."""
    changes: list[Json] = []
    for file in edits:
        uri = uri_at(desk, file.path)
        document = desk.at(file.path)
        view = desk.view_of(file.path)
        if file.creates and view is None:
            if not creates:
                return None
            changes.append({"kind": "create", "uri": uri, "options": {"ignoreIfExists": True}})
            written = [{"range": START, "newText": edit.new} for edit in file.edits]
        elif view is None:
            continue
        else:
            written = [text_edit(view.text, edit) for edit in file.edits]
        version = document.version if document else None
        changes.append({"textDocument": {"uri": uri, "version": version}, "edits": written})
    if versioned:
        return {"documentChanges": changes}
    return {"changes": {change["textDocument"]["uri"]: change["edits"] for change in changes if "edits" in change}}


def completion(offer: Completion, where: Json, *, snippets: bool, number: int, uri: str) -> Json:
    """Write one completion, which replaces the text at a range. `number` keeps the order of the list in editors that
    sort by text."""
    insert = offer.insert or offer.label
    if offer.snippet and not snippets:
        insert = plain(insert)
    item: Json = {
        "label": offer.label,
        "kind": _COMPLETION_KINDS[offer.kind],
        "sortText": f"{offer.order}{number:04d}",
        "filterText": offer.label,
        "textEdit": {"range": where, "newText": insert},
    }
    if offer.snippet and snippets:
        item["insertTextFormat"] = 2
    if offer.detail:
        item["detail"] = offer.detail
    if offer.documentation:
        item["documentation"] = {"kind": "markdown", "value": offer.documentation}
    if offer.deprecated:
        item["tags"] = [1]
    if offer.resolve:
        item["data"] = {"uri": uri, "resolve": offer.resolve}
    return item


def plain(snippet: str) -> str:
    """Return a snippet without its places: `${1:name}` becomes `name`."""
    return re.sub(r"\$\{\d+:([^}]*)\}|\$\{\d+\}|\$\d+", lambda match: match[1] or "", snippet).replace("\\$", "$")


def symbol(text: EditorText, part: Symbol) -> Json:
    data: Json = {
        "name": part.name or "(no name)",
        "kind": _SYMBOL_KINDS[part.kind],
        "range": text.range(part.span),
        "selectionRange": text.range(part.selection),
    }
    if part.detail:
        data["detail"] = part.detail
    if part.children:
        data["children"] = [symbol(text, child) for child in part.children]
    return data


def flat_symbol(part: Symbol, uri: str, where: Json, container: str) -> Json:
    """Write a part for an editor that knows no trees."""
    name, kind = part.name or "(no name)", _SYMBOL_KINDS[part.kind]
    return {"name": name, "kind": kind, "location": {"uri": uri, "range": where}, "containerName": container}


def flat_symbols(symbols: Sequence[Symbol], container: str = "") -> Iterable[tuple[Symbol, str]]:
    """Yield all parts of an outline, each with the name of the part around it."""
    for part in symbols:
        yield part, container
        yield from flat_symbols(part.children, part.name)


CODES = docs_folder() / "reference" / "codes"
_HEADING = re.compile(r"^### ([A-Z]+\d+) ", re.MULTILINE)


def code_address(code: str) -> str:
    """Return the address of a code on its page; empty if the page or the code is missing. The place is a line, because
    editors show the text of a file, where the anchors of headings mean nothing."""
    page, lines = _page(code.rstrip("0123456789"))
    return f"{page}#L{lines[code]}" if code in lines else ""


@lru_cache(maxsize=64)
def _page(prefix: str) -> tuple[str, dict[str, int]]:
    """Return the address of the page of a prefix and the line of each code."""
    place = CODES / f"{prefix}.md"
    try:
        text = place.read_text(encoding="utf-8")
    except OSError:
        return "", {}
    lines: dict[str, int] = {}
    line, at = 1, 0
    for match in _HEADING.finditer(text):
        line += text.count("\n", at, match.start())
        at = match.start()
        lines[match[1]] = line
    return uri_of(str(place)), lines
