"""Texts that commands of the editor return: what is proven of a document, and how a workspace differs from its lock.

Both are made of the texts that the editor has. No server is started, no price list is loaded and no run is read.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from quire.errors import CannotStart

if TYPE_CHECKING:
    from quire.lsp.folders import Folder
    from quire.lsp.views import View

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def proof_text(view: View) -> str:
    """Return the bounds, gates, flows and the envelope of a document, as `quire show` prints them. Raises
    `QuireError` for a document that cannot run."""
    import datetime

    from quire.analysis.flow_paths import flows_of
    from quire.analysis.gates import gates_of
    from quire.display.outline import envelope_lines
    from quire.display.proof_lines import bound_lines, flow_lines, gate_lines
    from quire.runs.proven import assumed_sizes, prove_document

    if view.document is None or view.document.plan is None:
        raise CannotStart("the document has errors, so nothing is proven of it yet")
    document, settings = view.document, view.folder.settings
    today = datetime.datetime.now(datetime.UTC).date()
    found = prove_document(document, settings, model="", today=today, environ=os.environ)
    lines = [
        *bound_lines(found.quantities, assumed_sizes(settings, (), None)),
        *gate_lines(gates_of(found.proof)),
        *flow_lines(flows_of(found.proof)),
        *envelope_lines(view.folder.foresight.envelope(document.runnable(), document.name)),
    ]
    return _COLOURS.sub("", "\n".join(lines).strip("\n")) + "\n"


def lock_text(folder: Folder) -> str:
    """Return how the documents of a workspace differ from its `quire.lock`, as Markdown. Raises `QuireError` if there
    is no lock, or if it cannot be read."""
    from quire.analysis.lock.compare import compare
    from quire.display.lock_diff import diff_markdown
    from quire.library.collect import collect
    from quire.library.lock_facts import LockFacts
    from quire.library.lock_file import load_lock, lock_path, require_lock
    from quire.workspace.locate import find_workspace

    workspace = find_workspace(folder.path)
    reading = load_lock(lock_path(workspace))
    if reading is None:
        raise CannotStart("the workspace has no quire.lock yet: quire lock writes one")
    before = require_lock(reading)
    found, _ = collect([str(workspace.folder)])
    facts = LockFacts.with_lock(workspace, before)
    documents = list(facts.documents([one.path for one in found]))
    new = facts.lock(documents)
    broken = sorted(one.key for one in documents if one.plan is None)
    changes = tuple(change for change in compare(before, new) if change.document not in broken)
    told = "".join(f"\n{key} has errors and cannot be compared.\n" for key in broken)
    return diff_markdown(changes, new.assumed) + told
