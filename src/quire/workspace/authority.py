"""The authority of a directive: what it may do, how much it may use, and which risks it acknowledges.

A run signs only what has no more authority than itself, and no more than the item had when it was last signed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quire.engine.thread.compose import Resolver, read_chain
from quire.engine.thread.limits import Limits, resolve_limits
from quire.plan.thread import Thread
from quire.trust.capabilities import Grants
from quire.trust.risk import ProjectRisk, Tier, tier_of

NUMBERS = ("turns", "tokens", "spend", "spawns", "depth", "duration_seconds")
DEFAULT_LIMITS = resolve_limits({}, {}, None)
"""Those of a directive that declares none."""


@dataclass(frozen=True, slots=True)
class Authority:
    """`risk` is the highest tier among what is granted or acknowledged, None where nothing has a tier. `origin` is the
    ancestor that the capabilities come from, empty where they are the directive's own."""

    grants: Grants
    limits: Limits
    risk: Tier | None = None
    origin: str = ""

    def excess(self, held: Authority) -> list[str]:
        """All that goes beyond what is held, each in a few words."""
        more = sorted(self.grants.patterns - self.grants.narrow(held.grants).patterns)
        if more and self.origin:
            more[-1] += f" (from {self.origin}, which it extends)"
        for name in NUMBERS:
            mine, most = getattr(self.limits, name), getattr(held.limits, name)
            if most is not None and (mine is None or mine > most):
                more.append(f"{name} {'without a limit' if mine is None else f'{mine:g}'} (at most {most:g})")
        if self.risk is not None and (held.risk is None or self.risk.rank > held.risk.rank):
            more.append(f"the acknowledged risk {self.risk.value}")
        return more


def authority_of_run(grants: Grants, limits: Limits | None, project: ProjectRisk) -> Authority:
    """`limits` are those that its thread was started with; a run without a thread has the defaults."""
    tiers = [tier_of(pattern, project) for pattern in grants.patterns]
    return Authority(grants, limits or DEFAULT_LIMITS, _highest(tiers))


def authority_of(thread: Thread, ancestors: Resolver) -> Authority:
    """That of a directive, with the permissions that it inherits. Raises what `read_chain` and `resolve_limits` do."""
    granting, origin = thread, ""
    if not thread.grants_itself() and thread.extends.strip():
        for ancestor_id, ancestor in read_chain(thread.extends.strip(), ancestors):
            if ancestor.grants_itself():
                granting, origin = ancestor, ancestor_id
                break
    grants = Grants.of(one.capability for one in granting.permissions)
    acknowledged = [Tier(one.risk) for one in thread.acknowledged if one.risk in tuple(Tier)]
    return Authority(grants, resolve_limits(thread.limits, {}, None), _highest(acknowledged), origin)


def _highest(tiers: Sequence[Tier | None]) -> Tier | None:
    return max((tier for tier in tiers if tier), key=lambda tier: tier.rank, default=None)
