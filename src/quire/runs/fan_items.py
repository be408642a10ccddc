"""Facts about the rows of a run that only a replay has: the ends of items of fans, their values, and names of tools.

A replay reports the end of every item; `Progress` only counts them. The values of parallel items are not stored: they
are computed from the variables of the run at that step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import field

from quire.engine.premises import PureWork
from quire.engine.records import Status
from quire.engine.requests import Boundary, ModelRequest, ToolRequest
from quire.expr import EvalError
from quire.plan.pipeline_work import Fold, ForEach, Formula
from quire.plan.pipeline_work import Literal as Written
from quire.runs.step_reads import PIPE
from quire.runs.why import ProvenanceProgress

if TYPE_CHECKING:
    from quire.engine.records import Event
    from quire.runs.outcome import RunView
    from quire.runs.run_tree import RunTree
    from quire.values import Value

_ENDS = ("completed", "failed", "skipped")


class Recorded(ProvenanceProgress):
    """Progress that also keeps the ends of items: no store has these events."""

    ended: list[Event] = field(default_factory=list)

    def apply(self, event: Event) -> None:
        ProvenanceProgress.apply(self, event)
        if event.type == "fan_item":
            self.ended.append(event)


def explain(tree: RunTree, view: RunView) -> None:
    """Add to the tree of a run the facts that only a replay has: states of steps that only compute, the ends of items,
    the names of tools, and the values of items."""
    progress = view.replay.progress
    for path, request in view.replay.asked.items():
        match request:
            case Boundary():
                tree.computed[path.rpartition("/")[0]] = "completed"
            case ToolRequest() if path in tree.nodes:
                tree.nodes[path].tool = request.tool
    tree.computed |= {path: step.status for path, step in progress.steps.items() if step.status in _ENDS}
    if view.row.status in (Status.RUNNING, Status.INTERRUPTED):
        # Events are written with the effect that follows them, so nothing in the store says that it is under way.
        for request in view.replay.open:
            if isinstance(request, ModelRequest | ToolRequest):
                tree.begin(request.path)
    for event in progress.ended if isinstance(progress, Recorded) else ():
        tree.end_item(event, 0.0)
    add_values(tree, view)


def add_values(tree: RunTree, view: RunView) -> None:
    """Add the values that the fans of the document go through, as far as they can be computed."""
    for path, step in view.document.runnable().steps():
        if isinstance(step.work, ForEach | Fold) and path not in tree.values and path in tree.nodes:
            values = _values(view, step.work, path)
            tree.values.update({path: values} if values else {})


def _values(view: RunView, work: ForEach | Fold, path: str) -> Sequence[Value]:
    """Return the values that the step goes through; nothing if they cannot be computed, as inside of another item."""
    progress = view.replay.progress
    if not isinstance(progress, ProvenanceProgress) or path not in progress.begun:
        return ()
    stores, pipe = _before(view, progress, path)
    values: Value = pipe
    if isinstance(work.source, Written):
        values = work.source.value
    elif isinstance(work.source, Formula):
        try:
            values = work.source.compiled.evaluate({"ctx": stores, "pipe": pipe}, stores, PureWork())
        except EvalError:
            return ()
    return values if isinstance(values, list | tuple) else ()


def _before(view: RunView, progress: ProvenanceProgress, path: str) -> tuple[Mapping[str, Value], Value]:
    """Return the stores and the incoming value of a top-level step when it began."""
    stores, pipe = dict(view.pins.inputs), None
    for write in progress.before(path):
        if write.name == PIPE:
            pipe = write.value
        else:
            stores[write.name] = write.value
    return stores, pipe
