"""The documents that a pipeline calls: where they are, what they take and what they give."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from quire.errors import QuireError
from quire.lsp.pipeline.tree import file_of
from quire.source import real_path

if TYPE_CHECKING:
    from quire.formats.pipeline.syntax import Pipeline
    from quire.formats.resolver import DocumentInterface
    from quire.library.registered import Registered
    from quire.lsp.views import View
    from quire.schema import Field


class CalledDocument(Struct, frozen=True):
    """A document that a name means."""

    name: str
    format: str
    path: str
    declared: str = ""
    """The name of a pipeline in its file."""
    several: bool = False
    """True for a pipeline in a file of several."""
    tree: Pipeline | None = None

    @property
    def scope(self) -> str:
        """Tells its inputs and stores apart from those of other pipelines of the file."""
        return self.declared if self.several else ""


def callee_of(view: View, name: str) -> CalledDocument | None:
    """Return the document that a target means in a file; None if there is none."""
    file = file_of(view)
    own = next((one for one in file.pipelines if one.name.text == name), None)
    if own is not None:
        return CalledDocument(name, "pipeline", view.path, name, len(file.pipelines) > 1, own)
    snapshot = view.folder.snapshot
    if snapshot is None:
        return None
    try:
        registered = snapshot.registry().pipelines.get(name)
        if registered is not None:
            return _registered(registered)
        if (playbook := snapshot.playbooks().find(name)) is not None:
            return CalledDocument(name, "playbook", str(real_path(playbook[1])))
        item = snapshot.named_directive(name)
    except QuireError:
        return None
    return CalledDocument(name, "directive", str(item.path)) if item is not None else None


def _registered(one: Registered) -> CalledDocument:
    from pathlib import Path

    several = one.name != one.declared
    return CalledDocument(one.name, "pipeline", str(Path(one.source.name).resolve()), one.declared, several, one.tree)


def interface_of(view: View, name: str) -> DocumentInterface | None:
    """Return what a callee takes and gives; None if it is not known."""
    callee = callee_of(view, name)
    if callee is not None and callee.tree is not None:
        return _interface(callee.tree)
    snapshot = view.folder.snapshot
    try:
        return snapshot.document(name) if snapshot is not None else None
    except QuireError:
        return None


def _interface(tree: Pipeline) -> DocumentInterface:
    from quire.formats.pipeline.inputs import further_inputs, needed_inputs
    from quire.formats.resolver import DocumentInterface

    needed = needed_inputs(tree)
    return DocumentInterface("pipeline", tree.name.text, needed, (*needed, *further_inputs(tree)))


def input_fields(view: View, name: str) -> dict[str, Field]:
    """Return the inputs that a called pipeline declares, by name."""
    callee = callee_of(view, name)
    if callee is None or callee.tree is None or callee.tree.input is None:
        return {}
    return {one.name: one for one in callee.tree.input}
