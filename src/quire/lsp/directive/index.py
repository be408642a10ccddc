"""The names and parts of a directive: its outline, its inputs and outputs, and the items that it names.

Names come from a scan of the tags, so they are available while the text is not well-formed.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from quire.lsp.answers import Index, Link, Name, Symbol
from quire.lsp.directive.instruction_calls import SpelledCall, spelled_calls
from quire.lsp.directive.item_words import (
    KINDS,
    ancestors,
    entry_of,
    is_static,
    path_of_item,
    permitted_pipeline,
    pipeline_called,
)
from quire.lsp.directive.tags import Scan, Tagged, scan
from quire.lsp.name_targets import pipeline_names
from quire.patterns import late_pattern
from quire.plan.built_in_tools import FORK
from quire.plan.vocabulary import CONTEXT, ITEM_TYPES, PRIMARIES
from quire.source import Span
from quire.trust.capabilities import canonical
from quire.wording import cut_line

if TYPE_CHECKING:
    from quire.lsp.answers import NameKind
    from quire.lsp.document_view import View

# A reference without its brace matches too, and is passed over: so its line is not searched again for the next one.
_REFERENCE = late_pattern(r"\{input:(\w++)(\?|[:|][^}\n]*+)?(\})?|\$\{([^{}\n]*+)\}")
_VALUE = late_pattern(r"(?<![\w.])(inputs|outputs)\.(\w++)")


class ValueReference(Struct, frozen=True):
    """A place that reads an input or an output."""

    kind: Literal["input", "output"]
    name: str
    span: Span
    """The characters of the name."""
    whole: Span
    """The reference with its braces, or the path."""
    optional: bool = False
    """True if it has a default, or may stay empty."""


def value_references(text: str, scanned: Scan) -> Iterator[ValueReference]:
    """Yield the references in the fence and in the instructions."""
    parts = [Span(scanned.body_start, len(text))]
    if scanned.fence is not None:
        parts.insert(0, scanned.fence)
    for part in parts:
        for match in _REFERENCE.finditer(text, part.start, part.end):
            whole = Span(match.start(), match.end())
            if match[3]:
                optional = match[2] is not None
                yield ValueReference("input", match[1], Span(match.start(1), match.end(1)), whole, optional)
            elif match[4]:
                in_fence = part is scanned.fence
                yield from _in_path(text, Span(match.start(4), match.end(4)), whole, outputs=in_fence)
    for tag in scanned.tags:
        if tag.tag == "condition" and (path := tag.attribute("path")) is not None:
            yield from _in_path(text, path.value_span, path.value_span, outputs=True)


def _in_path(text: str, span: Span, whole: Span, *, outputs: bool) -> Iterator[ValueReference]:
    for match in _VALUE.finditer(text, span.start, span.end):
        if match[1] == "inputs":
            yield ValueReference("input", match[2], Span(match.start(2), match.end(2)), whole, optional=True)
        elif outputs:
            yield ValueReference("output", match[2], Span(match.start(2), match.end(2)), whole, optional=True)


_HEADING = re.compile(r"^(#{1,4})[ \t]+(\S[^\n]*)$", re.MULTILINE)
_DETAIL = 60
_BODY = ("process", "step", "success_criteria", "criterion")
_INNER = ("action", "condition", "any", "all", "not", "param", "criterion")
"""Elements that are too small for the outline."""


def outline(view: View, scanned: Scan) -> tuple[Symbol, ...]:
    """Return one symbol for the directive, which has all others in it."""
    text = view.source.text
    if not text.strip():
        return ()
    root = scanned.root
    named = root.attribute("name") if root else None
    title = _HEADING.search(text, 0, scanned.opening.start if scanned.opening else len(text))
    if named is not None and named.value.strip():
        name, selection = named.value.strip(), named.value_span
    elif title is not None:
        name, selection = title[2].strip(), Span(title.start(2), title.end(2))
    else:
        name, selection = "directive", Span(0, 0)
    description = scanned.below("metadata", "description")
    children = [_symbol(child) for child in root.children if child.finished] if root else []
    children += _body(text, scanned)
    detail = cut_line(description.text[0], _DETAIL) if description else ""
    return (Symbol(name, "directive", Span(0, len(text)), selection, detail, tuple(children)),)


def _symbol(tag: Tagged) -> Symbol:
    name, kind, selection, detail = _described(tag)
    children = tuple(_symbol(child) for child in tag.children if child.finished and child.tag not in _INNER)
    return Symbol(name, kind, tag.span, selection, detail, children)


def _described(tag: Tagged) -> tuple[str, NameKind, Span, str]:
    parent = tag.parent.tag if tag.parent else ""
    named = tag.attribute("id" if tag.tag == "hook" else "name")
    text = tag.text[0]
    short = cut_line(text, _DETAIL) if not tag.children else ""
    match tag.tag:
        case "input" | "output" if parent == f"{tag.tag}s" and named is not None and named.value:
            kind: NameKind = "input" if tag.tag == "input" else "output"
            return named.value, kind, named.value_span, tag.value("type") or "string"
        case "hook" if named is not None and named.value:
            return named.value, "hook", named.value_span, tag.value("event")
        case "step" if named is not None and named.value:
            return named.value, "step", named.value_span, ""
        case _ if parent == "outputs" and tag.tag not in ("success", "failure"):
            return tag.tag, "output", tag.name_span, short
        case _ if parent in PRIMARIES and tag.inside("permissions") and text:
            return cut_line(text, _DETAIL), "capability", tag.text[1], f"{parent} {tag.tag}"
        case "limits" | "model":
            settings = ", ".join(f"{attribute.name} {attribute.value}" for attribute in tag.attributes)
            return tag.tag, "element", tag.name_span, cut_line(settings, _DETAIL)
    return tag.tag, "element", tag.name_span, short


def headings(text: str, start: int, skips: Callable[[int], bool] = lambda _at: False) -> Iterator[Symbol]:
    """Yield the headings behind an offset, the last one first, each with all below it."""
    ends = [len(text)] * 5
    for match in reversed(list(_HEADING.finditer(text, start))):
        if not skips(match.start()):
            level = len(match[1])
            yield Symbol(match[2].strip(), "element", Span(match.start(), ends[level]), Span(*match.span(2)))
            ends[level:] = [match.start()] * (5 - level)


def _body(text: str, scanned: Scan) -> list[Symbol]:
    """Return the parts of the instructions: elements with a meaning, else headings."""
    elements = [tag for tag in scanned.tags if tag.start >= scanned.body_start and tag.tag in _BODY and tag.finished]
    top = [element for element in elements if not any(above.tag in _BODY for above in element.around())]
    starts = [element.start for element in top]

    def is_in_element(at: int) -> bool:
        around = bisect_right(starts, at) - 1
        return around >= 0 and at < top[around].end

    symbols = [*map(_symbol, top), *headings(text, scanned.body_start, is_in_element)]
    return sorted(symbols, key=lambda symbol: symbol.span.start)


def index(view: View) -> Index:
    text = view.source.text
    scanned = scan(text)
    names = sorted(_Names(view, scanned).all(), key=lambda name: name.span.start)
    links = [
        Link(name.span, name.document, f"{name.kind} {name.text}")
        for name in names
        if name.role == "reads" and name.kind in KINDS.values() and name.document
    ]
    pairs = [(tag.name_span, tag.closing) for tag in scanned.tags if tag.closing is not None]
    return Index(tuple(names), outline(view, scanned), tuple(links), tuple(pairs))


class _Names:
    """Collects the names of one document."""

    def __init__(self, view: View, scanned: Scan) -> None:
        self._view = view
        self._folder = view.folder
        self._scan = scanned
        self._text = view.source.text
        self._hooks = {tag.value("id") for tag in scanned.tags if tag.tag == "hook"}

    def all(self) -> Iterator[Name]:
        for tag in self._scan.tags:
            if self._scan.holds(tag.start):
                yield from self._in_fence(tag)
            if tag.tag == "step" and (named := tag.attribute("name")) and named.value:
                yield Name("step", named.value, named.value_span, "declares", renames=False)
            elif tag.tag in (*PRIMARIES, "action") and not tag.inside("permissions"):
                yield from self._action(tag)
        for reference in value_references(self._text, self._scan):
            yield Name(reference.kind, reference.name, reference.span, "reads")
        for call in spelled_calls(self._text, self._scan.body_start, len(self._text)):
            yield from self._call(call)

    def _in_fence(self, tag: Tagged) -> Iterator[Name]:
        parent = tag.parent.tag if tag.parent else ""
        match tag.tag:
            case "directive" if tag is self._scan.root:
                if (named := tag.attribute("name")) and named.value.strip():
                    own = self._view.path
                    yield Name("directive", named.value, named.value_span, "declares", document=own, renames=False)
                if (extended := tag.attribute("extends")) and extended.value.strip():
                    yield from self._item("directive", extended.value, extended.value_span)
            case "input" if parent == "inputs":
                yield from self._parameter(tag, "input")
            case "output" if parent == "outputs":
                yield from self._parameter(tag, "output")
            case "hook":
                if (named := tag.attribute("id")) and named.value:
                    yield Name("hook", named.value, named.value_span, "declares")
            case "model":
                yield from self._model(tag)
            case _ if parent == "outputs" and tag.tag not in ("success", "failure") and tag.finished:
                yield Name("output", tag.tag, tag.name_span, "declares")
                if tag.closing is not None:
                    yield Name("output", tag.tag, tag.closing, "reads")
            case _ if parent == "context" and tag.tag in CONTEXT and not tag.inside("cost"):
                yield from self._layer(tag)
            case _ if parent in PRIMARIES and tag.inside("permissions"):
                yield from self._permission(tag, parent)

    def _parameter(self, tag: Tagged, kind: NameKind) -> Iterator[Name]:
        if (named := tag.attribute("name")) and named.value.strip():
            yield Name(kind, named.value.strip(), _stripped(self._text, named.value_span), "declares")

    def _model(self, tag: Tagged) -> Iterator[Name]:
        for key in ("tier", "fallback"):
            if (named := tag.attribute(key)) and named.value.strip():
                yield self._configured("model", named.value.strip(), _stripped(self._text, named.value_span))
        if (named := tag.attribute("id")) and named.value.strip():
            span = _stripped(self._text, named.value_span)
            yield Name("model", named.value.strip(), span, "reads", renames=False)

    def _configured(self, kind: NameKind, name: str, span: Span) -> Name:
        """Return a name that `quire.toml` may declare."""
        path = self._folder.settings_file
        home = self._folder.view(path) if self._folder.settings and Path(path).is_file() else None
        declared = home is not None and any(
            (other.kind, other.text, other.role) == (kind, name, "declares") for other in home.index.names
        )
        return Name(kind, name, span, "reads", document=path if declared else "", renames=declared)

    def _layer(self, tag: Tagged) -> Iterator[Name]:
        text, span = tag.text
        if not text or not tag.finished:
            return
        if tag.tag == "suppress" and not path_of_item(self._folder, "knowledge", text):
            yield self._suppressed_hook(text, span)
        else:
            yield from self._item("knowledge", text, span)

    def _suppressed_hook(self, text: str, span: Span) -> Name:
        """Return the hook that is left out: one of this directive, or of one that it extends."""
        if text in self._hooks:
            return Name("hook", text, span, "reads")
        for _, parent in ancestors(self._view):
            if any(tag.tag == "hook" and tag.value("id") == text for tag in scan(parent.source.text).tags):
                return Name("hook", text, span, "reads", document=parent.path)
        return Name("hook", text, span, "reads", renames=False)

    def _permission(self, tag: Tagged, primary: str) -> Iterator[Name]:
        text, span = tag.text
        if not text or not tag.finished or tag.children:
            return
        if tag.tag == "pipeline" and (called := permitted_pipeline(self._folder, text)):
            yield from self._item("pipeline", called, span)
            return
        if tag.tag in KINDS and is_static(text):
            slashed = text if "/" in text else text.replace(".", "/")
            if entry_of(self._folder, tag.tag, slashed) is not None:
                yield from self._item(tag.tag, slashed, span)
                return
        if tag.tag == "tool" and is_static(text):
            yield self._tool(text.replace(".", "/") if "/" not in text else text, span)
            return
        dotted = text.replace("/", ".")
        yield Name("capability", f"rye.{primary}.{tag.tag}.{dotted}", span, "reads", renames=False)

    def _action(self, tag: Tagged) -> Iterator[Name]:
        item_type, named = tag.value("item_type"), tag.attribute("item_id")
        target = scope = ""
        if named is not None and named.value.strip():
            span = _stripped(self._text, named.value_span)
            yield from self._item(item_type, named.value.strip(), span)
            target = path_of_item(self._folder, item_type, named.value.strip()) if item_type != "tool" else ""
            scope = self._inputs_of(item_type, named.value)
        parameters = [(child, child.attribute("name")) for child in tag.children if child.tag == "param"]
        starts = item_type == "tool" and named is not None and canonical(named.value.strip()) == FORK
        for param, name in parameters:
            if name is None or not name.value:
                continue
            if target and tag.value("primary") in ("", "execute") and tag.tag in ("execute", "action"):
                yield Name("input", name.value, name.value_span, "writes", scope, target)
            elif starts and name.value == "directive_id" and param.text[0]:
                yield from self._item("directive", *param.text)

    def _call(self, call: SpelledCall) -> Iterator[Name]:
        item_type, named = call.item_type, call.argument("item_id")
        target, scope, within = "", "", "parameters"
        if named is not None and named.value_span is not None and named.value:
            yield from self._item(item_type, named.value, named.value_span)
            if item_type == "tool" and canonical(named.value) == FORK:
                within = "parameters.inputs"
                started = call.argument("directive_id", "parameters")
                if started and started.value_span and started.value:
                    yield from self._item("directive", started.value, started.value_span)
                    target = path_of_item(self._folder, "directive", started.value)
            elif call.primary == "execute":
                target = path_of_item(self._folder, item_type, named.value)
                scope = self._inputs_of(item_type, named.value)
        for argument in call.arguments if target else ():
            if argument.within == within:
                yield Name("input", argument.name, argument.name_span, "writes", scope, target)

    def _item(self, item_type: str, item_id: str, span: Span) -> Iterator[Name]:
        """Yield the name of an item. It follows when its file is renamed, or the pipeline in it."""
        item_id, span = item_id.strip(), _stripped(self._text, span)
        if item_type not in ITEM_TYPES or item_type == "tool":
            yield self._tool(item_id, span)
            return
        path = path_of_item(self._folder, item_type, item_id)
        called = pipeline_called(self._folder, item_id) if item_type == "pipeline" and path else None
        if called is not None:
            yield from pipeline_names(item_id, span, called.declared, path)
        else:
            yield Name(KINDS[item_type], item_id, span, "reads", "", path, renames=False)

    def _inputs_of(self, item_type: str, item_id: str) -> str:
        """Return the scope of the inputs of an item: the pipeline, in a file of several."""
        called = pipeline_called(self._folder, item_id) if item_type == "pipeline" else None
        return called.declared if called is not None and called.name != called.declared else ""

    def _tool(self, item_id: str, span: Span) -> Name:
        return Name("tool", canonical(item_id), _stripped(self._text, span), "reads", renames=False)


def _stripped(text: str, span: Span) -> Span:
    """Return a span without the white space around its text."""
    inner = span.of(text)
    start = span.start + len(inner) - len(inner.lstrip())
    return Span(start, max(start, span.start + len(inner.rstrip())))
