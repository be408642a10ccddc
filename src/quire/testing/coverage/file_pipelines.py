"""The pipelines of a file with several: one of them is the document, and calls of the others belong to it.

The others have no file of their own, so their decisions are counted together with those of the document, each under the
name of its pipeline. In all other files there is one document, and its decisions are not prefixed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from quire.library.registered import read_pipelines

if TYPE_CHECKING:
    from quire.library.document import Document
    from quire.plan.nodes import Plan

JOINT = ">"


class FilePipeline(Struct, frozen=True):
    """One pipeline of a file."""

    name: str
    """The name by which it is called."""
    declared: str
    """The name in its file; empty if it is alone there."""
    plan: Plan

    @property
    def prefix(self) -> str:
        """The beginning of the places of its decisions."""
        return f"{self.declared}{JOINT}" if self.declared else ""


def file_pipelines(document: Document) -> tuple[FilePipeline, ...]:
    """Return the pipeline that a document is, and those of its file that it calls, directly or through others."""
    plan = document.runnable()
    alone = (FilePipeline(document.id, "", plan),)
    if plan.format != "pipeline" or not document.key:
        return alone
    found = {one.name: one for one in read_pipelines(document.key, document.source)[0]}
    own = next((one.name for one in found.values() if one.declared == document.declared), "")
    if len(found) < 2 or not own:
        return alone
    wanted: dict[str, None] = {own: None}
    stack = [own]
    while stack:
        for call in (call for _, step in found[stack.pop()].plan.steps() for call in step.calls()):
            if call.document in found and call.document not in wanted:
                wanted[call.document] = None
                stack.append(call.document)
    return tuple(FilePipeline(name, found[name].declared, found[name].plan) for name in wanted)
