"""The rules for new names of stores, inputs, schemas, pipelines and branches, and the edits that give them.

Renaming one side of `pass: [NAME]`, which names a store of the caller and an input of the called document at once,
makes the list a mapping, `pass: {NAME: ctx.NAME}`. It means the same and has a place for each of the two names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.diagnostics import Edit
from quire.errors import QuireError
from quire.expr import ExprSyntaxError, parse
from quire.expr.syntax import KEYWORDS, RESERVED
from quire.expr.syntax import Path as ExpressionPath
from quire.formats.pipeline.syntax import RULE, is_name
from quire.formats.pipeline.walks import targets
from quire.formats.yaml import Mapping, Scalar, Sequence, read_yaml
from quire.lsp.name_targets import places_of, thing_of
from quire.lsp.pipeline.index import callee_of, without_quotes
from quire.lsp.pipeline.tree import file_of, labelled
from quire.source import Span

if TYPE_CHECKING:
    from quire.formats.pipeline.syntax import Target
    from quire.formats.yaml import Node
    from quire.lsp.answers import Name
    from quire.lsp.document_view import View


class _Sides(Struct):
    """The new names for an item of a list; empty for a name that stays."""

    name: str
    store: str = ""
    input: str = ""


def place_edits(view: View, names: list[Name], new: str) -> list[Edit] | str:
    """Return the edits that give some places of a file a new name; a text says why one of them cannot have it."""
    listed = _listed_names(view, names, new)
    edits = []
    for span in dict.fromkeys(name.span for name in names):
        if span not in listed:
            edits.append(Edit(span, span.of(view.source.text), new))
    lists = _lists(view) if listed else {}
    rewritten: set[Span] = set()
    for span, sides in listed.items():
        if sides.store == sides.input:
            edits.append(Edit(span, span.of(view.source.text), new))
            continue
        around = lists.get(span)
        problem = "it cannot be read" if around is None else _problem(view, around, listed)
        if around is None or problem:
            place = f"line {view.source.position(span.start).line} of {Path(view.path).name}"
            return f"{place} passes {sides.name} in a list, which cannot become a mapping: {problem}"
        if around.node.span not in rewritten:
            rewritten.add(around.node.span)
            edits += _as_mapping(view, around.node, listed)
    return edits


def _listed_names(view: View, names: list[Name], new: str) -> dict[Span, _Sides]:
    """Return the items of lists that are among some places, by their spans without quotes."""
    by_span: dict[Span, list[Name]] = {}
    for name in names:
        by_span.setdefault(name.span, []).append(name)
    listed: dict[Span, _Sides] = {}
    file = file_of(view)
    for pipeline in file.pipelines:
        scope = pipeline.name.text if len(file.pipelines) > 1 else ""
        for target in (target for _, step in labelled(pipeline) for target in targets(step)):
            for span, item in _items(view, target):
                for name in by_span.get(span, ()):
                    sides = listed.setdefault(span, _Sides(item))
                    if name.scope == scope and name.document in ("", view.path):
                        sides.store = new
                    if _is_input(view, target, name):
                        sides.input = new
    return listed


def _items(view: View, target: Target) -> Iterator[tuple[Span, str]]:
    for passed in target.passes:
        if passed.value is None:
            yield without_quotes(view.source.text, passed.name.span, passed.name.text), passed.name.text


def _is_input(view: View, target: Target, name: Name) -> bool:
    callee = callee_of(view, target.pipeline.text)
    if callee is None or name.kind != "input":
        return False
    return (name.document or view.path, name.scope) == (callee.path, callee.scope)


class _List(Struct, frozen=True):
    """A list of the file, and how often it is used: more than once by aliases."""

    node: Sequence
    uses: int


def _lists(view: View) -> dict[Span, _List]:
    """Return the lists of a file by the spans of their items without quotes."""
    counted: dict[int, tuple[Sequence, int]] = {}
    for document in read_yaml(view.source).documents:
        for sequence in _sequences(document):
            counted[id(sequence)] = sequence, counted.get(id(sequence), (sequence, 0))[1] + 1
    return {
        without_quotes(view.source.text, item.span, item.text): _List(node, uses)
        for node, uses in counted.values()
        for item in node.items
        if isinstance(item, Scalar)
    }


def _sequences(node: Node) -> Iterator[Sequence]:
    if isinstance(node, Mapping):
        for entry in node.entries:
            yield from _sequences(entry.value)
    elif isinstance(node, Sequence):
        yield node
        for item in node.items:
            yield from _sequences(item)


def _problem(view: View, around: _List, listed: dict[Span, _Sides]) -> str:
    """Return why a list cannot become a mapping; empty if it can."""
    text, keys = view.source.text, []
    if around.uses > 1 or text[around.node.span.start] == "&":
        return "its anchor may be used at other places"
    for item in around.node.items:
        if not isinstance(item, Scalar):
            return "it has an item that is not a name"
        span = without_quotes(text, item.span, item.text)
        sides = listed.get(span, _Sides(item.text))
        if span.of(text) != item.text:
            return f"{item.text} is written in a way that cannot be changed"
        if not _is_readable(sides.store or item.text):
            return f"ctx.{sides.store or item.text} is not an expression"
        keys.append(sides.input or item.text)
    twice = next((key for key in keys if keys.count(key) > 1), "")
    if twice:
        return f"it would have {twice} twice"
    gaps = (text[dash.start + 1 : dash.end] for dash in _dashes(text, around.node))
    return "a comment is between a dash and its name" if any(gap.strip() for gap in gaps) else ""


def _is_readable(name: str) -> bool:
    """Tell whether an expression can read a store."""
    try:
        root = parse(f"ctx.{name}").root
    except ExprSyntaxError:
        return False
    return isinstance(root, ExpressionPath) and tuple(root.segments) == ("ctx", name)


def _as_mapping(view: View, node: Sequence, listed: dict[Span, _Sides]) -> Iterator[Edit]:
    """Yield the edits that make a mapping of a list. Comments between its items stay."""
    text = view.source.text
    for item in node.items:
        assert isinstance(item, Scalar)  # noqa: S101  # `_problem` has seen it
        sides = listed.get(without_quotes(text, item.span, item.text), _Sides(item.text))
        old = item.span.of(text)
        key = old.replace(item.text, sides.input) if sides.input else old
        yield Edit(item.span, old, f"{key}: ctx.{sides.store or item.text}")
    if text[node.span.start] == "[":
        yield Edit(Span(node.span.start, node.span.start + 1), "[", "{")
        yield Edit(Span(node.span.end - 1, node.span.end), "]", "}")
    for dash in _dashes(text, node):
        yield Edit(dash, dash.of(text), "  ")


def _dashes(text: str, node: Sequence) -> Iterator[Span]:
    """Yield the dash before each item up to the item itself; nothing for a list in brackets."""
    start = node.span.start
    if text[start] != "-":
        return
    column = start - text.rfind("\n", 0, start) - 1
    for item in node.items:
        yield Span(start, item.span.start)
        following = text.find(f"\n{' ' * column}-", item.span.end)
        start = following + 1 + column


_READABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BINDINGS = RESERVED | {"errors"}


def name_problem(view: View, name: Name, new: str) -> str:
    """Return why a thing cannot have a new name; empty if it can."""
    if not is_name(new):
        return f"{new!r} cannot be a name: {RULE}"
    if name.kind in ("store", "input", "branch"):
        if new in _BINDINGS or new in KEYWORDS:
            return f"{new} has a meaning of its own in expressions"
        if not _READABLE.fullmatch(new):
            return f"{new} could not be read in expressions, because of the hyphen"
    if new == name.text:
        return ""
    return _taken(view, name, new) or _tied(view, name)


def can_stand(view: View, name: Name, new: str) -> bool:
    """Tell whether a call can have a new name: it cannot write a slash."""
    return is_name(new)


def _taken(view: View, name: Name, new: str) -> str:
    """Return whether another thing has the new name already."""
    thing = thing_of(view, name)
    home = view if thing.document == view.path else view.folder.view(thing.document)
    kinds = ("store", "input") if name.kind in ("store", "input") else (name.kind,)
    for other in home.index.names if home is not None else ():
        is_here = other.document in ("", thing.document) and (other.scope == name.scope or name.kind == "pipeline")
        if is_here and other.kind in kinds and other.text == new:
            return f"there is a {other.kind} {new} already"
    if name.kind == "pipeline" and view.folder.snapshot is not None:
        try:
            if new in view.folder.snapshot.registry().pipelines:
                return f"there is a pipeline {new} already"
        except QuireError:
            return ""
    return ""


def _tied(view: View, name: Name) -> str:
    """Return why a thing cannot be renamed: a place writes its name unusually, or a test names a step by it."""
    if name.kind not in ("store", "input", "branch"):
        return ""
    for where, place in places_of(view, name):
        line = where.source.position(place.span.start).line
        if place.span.of(where.source.text) != place.text:
            return f"line {line} of {where.path.rpartition('/')[2]} names it in a way that cannot be changed alone"
    if name.kind == "branch":
        return _in_tests(view, name)
    return ""


def _in_tests(view: View, name: Name) -> str:
    """Return whether a test names a step by a branch."""
    for other in view.folder.holding(name.text):
        if other.format != "test":
            continue
        for step in other.index.names:
            if step.kind == "step" and step.document == view.path and name.text in step.text.split("."):
                return f"{other.path.rpartition('/')[2]} names a step by this branch: {step.text}"
    return ""
