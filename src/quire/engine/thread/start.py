"""A thread before its first turn: composed, held to what it may do, its limits and its money set."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from quire.engine.thread.bundle import Bundle, BundleResolver
from quire.engine.thread.compose import Composed, compose
from quire.engine.thread.limits import resolve_limits
from quire.engine.thread.purse import Purse
from quire.engine.thread.setup import Setup, place_of
from quire.errors import Denied, Refused
from quire.plan.nodes import Acknowledgement
from quire.trust.capabilities import Grants
from quire.trust.risk import NOTHING, ProjectRisk, assess
from quire.values import Value

if TYPE_CHECKING:
    from quire.engine.call_document import Opened
    from quire.engine.pipeline.setting import Setting


def set_up(
    bundle: Bundle,
    given: Mapping[str, Value],
    path: str,
    *,
    overrides: Mapping[str, Value] | None = None,
    caller: Setting | None = None,
    granted: Grants | None = None,
    open_document: Callable[[str], Opened] | None = None,
) -> Setup:
    """Raises `CannotStart` for wrong inputs and broken chains, `Refused` where it may not run.

    `caller` is who calls it from within a run; `granted` bounds what the outermost thread of a run may do.
    """
    composed = compose(bundle.item_id, BundleResolver(bundle), given, bundle.project_hooks())
    bounding = granted
    if caller is not None and caller.grants is not None:
        bounding = Grants.of(caller.grants)
    grants = narrowed(composed, bounding)
    limits = resolve_limits(composed.limits_declared, overrides or {}, caller.limits if caller else None)
    purse = Purse(math.inf if limits.spend is None else limits.spend, caller.purse if caller else None)
    return Setup(
        id=bundle.item_id,
        path=path,
        composed=replace(composed, warnings=(*bundle.warnings, *composed.warnings)),
        grants=tuple(sorted(grants.patterns)),
        limits=limits,
        purse=purse,
        model=bundle.model,
        declared=place_of(bundle, composed),
        open_document=open_document,
    )


def narrowed(composed: Composed, bounding: Grants | None) -> Grants:
    """What a directive asks for, under what bounds it. Raises `Denied` where nothing is left."""
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
