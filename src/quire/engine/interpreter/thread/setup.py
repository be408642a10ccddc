"""Set up a thread before its first turn: compose it, narrow its grants, set its limits and its budget.

The descriptions of the tools that the engine itself implements for threads are here too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from quire.engine.conversation import Offered
from quire.engine.interpreter.thread.budgets import Cost, Limits, Purse, resolve_limits
from quire.engine.interpreter.thread.compose import Bundle, BundleResolver, Composed, Resolver, compose
from quire.errors import Denied, Refused, StepFailed
from quire.plan.built_in_tools import FORK
from quire.trust.capabilities import Grants, flat_name
from quire.trust.risk import NO_RULES, ProjectRisk, assess

if TYPE_CHECKING:
    from quire.engine.interpreter.callees import Opened
    from quire.plan.thread import Acknowledgement, Hook
    from quire.values import Value


ORCHESTRATE = "rye/agent/threads/orchestrator"
NO_COST = Cost()


class Setup(Struct, frozen=True):
    """One thread, ready to run."""

    id: str
    """Its name for people and for its parent."""
    path: str
    """Where its effects stand in the journal."""
    composed: Composed
    grants: tuple[str, ...]
    """Everything that it may do."""
    startable: Grants
    """Covers the directives that it may start with the tool for that."""
    limits: Limits
    purse: Purse
    model: str = ""
    """The model that it asks; empty for the run's own."""
    settings: Mapping[str, Value] = field(default_factory=dict)
    """See `Bundle`."""
    depth: int = 0
    """Number of its parents."""
    declared: str = ""
    """Where its permissions are written."""
    untrusted: bool = False
    """True if its starter has read content from outside."""
    open_document: Callable[[str], Opened] | None = None
    """Reads a document that was loaded for it."""
    watch: Callable[[Hook, Mapping[str, Value]], None] | None = None
    """Told of every hook whose condition is about to be evaluated, and of what it can read. None in every run: tests
    measure with it which conditions were decided."""


def place_of(bundle: Bundle, composed: Composed, above: str = "") -> str:
    """Return where the permissions of a directive are written: in its own file, or in an ancestor's.

    `above` is where the permissions of the starting thread are written: they bound its own, or are all that it has.
    """
    if above and not composed.capabilities and not composed.grants_nothing:
        return above
    origin = composed.capabilities[0].origin_id if composed.capabilities else composed.item_id
    place = bundle.places.get(origin, origin)
    return f"{place}, within those at {above}," if above else place


class ThreadResult(Struct, frozen=True):
    """The end of a thread."""

    success: bool
    result: str = ""
    outputs: Mapping[str, Value] = field(default_factory=dict)
    error: str = ""
    kind: str = ""
    """A stable word for the reason of a failure."""
    limit: str = ""
    """Code of the limit that was reached."""
    closing: str | None = None
    cost: Cost = NO_COST
    blame: tuple[str, ...] = ()
    """Effects that a resume performs again if this ended the run."""
    outside: bool = False
    """True if the thread has read content from outside."""

    def failure(self, path: str) -> StepFailed:
        """Return the failure that ends a run, or a step that called the thread."""
        blame = self.blame or (path,)
        failed = StepFailed(self.error, kind=self.limit or self.kind, path=blame[0])
        failed.also = blame[1:]
        return failed

    def as_value(self) -> dict[str, Value]:
        """Return the ending as a parent thread, a display and the transcript see it."""
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
            "operation": {"enum": ["wait_threads", "get_status", "list_active", "aggregate_results", "cancel_thread"]},
            "thread_ids": {"type": "array", "items": {"type": "string"}, "description": "all of them by default"},
            "thread_id": {"type": "string"},
            "timeout": {"type": "number", "description": "seconds to wait at most; 600 by default"},
        },
        "required": ["operation"],
    },
    ORCHESTRATE,
)


class ParentContext(Struct, frozen=True):
    """The context that a new thread inherits from the thread, document or run that starts it.

    Its own grants, limits and budget are always bounded by these.
    """

    grants: Grants | None = None
    limits: Limits | None = None
    purse: Purse | None = None
    share: float = 1.0
    """The largest part of the purse that it may take."""
    depth: int = 0
    """Number of its parents."""
    declared: str = ""
    """Where the grants are written."""
    untrusted: bool = False
    open_document: Callable[[str], Opened] | None = None
    startable: Grants | None = None
    """As in `Setup`; None if no thread is above."""


NO_PARENT = ParentContext()


def set_up(
    bundle: Bundle,
    given: Mapping[str, Value],
    path: str,
    *,
    overrides: Mapping[str, Value] | None = None,
    above: ParentContext = NO_PARENT,
    resolver: Resolver | None = None,
) -> Setup:
    """Set up a thread. Raises `CannotStart` for wrong inputs and broken chains, `Refused` if it must not run.

    `resolver` is used in place of the texts of the bundle if given.
    """
    resolver = BundleResolver(bundle) if resolver is None else resolver
    composed = compose(bundle.item_id, resolver, given, bundle.project_hooks(), bundle.rules)
    grants = narrowed_grants(composed, above.grants)
    startable = Grants.of(permission.capability for permission in composed.capabilities).with_directives()
    if above.grants is not None:
        most = above.startable or above.grants.with_directives()
        startable = startable.narrow(most) if startable.patterns else most
    bounds = above.limits.with_room() if above.limits else None
    limits = resolve_limits(composed.limits_declared, overrides or {}, bounds, bundle.rules)
    purse = Purse(math.inf if limits.spend is None else limits.spend, above.purse, above.share)
    return Setup(
        id=bundle.item_id,
        path=path,
        composed=replace(composed, warnings=(*bundle.warnings, *composed.warnings)),
        grants=tuple(sorted(grants.patterns)),
        startable=startable,
        limits=limits,
        purse=purse,
        model=bundle.model,
        settings=bundle.settings,
        depth=above.depth,
        declared=place_of(bundle, composed, above.declared),
        untrusted=above.untrusted,
        open_document=above.open_document,
    )


def narrowed_grants(composed: Composed, bounding: Grants | None) -> Grants:
    """Return the capabilities that a directive asks for, narrowed_grants by those that bound it.

    Raises `Denied` if none are left.
    """
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
    project: ProjectRisk = NO_RULES,
    place: str = "",
) -> Sequence[str]:
    """Return warnings about capabilities that are not acknowledged. Raises `Refused` if one of them blocks.

    `place` is where the permissions are written.
    """
    risk = assess(capabilities, [acknowledgement.risk for acknowledgement in acknowledged], project)
    where = f" at {place}" if place and not project.problem else ""
    messages = [f"{message}{where}" for message in risk.messages]
    if risk.outcome == "block":
        raise Refused("\n".join(messages))
    return messages
