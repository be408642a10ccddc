"""What a thread runs with, put together before its first turn.

The tools of threads that the engine itself answers for, as a model is told of them.

A thread before its first turn: composed, held to what it may do, its limits and its money set.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from quire.engine.interpreter.thread.budget import Purse
from quire.engine.interpreter.thread.compose import Bundle, BundleResolver, Composed, compose
from quire.engine.interpreter.thread.limits import Cost, Limits, resolve_limits
from quire.engine.requests import Offered
from quire.errors import Denied, Refused, StepFailed
from quire.trust.capabilities import Grants, flat_name
from quire.trust.risk import NOTHING, ProjectRisk, assess

if TYPE_CHECKING:
    from quire.engine.interpreter.call_document import Opened
    from quire.plan.thread import Acknowledgement
    from quire.values import Value


FORK = "rye/agent/threads/thread_directive"
ORCHESTRATE = "rye/agent/threads/orchestrator"
NO_COST = Cost()


class Setup(Struct, frozen=True):
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


class Ending(Struct, frozen=True):
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
    cost: Cost = NO_COST
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


FORKING = Offered(
    flat_name(FORK),
    "Runs a directive as a thread of its own and gives its outputs; with async it goes on beside this one and is "
    "waited for with the orchestrator. It never may do more than this thread may.",
    {
        "type": "object",
        "properties": {
            "directive_id": {"type": "string", "description": "such as project/deploy/deploy_staging"},
            "inputs": {"type": "object", "description": "the inputs of the directive by name"},
            "async": {"type": "boolean"},
            "limit_overrides": {"type": "object", "description": 'such as {"turns": 10, "spend": 0.2}'},
        },
        "required": ["directive_id"],
    },
    FORK,
)

ORCHESTRATING = Offered(
    flat_name(ORCHESTRATE),
    "Looks after the threads that this one has started with async: waits for them, says how they are, stops them.",
    {
        "type": "object",
        "properties": {
            "operation": {
                "enum": ["wait_threads", "get_status", "list_active", "aggregate_results", "cancel_thread"],
            },
            "thread_ids": {"type": "array", "items": {"type": "string"}, "description": "all of them by default"},
            "thread_id": {"type": "string"},
            "timeout": {"type": "number", "description": "seconds to wait at most; 600 by default"},
        },
        "required": ["operation"],
    },
    ORCHESTRATE,
)


class Above(Struct, frozen=True):
    """What a thread stands under: the thread that starts it, the document that calls it, or the run alone.

    Of `grants`, `limits` and `purse` it never has more. `share` is the part of the purse that it may take at most,
    `depth` the number of its parents, `declared` where the grants are written down.
    """

    grants: Grants | None = None
    limits: Limits | None = None
    purse: Purse | None = None
    share: float = 1.0
    depth: int = 0
    declared: str = ""
    untrusted: bool = False
    open_document: Callable[[str], Opened] | None = None


NOBODY = Above()


def set_up(
    bundle: Bundle,
    given: Mapping[str, Value],
    path: str,
    *,
    overrides: Mapping[str, Value] | None = None,
    above: Above = NOBODY,
) -> Setup:
    """Raises `CannotStart` for wrong inputs and broken chains, `Refused` where it may not run."""
    composed = compose(bundle.item_id, BundleResolver(bundle), given, bundle.project_hooks(), bundle.rules)
    grants = narrowed(composed, above.grants)
    bounds = above.limits.with_room() if above.limits else None
    limits = resolve_limits(composed.limits_declared, overrides or {}, bounds, bundle.rules)
    purse = Purse(math.inf if limits.spend is None else limits.spend, above.purse, above.share)
    return Setup(
        id=bundle.item_id,
        path=path,
        composed=replace(composed, warnings=(*bundle.warnings, *composed.warnings)),
        grants=tuple(sorted(grants.patterns)),
        limits=limits,
        purse=purse,
        model=bundle.model,
        depth=above.depth,
        declared=place_of(bundle, composed, above.declared),
        untrusted=above.untrusted,
        open_document=above.open_document,
    )


def narrowed(composed: Composed, bounding: Grants | None) -> Grants:
    """What a directive asks for, under what bounds it. Raises `Denied` where nothing is left."""
    if composed.grants_nothing:
        return Grants()
    own = Grants.of(granted.capability for granted in composed.capabilities)
    grants = own if bounding is None else own.narrow(bounding) if own.patterns else bounding
    if not grants.patterns:
        raise Denied(
            f"{composed.item_id} has no capabilities: neither it nor a directive that it extends has <permissions>, "
            "or nothing of them is granted here"
        )
    return grants


def check_risk(
    capabilities: Iterable[str],
    acknowledged: Iterable[Acknowledgement],
    project: ProjectRisk = NOTHING,
    place: str = "",
) -> Sequence[str]:
    """Warnings about capabilities that nobody acknowledged; raises `Refused` where one of them blocks.

    `place` is where the permissions stand."""
    risk = assess(capabilities, [one.risk for one in acknowledged], project)
    where = f" at {place}" if place and not project.problem else ""
    messages = [f"{message}{where}" for message in risk.messages]
    if risk.outcome == "block":
        raise Refused("\n".join(messages))
    return messages
