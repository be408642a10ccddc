"""Colour the metadata of a knowledge file. Its text is prose."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.lsp.answers import Token
from quire.lsp.knowledge.metadata import KEYS, metadata

if TYPE_CHECKING:
    from quire.lsp.answers import TokenKind
    from quire.lsp.views import View


def tokens(view: View) -> list[Token]:
    found: list[Token] = []
    for entry in metadata(view).entries:
        found.append(Token(entry.key_span, "property"))
        kind: TokenKind = "enumMember" if entry.key in ("tags", "entry_type") else "string"
        if entry.key not in KEYS:
            continue
        found += [Token(span, "namespace" if entry.key == "references" else kind) for _, span in entry.values]
    return found
