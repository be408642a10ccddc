"""Marks of a directive (colours, notes inside of lines, lines above it, folds), and the format of its fence.

Formatting never touches texts: only white space between elements changes, and only where the engine reads the elements.
A `<process>` in the fence is sent to the model as it is, and stays so. Nothing is done in XML that is not well-formed.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from operator import attrgetter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from quire.diagnostics import Edit, Severity
from quire.formats.directive import codes
from quire.formats.directive.parse import METADATA
from quire.formats.markdown import signature_line
from quire.lsp.answers import Fold, Hint, Lens, Token
from quire.lsp.bounds import document_lenses
from quire.lsp.desk import uri_of
from quire.lsp.directive.elements import OWN_CONTENT, VALUES, meaning_of
from quire.lsp.directive.grants import permission_at, permissions, tier
from quire.lsp.directive.index import value_references
from quire.lsp.directive.instruction_calls import spelled_calls
from quire.lsp.directive.item_words import (
    amount,
    ancestors,
    bound_words,
    effective_limits,
    model_words,
    signature_words,
)
from quire.lsp.directive.tags import declared_inputs, declared_outputs, scan
from quire.lsp.document_tests import count_cases
from quire.plan.vocabulary import CONTEXT, LIMITS, OPAQUE, number
from quire.source import Span, line_start
from quire.wording import pluralize

if TYPE_CHECKING:
    from quire.lsp.answers import TokenKind
    from quire.lsp.directive.tags import Attribute, Scan, Tagged
    from quire.lsp.document_view import View


_INDENT = "  "
_READABLE = frozenset((codes.PERMISSION_TAG.id, codes.RISK.id))


def format(view: View, span: Span) -> list[Edit]:
    text = view.source.text
    scanned = scan(text)
    root = scanned.root
    if root is None or scanned.fence is None or not _is_whole(view):
        return []
    edits = [edit for edit in _Formatter(text, scanned).edits(root) if edit.old != edit.new]
    chosen = [edit for edit in edits if edit.span.meets(span)]
    return sorted(chosen, key=lambda edit: edit.span.start)


def _is_whole(view: View) -> bool:
    """Tell whether the XML of the fence could be read to its end."""
    errors = {error.code.id for error in view.reading.of(Severity.ERROR)} - _READABLE
    return view.reading.partial.root.end > 0 and not any(code.startswith("DR00") for code in errors)


def _is_in_child(tag: Tagged, offset: int) -> bool:
    before = bisect_right(tag.children, offset, key=attrgetter("start"))
    return before > 0 and offset < tag.children[before - 1].end


class _Formatter:
    def __init__(self, text: str, scanned: Scan) -> None:
        self._text = text
        self._scan = scanned
        self._starts = [span.start for span in scanned.comments]

    def edits(self, root: Tagged) -> Iterator[Edit]:
        yield from self._indent(root.start, 0)
        yield from self._tag(root)
        if self._is_structure(root):
            yield from self._inside(root, 0)

    def _inside(self, tag: Tagged, depth: int) -> Iterator[Edit]:
        """Yield the edits of everything in an element that holds elements only."""
        for child in tag.children:
            yield from self._indent(child.start, depth + 1)
            if not self._is_read(child):
                continue
            yield from self._tag(child)
            if child.children and self._is_structure(child):
                yield from self._inside(child, depth + 1)
            elif child.closing is not None and not child.children:
                yield from self._indent(child.inner_end, depth + 1)  # the reader drops white space around a text
        for span in self._comments(tag):
            if "\n" not in span.of(self._text):
                yield from self._indent(span.start, depth + 1)
        if tag.closing is not None:
            yield from self._indent(tag.inner_end, depth)

    def _comments(self, tag: Tagged) -> list[Span]:
        """Return the comments that stand directly in an element."""
        first, last = bisect_left(self._starts, tag.inner_start), bisect_left(self._starts, tag.inner_end)
        return [comment for comment in self._scan.comments[first:last] if not _is_in_child(tag, comment.start)]

    def _is_read(self, tag: Tagged) -> bool:
        """Tell whether the engine reads an element, so that its white space has no meaning."""
        above = tag.parent
        if above is None or tag.tag in OPAQUE:
            return False
        if above.tag == "directive":
            return tag.tag in OWN_CONTENT
        return tag.tag in METADATA if above.tag == "metadata" else True

    def _is_structure(self, tag: Tagged) -> bool:
        """Tell whether an element holds only elements, comments and white space."""
        at = tag.inner_start
        parts = [*(child.span for child in tag.children), *self._comments(tag)]
        for part in sorted(parts, key=attrgetter("start")):
            if self._text[at : part.start].strip():
                return False
            at = part.end
        return not self._text[at : tag.inner_end].strip()

    def _indent(self, offset: int, depth: int) -> Iterator[Edit]:
        """Yield the edit of the white space at the start of the line, if nothing else stands before the offset."""
        start = line_start(self._text, offset)
        old = self._text[start:offset]
        if not old.strip() and start >= (self._scan.fence.start if self._scan.fence else 0):
            yield Edit(Span(start, offset), old, _INDENT * depth)

    def _tag(self, tag: Tagged) -> Iterator[Edit]:
        """Yield the edit of the white space in an opening tag that stands on one line."""
        start, end = tag.name_span.end, tag.inner_start
        old = self._text[start:end]
        if "\n" in old or not all(attribute.quoted for attribute in tag.attributes):
            return
        parts = [""]
        for attribute in tag.attributes:
            quote = self._text[attribute.value_span.start - 1]
            parts.append(f"{attribute.name}={quote}{attribute.value}{quote}")
        new = " ".join(parts) + (" />" if tag.empty else ">")
        if re.sub(r"\s", "", old) == re.sub(r"\s", "", new):
            yield Edit(Span(start, end), old, new)


def folds(view: View) -> list[Fold]:
    source, scanned = view.source, scan(view.source.text)
    folds: list[Fold] = []
    if scanned.fence is not None and scanned.opening is not None:
        folds.append(Fold(source.position(scanned.opening.start).line, source.position(scanned.fence.end).line))
    for tag in scanned.tags:
        if tag.closing is not None and scanned.holds(tag.start):
            folds.append(Fold(source.position(tag.start).line, source.position(tag.end).line))
    for comment in scanned.comments:
        first, last = source.position(comment.start).line, source.position(comment.end).line
        folds.append(Fold(first, last, "comment"))
    return [fold for fold in folds if fold.last > fold.first]


def lenses(view: View) -> list[Lens]:
    scanned = scan(view.source.text)
    root = scanned.root
    if root is None or not root.finished:
        return []
    uri = uri_of(view.path)
    text = view.source.text
    start = len(signature_line(text))
    start += len(text[start:]) - len(text[start:].lstrip())
    head = Span(start, start)
    cases = count_cases(view)
    sign = f"Sign ({signature_words(view)})"
    lenses = [*document_lenses(view, head, cases=cases, bound=bound_words(view), sign=sign)]
    lenses.append(Lens(head, "Prompt", "quire.showPrompt", (uri, "")))
    permissions = scanned.below("metadata", "permissions")
    lenses.append(Lens(permissions.span if permissions else head, "Can…", "quire.can", (uri,)))
    return [replace(lens, span=view.line(lens.span.start)) for lens in lenses]


def hints(view: View, span: Span) -> list[Hint]:
    scanned = scan(view.source.text)
    if scanned.fence is None or scanned.fence.end < span.start or scanned.fence.start > span.end:
        return []
    hints = [
        *_tier_hints(view),
        *_model_hint(view, scanned),
        *_limit_hints(view, scanned),
        *_inherited_hint(view, scanned),
    ]
    return [hint for hint in hints if span.holds(hint.offset)]


def _tier_hints(view: View) -> Iterator[Hint]:
    for pattern, where, _ in permissions(view):
        risk = tier(view, pattern)
        if risk is not None:
            yield Hint(where.end, risk.value, tooltip=f"`{pattern}` {risk.meaning}")


def _model_hint(view: View, scanned: Scan) -> Iterator[Hint]:
    tag = scanned.below("metadata", "model")
    if tag is None or not tag.finished:
        return
    name, reason = model_words(view, tag)
    yield Hint(tag.end, f"→ {name}" if name else "→ not known before it runs", tooltip=reason)


def _limit_hints(view: View, scanned: Scan) -> Iterator[Hint]:
    """Say which limits count although the directive does not set them. Limits of parents are not inherited."""
    metadata = scanned.below("metadata")
    if metadata is None or not metadata.finished:
        return
    effective, own = effective_limits(view)
    missing = [name for name in LIMITS if name not in own and name != "spend_currency"]
    if not missing:
        return
    tag = metadata.child("limits") or metadata.child("cost")
    words = ", ".join(f"{name} {amount(name, effective[name])}" for name in missing)
    at = tag.end if tag is not None and tag.finished else metadata.inner_start
    yield Hint(at, f"limits by default: {words}" if tag is None else f"by default: {words}")


def _inherited_hint(view: View, scanned: Scan) -> Iterator[Hint]:
    """Say whose permissions count if the directive has none itself."""
    extends = scanned.root.attribute("extends") if scanned.root else None
    if extends is None or scanned.below("metadata", "permissions") is not None:
        return
    for item_id, parent in ancestors(view):
        if scan(parent.source.text).below("metadata", "permissions") is not None:
            patterns = [pattern for pattern, _, _ in permissions(parent)]
            label = f"{len(patterns)} {pluralize('permission', len(patterns))} of {item_id}"
            yield Hint(extends.value_span.end + 1, label, tooltip="\n".join(f"- `{pattern}`" for pattern in patterns))
            return


_IDS = frozenset({"extends", "item_id"})


def tokens(view: View) -> list[Token]:
    text = view.source.text
    scanned = scan(text)
    return [*_fence_tokens(scanned), *_reference_tokens(text, scanned), *_call_tokens(text, scanned)]


def _fence_tokens(scanned: Scan) -> Iterator[Token]:
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
        for attribute in tag.attributes:
            yield Token(attribute.name_span, "property")
            yield Token(attribute.value_span, _value_kind(tag, attribute))
        if in_fence:
            yield from _text_token(tag)


def _value_kind(tag: Tagged, attribute: Attribute) -> TokenKind:
    if tag.tag == "condition" and attribute.name == "op":
        return "operator"
    if tag.tag == "condition" and attribute.name == "path":
        return "variable"
    if f"{tag.tag}.{attribute.name}" in VALUES:
        return "enumMember"
    if attribute.name in _IDS:
        return "namespace"
    if tag.path in ("inputs>input", "outputs>output") and attribute.name == "name":
        return "parameter"
    return "number" if number(attribute.value) is not None else "string"


def _text_token(tag: Tagged) -> Iterator[Token]:
    """Yield the text of an element that holds a pattern or an id."""
    if tag.children or not tag.finished:
        return
    parent = tag.parent.tag if tag.parent else ""
    if (permission := permission_at(tag)) is not None:
        yield Token(permission[1], "namespace")
    elif parent == "context" and tag.tag in CONTEXT and tag.text[0]:
        yield Token(tag.text[1], "namespace")


def _reference_tokens(text: str, scanned: Scan) -> Iterator[Token]:
    inputs, outputs = frozenset(declared_inputs(text)), frozenset(declared_outputs(text))
    for reference in value_references(text, scanned):
        declared = inputs if reference.kind == "input" else outputs
        missing = reference.name not in declared and not reference.optional
        if text[reference.whole.start : reference.whole.start + 1] in ("{", "$"):
            yield Token(reference.whole, "macro")
        yield Token(reference.span, "unresolved" if missing else "parameter")


def _call_tokens(text: str, scanned: Scan) -> Iterator[Token]:
    for call in spelled_calls(text, scanned.body_start, len(text)):
        yield Token(call.name_span, "function")
        for argument in call.arguments:
            yield Token(argument.name_span, "property" if argument.within else "parameter")
            if argument.value_span is not None:
                kind: TokenKind = "namespace" if argument.name in ("item_id", "directive_id") else "string"
                yield Token(argument.value_span, "enumMember" if argument.name in ("item_type", "scope") else kind)
