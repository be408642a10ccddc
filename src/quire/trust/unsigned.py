"""Directives that nobody vouches for, in warn mode: what is dangerous in them, the user has to allow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from quire.errors import Refused
from quire.trust.capabilities import Grants
from quire.trust.risk import ProjectRisk, Tier, tier_of


class Ungranted(Refused):
    """What an unsigned directive asks for and the user has not allowed: capabilities with their tiers.

    `reasons` are the words of its author, by tier."""

    def __init__(self, item_id: str, missing: Mapping[str, Tier], reasons: Mapping[str, str]) -> None:
        listed = ", ".join(f"{capability} is {tier.value}" for capability, tier in missing.items())
        allow = " ".join(f"--allow {capability}" for capability in missing)
        super().__init__(
            f"{item_id} is not signed by anybody you trust, and {listed}: "
            f"sign it with quire sign, or allow it with {allow}"
        )
        self.item_id = item_id
        self.missing = missing
        self.reasons = reasons


def require_granted(
    item_id: str, capabilities: Iterable[str], granted: Grants, project: ProjectRisk, reasons: Mapping[str, str]
) -> None:
    """Raises `Ungranted` with all that is elevated, or more, and not among what the user has granted."""
    missing: dict[str, Tier] = {}
    for capability in capabilities:
        tier = tier_of(capability, project)
        allowed = all(granted.includes(pattern) for pattern in Grants.of([capability]).patterns)
        if tier in (Tier.ELEVATED, Tier.UNRESTRICTED) and not allowed:
            missing[capability] = tier
    if missing:
        raise Ungranted(item_id, missing, reasons)
