"""Colour a directive: tags, attributes and values of the fence, references to inputs, calls and permissions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from quire.lsp.answers import Token
from quire.lsp.directive.calls import spelled_calls
from quire.lsp.directive.elements import VALUES, meaning_of
from quire.lsp.directive.grants import permission_at
from quire.lsp.directive.index import value_references
from quire.lsp.directive.tags import declared_inputs, declared_outputs, scan
from quire.plan.vocabulary import CONTEXT, number

if TYPE_CHECKING:
    from quire.lsp.answers import TokenKind
    from quire.lsp.directive.tags import Attribute, Scan, Tagged
    from quire.lsp.views import View

_IDS = frozenset({"extends", "item_id"})


def tokens(view: View) -> list[Token]:
    text = view.source.text
    scanned = scan(text)
    return [*_fence(scanned), *_references(text, scanned), *_calls(text, scanned)]


def _fence(scanned: Scan) -> Iterator[Token]:
    for comment in scanned.comments:
        if scanned.holds(comment.start):
            yield Token(comment, "comment")
    for tag in scanned.tags:
        in_fence = scanned.holds(tag.start)
        if not in_fence and meaning_of(tag.tag) is None:
            continue
        yield Token(tag.name_span, "type")
        if tag.closing is not None:
            yield Token(tag.closing, "type")
        for one in tag.attributes:
            yield Token(one.name_span, "property")
            yield Token(one.value_span, _value_kind(tag, one))
        if in_fence:
            yield from _text(tag)


def _value_kind(tag: Tagged, one: Attribute) -> TokenKind:
    if tag.tag == "condition" and one.name == "op":
        return "operator"
    if tag.tag == "condition" and one.name == "path":
        return "variable"
    if f"{tag.tag}.{one.name}" in VALUES:
        return "enumMember"
    if one.name in _IDS:
        return "namespace"
    if tag.path in ("inputs>input", "outputs>output") and one.name == "name":
        return "parameter"
    return "number" if number(one.value) is not None else "string"


def _text(tag: Tagged) -> Iterator[Token]:
    """Yield the text of an element that holds a pattern or an id."""
    if tag.children or not tag.finished:
        return
    parent = tag.parent.tag if tag.parent else ""
    if (asked := permission_at(tag)) is not None:
        yield Token(asked[1], "namespace")
    elif parent == "context" and tag.tag in CONTEXT and tag.text[0]:
        yield Token(tag.text[1], "namespace")


def _references(text: str, scanned: Scan) -> Iterator[Token]:
    inputs, outputs = frozenset(declared_inputs(text)), frozenset(declared_outputs(text))
    for one in value_references(text, scanned):
        known = inputs if one.kind == "input" else outputs
        missing = one.name not in known and not one.optional
        if text[one.whole.start : one.whole.start + 1] in ("{", "$"):
            yield Token(one.whole, "macro")
        yield Token(one.span, "unresolved" if missing else "parameter")


def _calls(text: str, scanned: Scan) -> Iterator[Token]:
    for call in spelled_calls(text, scanned.body_start, len(text)):
        yield Token(call.name_span, "function")
        for one in call.arguments:
            yield Token(one.name_span, "property" if one.within else "parameter")
            if one.value_span is not None:
                kind: TokenKind = "namespace" if one.name in ("item_id", "directive_id") else "string"
                yield Token(one.value_span, "enumMember" if one.name in ("item_type", "scope") else kind)
