"""Marks of a knowledge file: colours of its metadata, and lines above it that sign it and name its users."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.lsp.answers import Lens, Token
from quire.lsp.desk import uri_of
from quire.lsp.directive.item_words import signature_words
from quire.lsp.knowledge.metadata import KEYS, metadata
from quire.source import Span
from quire.wording import pluralize

if TYPE_CHECKING:
    from quire.lsp.answers import TokenKind
    from quire.lsp.document_view import View


def lenses(view: View) -> list[Lens]:
    from quire.lsp.knowledge.completion import used_by

    found = metadata(view)
    if found.part is None:
        return []
    start = view.source.line_span(view.source.position(max(0, found.part.start - 1)).line)
    line = Span(start.start, start.end)
    naming, fetching = used_by(view)
    used = f"used by {len(naming)} {pluralize('directive', len(naming))}"
    if fetching:
        used += f", {len(fetching)} may fetch it"
    return [
        Lens(line, f"Sign ({signature_words(view)})", "quire.sign", (uri_of(view.path),)),
        Lens(line, used),
    ]


def tokens(view: View) -> list[Token]:
    found: list[Token] = []
    for entry in metadata(view).entries:
        found.append(Token(entry.key_span, "property"))
        kind: TokenKind = "enumMember" if entry.key in ("tags", "entry_type") else "string"
        if entry.key not in KEYS:
            continue
        found += [Token(span, "namespace" if entry.key == "references" else kind) for _, span in entry.values]
    return found
