"""The rules for new names of stores, inputs, schemas, pipelines and branches."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from quire.expr.syntax import KEYWORDS, RESERVED
from quire.formats.pipeline.syntax import RULE, is_name
from quire.lsp.name_targets import places_of, thing_of
from quire.lsp.pipeline.pass_lists import place_edits

if TYPE_CHECKING:
    from quire.lsp.answers import Name
    from quire.lsp.views import View

__all__ = ["name_problem", "place_edits"]

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


def _taken(view: View, name: Name, new: str) -> str:
    """Return whether another thing has the new name already."""
    thing = thing_of(view, name)
    home = view if thing.document == view.path else view.folder.view(thing.document)
    kinds = ("store", "input") if name.kind in ("store", "input") else (name.kind,)
    for one in home.index.names if home is not None else ():
        same_scope = one.scope == name.scope or name.kind == "pipeline"
        if one.kind in kinds and one.text == new and same_scope and (one.document or thing.document) == thing.document:
            return f"there is a {one.kind} {new} already"
    if name.kind == "pipeline" and view.folder.snapshot is not None:
        from quire.errors import QuireError

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
    for where, one in places_of(view, name):
        line = where.source.position(one.span.start).line
        if where.source.text[one.span.start : one.span.end] != one.text:
            return f"line {line} of {where.path.rpartition('/')[2]} names it in a way that cannot be changed alone"
    if name.kind == "branch":
        return _in_tests(view, name)
    return ""


def _in_tests(view: View, name: Name) -> str:
    """Return whether a test names a step by a branch."""
    for other in view.folder.holding(name.text):
        if other.format != "test":
            continue
        for one in other.index.names:
            if one.kind == "step" and one.document == view.path and name.text in one.text.split("."):
                return f"{other.path.rpartition('/')[2]} names a step by this branch: {one.text}"
    return ""
