"""What a thread runs with, put together before its first turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from quire.engine.thread.bundle import Bundle
from quire.engine.thread.compose import Composed
from quire.engine.thread.limits import Cost, Limits
from quire.engine.thread.purse import Purse
from quire.errors import StepFailed
from quire.values import Value

if TYPE_CHECKING:
    from quire.engine.call_document import Opened

FORK = "rye/agent/threads/thread_directive"
ORCHESTRATE = "rye/agent/threads/orchestrator"
NOTHING = Cost()


@dataclass(frozen=True, slots=True)
class Setup:
    """One thread. `id` is its name for people and for its parent, `path` where its effects stand in the journal.

    `grants` are all that it may do, `model` the one that it asks (empty: the run's own). `depth` counts its parents.
    `declared` is where its permissions stand; `open_document` reads a document that was loaded for it. `untrusted` is
    true where who starts it has read content from outside.
    """

    id: str
    path: str
    composed: Composed
    grants: tuple[str, ...]
    limits: Limits
    purse: Purse
    model: str = ""
    depth: int = 0
    declared: str = ""
    untrusted: bool = False
    open_document: Callable[[str], Opened] | None = None


def place_of(bundle: Bundle, composed: Composed, above: str = "") -> str:
    """Where the permissions stand that a directive has: in its own file, or in an ancestor's.

    `above` is where those of the thread stand that starts it: they bound its own, or are all that it has."""
    if above and not composed.capabilities and not composed.grants_nothing:
        return above
    origin = composed.capabilities[0].origin_id if composed.capabilities else composed.item_id
    place = bundle.places.get(origin, origin)
    return f"{place}, within those at {above}," if above else place


@dataclass(frozen=True, slots=True)
class Ending:
    """How a thread ended. `kind` is a stable word for why it failed, `limit` the code of the limit that it reached.

    `blame` are the effects that a resume performs again where this ended the run. `outside` is true where the thread
    has read content that nobody here has written.
    """

    success: bool
    result: str = ""
    outputs: Mapping[str, Value] = field(default_factory=dict)
    error: str = ""
    kind: str = ""
    limit: str = ""
    closing: str | None = None
    cost: Cost = NOTHING
    blame: tuple[str, ...] = ()
    outside: bool = False

    def failure(self, path: str) -> StepFailed:
        """As it ends a run, or a step that called the thread."""
        blame = self.blame or (path,)
        failed = StepFailed(self.error, kind=self.limit or self.kind, path=blame[0])
        failed.also = blame[1:]
        return failed

    def as_value(self) -> dict[str, Value]:
        """As a parent thread, a display and the transcript get it."""
        value: dict[str, Value] = {
            "success": self.success,
            "status": "completed" if self.success else "error",
            "outputs": dict(self.outputs),
            "result": self.result,
            "cost": self.cost.as_value(),
        }
        if self.closing is not None:
            value["closing_message"] = self.closing
        if not self.success:
            value["error"] = self.error
        if self.limit:
            value["limit_type"] = self.limit
        return value
