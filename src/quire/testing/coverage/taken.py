"""The decisions that a run took, found by replaying its journal on a watched plan.

Pure steps are computed again and again and never recorded, so a replay decides everything once more: it shows each
condition without touching the run. A run that is not measured does none of this work.

In a file with several pipelines one is the document, and calls of the others belong to it. The others have no file of
their own, so their decisions are counted together with those of the document, each under the name of its pipeline. In
all other files there is one document, and its decisions are not prefixed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct
from msgspec.structs import replace

from quire.engine.driver.replay import Rests, replay
from quire.engine.progress import Progress
from quire.engine.requests import Emit, Fan, HumanRequest, Join, Load, Metering, ModelRequest, Spawn, ToolRequest
from quire.errors import JournalMismatch, LimitReached, StepFailed
from quire.library.registered import read_pipelines

if TYPE_CHECKING:
    from quire.engine.records import EffectRecord
    from quire.engine.requests import Request, Walk
    from quire.library.document import Document
    from quire.plan.nodes import Plan
    from quire.runs.pins import PinnedRun
    from quire.testing.coverage.watched_documents import WatchedDocument
    from quire.values import Value

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
    pipelines = {pipeline.name: pipeline for pipeline in read_pipelines(document.key, document.source)[0]}
    own = next((pipeline.name for pipeline in pipelines.values() if pipeline.declared == document.declared), "")
    if len(pipelines) < 2 or not own:
        return alone
    names: dict[str, None] = {own: None}
    stack = [own]
    while stack:
        for call in (call for _, step in pipelines[stack.pop()].plan.steps() for call in step.calls()):
            if call.document in pipelines and call.document not in names:
                names[call.document] = None
                stack.append(call.document)
    return tuple(FilePipeline(name, pipelines[name].declared, pipelines[name].plan) for name in names)


async def decisions_taken(
    document: WatchedDocument,
    run: PinnedRun,
    records: Sequence[EffectRecord],
    rests: Rests = lambda boundary: False,
) -> frozenset[str]:
    """Return the ids of the decisions that a run has taken so far. `rests` is that of `replay`.

    A run that cannot be replayed to its end, because its document was changed under it, has taken those that the
    replay came to.
    """
    document.begin(records)
    with contextlib.suppress(JournalMismatch, LimitReached):
        await replay(lambda work: watch(document, document.walk(run, work)), records, Progress({}), rests)
    return frozenset(document.taken)


def watch(document: WatchedDocument, walk: Walk) -> Walk:
    """Return a walk that makes the same requests, and reports them and their answers to a document."""
    return _Watch(document).watch(walk)


class _Watch(Struct):
    document: WatchedDocument

    def watch(self, walk: Walk) -> Walk:
        answer: Any = None
        error: StepFailed | None = None
        try:
            while True:
                request = walk.send(answer) if error is None else walk.throw(error)
                answer = error = None
                if isinstance(request, Emit):
                    self.document.emitted(request)
                    yield request
                    continue
                try:
                    answer = yield self._inside(request)
                except StepFailed as failed:
                    error = failed
                    self._failed(request, failed)
                else:
                    self._answered(request, answer)
        except StopIteration as stop:
            value: Value = stop.value
            return value
        finally:
            walk.close()

    def _inside(self, request: Request) -> Request:
        """Return the request with the walks in it watched too."""
        if isinstance(request, Fan):
            children = (self._child(request, number, child) for number, child in enumerate(request.children))
            return replace(request, children=children)
        if isinstance(request, Spawn):
            return replace(request, child=self.watch(request.child))
        return request

    def _child(self, fan: Fan, number: int, child: Walk) -> Walk:
        try:
            value = yield from self.watch(child)
        except StepFailed:
            self.document.child_ended(fan, number, failed=True)
            raise
        self.document.child_ended(fan, number, failed=False)
        return value

    def _failed(self, request: Request, error: StepFailed) -> None:
        if isinstance(request, ToolRequest) and error.kind != "denied":
            self.document.called(request)
        elif isinstance(request, ModelRequest):
            self.document.asked(request)
        if not isinstance(request, Fan | Spawn | Metering | Emit):
            self.document.failed(request, error)

    def _answered(self, request: Request, answer: Any) -> None:
        match request:
            case HumanRequest():
                self.document.answered(request, str(answer))
            case ModelRequest():
                self.document.asked(request)
            case ToolRequest():
                self.document.called(request)
            case Load():
                self.document.loaded(request)
            case Join():
                self.document.joined(request, cast("Sequence[Mapping[str, Value]]", answer))
