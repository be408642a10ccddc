"""Tell which thing a name means, in all documents of a workspace.

A thing belongs to one document: an input, a step, a schema. A name of a document (a callee, a prompt file) means the
whole document, however it is written.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.lsp.answers import DOCUMENTS, Name
from quire.lsp.prompt_files import VALUES, all_names
from quire.source import Span

if TYPE_CHECKING:
    from quire.lsp.views import View

OUTWARD = frozenset({"input", "output", "store", "step", "hook", "case", "schema", "agent", "server", "model"})
"""Kinds of things of one document that others may name: callers pass inputs, tests name steps, stores and hooks."""


class Thing(Struct, frozen=True):
    """A thing that names mean."""

    kind: str
    """The kind of the thing; `document` for a whole document."""
    text: str
    """Its name; empty for a document."""
    scope: str
    document: str

    @property
    def word(self) -> str:
        """A text that every document with a name of this thing holds."""
        if self.kind != "document":
            return self.text
        return self.scope or _bare(Path(self.document).name)

    def is_meant(self, view: View, name: Name) -> bool:
        return thing_of(view, name) == self


def thing_of(view: View, name: Name) -> Thing:
    """Return the thing that a name of a document means."""
    if name.kind in DOCUMENTS and name.document:
        return Thing("document", "", name.scope, name.document)
    return Thing(name.kind, name.text, name.scope, name.document or view.path)


def pipeline_names(text: str, span: Span, declared: str, path: str, *, renames: bool = True) -> Iterator[Name]:
    """Yield the names in a text by which a document calls a registered pipeline: the one that its file declares, and in
    `KEY.NAME` the one of a file of several, which follows when the file is renamed."""
    if text != declared:
        key = Span(span.start, span.end - len(declared) - 1)
        yield Name("pipeline", text, key, "reads", "", path, renames=False)
        span = Span(span.end - len(declared), span.end)
    yield Name("pipeline", text, span, "reads", declared, path, renames)


def places_of(view: View, name: Name) -> Iterator[tuple[View, Name]]:
    """Yield all places of the thing that a name means: in this document, in all others of its workspace, and in prompt
    files."""
    thing = thing_of(view, name)
    shared = thing.kind == "document" or thing.document != view.path or thing.kind in OUTWARD
    # The text of a pipeline does not hold the labels of its steps: they follow from their order.
    home = view.folder.view(thing.document) if thing.document != view.path else None
    others = {home.path: home} if home is not None else {}
    others |= {one.path: one for one in view.folder.holding(thing.word)} if shared else {}
    for other in (*others.values(), view):
        if other is view or other.path != view.path:
            yield from ((other, one) for one in other.index.names if thing.is_meant(other, one))
    if thing.kind in VALUES and (owner := view if thing.document == view.path else view.folder.view(thing.document)):
        yield from ((prompt, one) for prompt, one in all_names(owner) if thing.is_meant(prompt, one))


def definitions_of(view: View, name: Name) -> list[tuple[str, Span]]:
    """Return where the thing of a name is introduced: path and span. A document without a name of its own is introduced
    by its first line."""
    thing = thing_of(view, name)
    home = view if thing.document == view.path else view.folder.view(thing.document)
    names = home.index.names if home else ()
    places = [one for one in names if home and thing.is_meant(home, one)]
    declared = [one for one in places if one.role == "declares"] or [one for one in places if one.role == "writes"]
    if not declared and thing.kind == "document":
        # A document that was never saved is only in the editor. A name that is too long: False, not an exception.
        is_there = home is not None or os.path.isfile(thing.document)  # noqa: PTH113
        return [(thing.document, Span(0, 0))] if is_there else []
    return [(thing.document, one.span) for one in declared]


def _bare(file: str) -> str:
    """Return the part of the name of a file that every reference to it holds."""
    return file.partition(".")[0] or file
