"""A thread before its first turn: composed, held to what it may do, its limits and its money set."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from quire.engine.thread.bundle import Bundle, BundleResolver
from quire.engine.thread.compose import Composed, compose
from quire.engine.thread.limits import Limits, resolve_limits
from quire.engine.thread.purse import Purse
from quire.engine.thread.setup import Setup, place_of
from quire.errors import Denied, Refused
from quire.plan.thread import Acknowledgement
from quire.trust.capabilities import Grants
from quire.trust.risk import NOTHING, ProjectRisk, assess
from quire.values import Value

if TYPE_CHECKING:
    from quire.engine.call_document import Opened


@dataclass(frozen=True, slots=True)
class Above:
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
