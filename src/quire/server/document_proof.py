"""The parts of a document that are proven before it runs: numbers, gates, flows, and how it stands to the lock."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from quire.analysis.flow_paths import flows_of
from quire.analysis.gates import gates_of
from quire.display.flowchart_proof import overlay_of
from quire.display.proof_json import flows_data, gates_data, lock_data, proof_data
from quire.library.foresight import Foresight
from quire.library.lock_state import lock_state
from quire.runs.proven import assumed_sizes, prove_document

if TYPE_CHECKING:
    from quire.display.flowchart_marks import Overlay
    from quire.library.document import Document
    from quire.library.document_state import DocumentState
    from quire.runs.proven import ProvenDocument
    from quire.runs.runtime import Runtime
    from quire.runs.usage_seen import UsageSeen
    from quire.server.site import Site
    from quire.values import Value


def proof_parts(
    site: Site, state: DocumentState, document: Document, seen: UsageSeen
) -> Mapping[str, Callable[[], Value]]:
    """Return the functions that make each part, all from one proof, which is made when the first is asked for."""
    proven = _Proven(site.runtime, document)
    return {
        "proof": lambda: _numbers(site.runtime, proven.whole, seen),
        "gates": lambda: gates_data(gates_of(proven.whole.proof)),
        "flows": lambda: flows_data(flows_of(proven.whole.proof)),
        "lock": lambda: lock_data(lock_state(site.runtime.settings.workspace, state.path)),
    }


class _Proven:
    def __init__(self, runtime: Runtime, document: Document) -> None:
        self._runtime = runtime
        self._document = document

    @cached_property
    def whole(self) -> ProvenDocument:
        today = datetime.datetime.now(datetime.UTC).date()
        return prove_document(self._document, self._runtime.settings, today=today, environ=self._runtime.environ)


def _numbers(runtime: Runtime, found: ProvenDocument, seen: UsageSeen) -> Value:
    assumed = assumed_sizes(runtime.settings, (), None)
    return proof_data(found.quantities, found.model, assumed, seen, found.proof.unknown)


def overlay_for(runtime: Runtime, document: Document) -> Overlay:
    """Return the marks and ways of a document's chart."""
    return overlay_of(Foresight(runtime.settings).proof(document.runnable(), document.name))
