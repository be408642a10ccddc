"""Tell which thing a name means, in all documents of a workspace, and which calls would lead a document back to itself.

A thing belongs to one document: an input, a step, a schema. A name of a document (a called document, a prompt file)
means the whole document, however it is written.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.errors import QuireError
from quire.lsp.answers import DOCUMENTS, Name, NameKind
from quire.lsp.prompts import VALUES, all_names
from quire.source import Span

if TYPE_CHECKING:
    from quire.formats.pipeline.syntax import Pipeline
    from quire.library.snapshot import Snapshot
    from quire.lsp.desk import Folder
    from quire.lsp.document_view import View


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
        name = Path(self.document).name
        return self.scope or name.partition(".")[0] or name

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
    others |= {other.path: other for other in view.folder.holding(thing.word)} if shared else {}
    for other in (*others.values(), view):
        if other is view or other.path != view.path:
            yield from ((other, name) for name in other.index.names if thing.is_meant(other, name))
    if thing.kind in VALUES and (owner := view if thing.document == view.path else view.folder.view(thing.document)):
        yield from ((prompt, named) for prompt, named in all_names(owner) if thing.is_meant(prompt, named))


def definitions_of(view: View, name: Name) -> list[tuple[str, Span]]:
    """Return where the thing of a name is introduced: path and span. A document without a name of its own is introduced
    by its first line."""
    thing = thing_of(view, name)
    home = view if thing.document == view.path else view.folder.view(thing.document)
    names = home.index.names if home else ()
    places = [place for place in names if home and thing.is_meant(home, place)]
    by_role = {role: [place for place in places if place.role == role] for role in ("declares", "writes")}
    declared = by_role["declares"] or by_role["writes"]
    if not declared and thing.kind == "document":
        # A document that was never saved is only in the editor. A name that is too long: False, not an exception.
        is_there = home is not None or os.path.isfile(thing.document)  # noqa: PTH113
        return [(thing.document, Span(0, 0))] if is_there else []
    return [(thing.document, place.span) for place in declared]


class CalledDocument(Struct, frozen=True):
    """A document that a call means."""

    kind: NameKind
    path: str
    declared: str = ""
    """The name that the file of a pipeline declares, which can be renamed there."""
    several: bool = False
    """True for a pipeline in a file of several."""
    tree: Pipeline | None = None

    @property
    def scope(self) -> str:
        """Tells its inputs apart from those of other pipelines of the file."""
        return self.declared if self.several else ""


def called_document(folder: Folder, name: str, absolute: Callable[[str], str]) -> CalledDocument | None:
    """Return the document of a workspace that a name means; None if there is none. `absolute` makes paths whole."""
    if folder.snapshot is None:
        return None
    try:
        if (pipeline := folder.snapshot.registry().pipelines.get(name)) is not None:
            several = pipeline.name != pipeline.declared
            path = absolute(pipeline.source.name)
            return CalledDocument("pipeline", path, pipeline.declared, several, pipeline.tree)
        if (playbook := folder.snapshot.playbooks().find(name)) is not None:
            return CalledDocument("document", absolute(str(playbook[1])))
        item = folder.snapshot.named_directive(name)
    except QuireError:
        return None
    return CalledDocument("directive", os.path.abspath(item.path)) if item else None  # noqa: PTH100


MOST_READ = 100
"""Playbooks are not read for the calls in them if there are more documents than these: after each letter it would take
too long."""
_OWN = "\0"
"""Stands before the name of a document of the open file, which may not be registered."""


class CallCircles:
    """The calls between playbooks and pipelines, as far as they may lead back to an open document. Calls of a directive
    are decided by a model, so they close no circle."""

    def __init__(
        self,
        snapshot: Snapshot | None,
        here: str,
        own: Mapping[str, tuple[str, ...]],
        names: Mapping[str, str],
        *,
        reads: bool,
    ) -> None:
        """`here` is the document of the file that calls, `own` has all documents of the file with their calls, `names`
        the names by which others call them. `reads` tells whether the calls of playbooks count, too."""
        self._snapshot = snapshot
        self._here = f"{_OWN}{here}"
        self._own = own
        self._names = names
        self._reads = reads
        self._open: set[str] = set()
        """Documents that are known not to lead back."""

    def is_closed_by(self, name: str) -> bool:
        """Tell whether a call with a name would close a circle."""
        start = self._node(name, inside=True)
        reached, left = {start}, [start]
        while left:
            document = left.pop()
            if document == self._here:
                return True
            for called in self._calls(document):
                if called not in reached and called not in self._open:
                    reached.add(called)
                    left.append(called)
        self._open |= reached
        return False

    def _node(self, name: str, *, inside: bool = False) -> str:
        """Return the document that a name means; `inside` is a call in the open file."""
        if inside and name in self._own:
            return f"{_OWN}{name}"
        return f"{_OWN}{self._names[name]}" if name in self._names else name

    def _calls(self, document: str) -> Iterator[str]:
        if document.startswith(_OWN):
            yield from (self._node(name, inside=True) for name in self._own.get(document.removeprefix(_OWN), ()))
        elif self._snapshot is not None:
            yield from map(self._node, _called(document, self._snapshot, playbooks=self._reads))


def _called(name: str, snapshot: Snapshot, *, playbooks: bool) -> list[str]:
    """Return the names that a pipeline calls, or a playbook."""
    from quire.plan.uses import called_names

    try:
        registered = snapshot.registry().pipelines.get(name)
        if registered is not None:
            return list(called_names(registered.plan))
        document = snapshot.find(name, ("playbook",)) if playbooks else None
    except QuireError:
        return []
    return list(called_names(document.plan)) if document is not None and document.plan is not None else []
