"""Classify how dangerous a capability is, and decide whether a thread with it may start.

There are four tiers. `safe` and `write` are allowed; `elevated` warns unless the author has acknowledged it;
`unrestricted` keeps the thread from starting unless the author has acknowledged it. A grant is classified by the
matching pattern with the most dots, as it is written. A project may declare in `.ai/config/capability_risk.yaml` that a
capability is more dangerous than its built-in tier, never that it is less:

    patterns:
      - pattern: rye.fetch.knowledge.secret.*
        tier: elevated

In warn mode, the user has to allow the dangerous capabilities of an unsigned directive (`require_granted`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from quire.errors import Refused, Unreadable
from quire.plan.built_in_tools import BUILT_IN_TOOLS, canonical_grant
from quire.plan.vocabulary import EVERYTHING
from quire.source import Source, read_source
from quire.trust.capabilities import Grants, fixed_head, glob, grant_for

if TYPE_CHECKING:
    from quire.diagnostics import Diagnostic
    from quire.formats.directive.syntax import Permissions

RISK_FILE = (".ai", "config", "capability_risk.yaml")
RiskDecision = Literal["allow", "warn", "block"]


class Tier(StrEnum):
    """Tiers of risk, from harmless to unrestricted."""

    SAFE = "safe"
    WRITE = "write"
    ELEVATED = "elevated"
    UNRESTRICTED = "unrestricted"

    @property
    def rank(self) -> int:
        return _RANKS[self]

    @property
    def meaning(self) -> str:
        """Describe a capability of this tier in a few words."""
        return _MEANING[self]


_RANKS = {tier: rank for rank, tier in enumerate(Tier)}
_MEANING = {
    Tier.SAFE: "only looks, asks you, or signs what was validated",
    Tier.WRITE: "changes files of the workspace",
    Tier.ELEVATED: "reaches out of the workspace, or starts programs",
    Tier.UNRESTRICTED: "everything",
}


class Rule(Struct, frozen=True):
    pattern: str
    tier: Tier


def _tool_rules() -> Iterator[Rule]:
    """Yield the rules of the built-in tools. Patterns for a folder of `rye/` share one rule: the most severe one.

    An elevated tool outside such a folder has none: `rye.execute.*` covers it, and so does a project's rule for that.
    """
    for tool in BUILT_IN_TOOLS:
        folder = tool.id.rpartition("/")[0]
        if "/" in folder:
            yield Rule(grant_for(f"{folder}/*"), Tier(tool.risk))
        elif tool.risk != "elevated":
            yield Rule(grant_for(tool.id), Tier(tool.risk))


@cache
def _built_in_rules() -> tuple[Rule, ...]:
    return (
        Rule("rye.*", Tier.UNRESTRICTED),
        Rule("rye.execute.*", Tier.ELEVATED),
        Rule("rye.execute.tool.rye.bash.*", Tier.ELEVATED),
        Rule("rye.execute.tool.rye.shell.*", Tier.ELEVATED),
        *dict.fromkeys(_tool_rules()),
        Rule("rye.fetch.*", Tier.SAFE),
        Rule("rye.sign.*", Tier.SAFE),
    )


class ProjectRisk(Struct, frozen=True):
    """The rules that a project adds."""

    rules: tuple[Rule, ...] = ()
    problem: str = ""
    """Says why the project's table cannot be read; then no thread starts."""


class Assessment(Struct, frozen=True):
    """The result of assessing capabilities."""

    outcome: RiskDecision
    tiers: dict[str, Tier | None]
    """Every assessed capability; None for one that is in no tier."""
    messages: tuple[str, ...] = ()


NO_RULES = ProjectRisk()


@cache
def _harmless() -> frozenset[str]:
    """Return the capabilities of the tools that are safe by themselves, also beside a tool that writes."""
    return frozenset(grant_for(tool.id) for tool in BUILT_IN_TOOLS if tool.risk == "safe")


@lru_cache(maxsize=1_024)
def tier_of(capability: str, project: ProjectRisk = NO_RULES) -> Tier | None:
    """Return the tier of a capability, by any name of its tool; None for one that no rule knows. Remembered, because an
    editor asks for the same few after each letter."""
    capability = canonical_grant(capability)
    own = Tier.SAFE if capability in _harmless() else _classed(capability, _built_in_rules())
    fixed = fixed_head(capability)
    if own is None and fixed != capability and "rye.".startswith(fixed):
        # `*` or `r*` matches no pattern of the table because it is wider than each of them.
        own = Tier.UNRESTRICTED
    if any(glob(rule.pattern, capability) for rule in project.rules):
        with_project = _classed(capability, (*_built_in_rules(), *project.rules))
        return max((tier for tier in (own, with_project) if tier), key=lambda tier: tier.rank, default=None)
    return own


def assess(capabilities: Iterable[str], acknowledged: Iterable[str], project: ProjectRisk = NO_RULES) -> Assessment:
    """Decide whether a thread with these capabilities may start. Acknowledging a tier counts for that tier alone."""
    accepted = set(acknowledged)
    tiers = {capability: tier_of(capability, project) for capability in capabilities}
    if project.problem:
        return Assessment(
            "block", tiers, (f"{project.problem}; nothing starts until it can be read: correct or remove it",)
        )
    open_questions = [(capability, tier) for capability, tier in tiers.items() if tier and tier.value not in accepted]
    blocked = [(capability, tier) for capability, tier in open_questions if tier is Tier.UNRESTRICTED]
    warned = [(capability, tier) for capability, tier in open_questions if tier is Tier.ELEVATED]
    outcome: RiskDecision = "block" if blocked else "warn" if warned else "allow"
    return Assessment(outcome, tiers, tuple(_message(capability, tier) for capability, tier in (*blocked, *warned)))


def unacknowledged(permissions: Permissions | None, project: ProjectRisk) -> Iterator[Diagnostic]:
    """Report the permissions of a directive that a run warns about or refuses, except those that cover everything: the
    format itself reports them."""
    from quire.diagnostics import Diagnostic
    from quire.formats.directive.codes import UNACKNOWLEDGED

    acknowledged = [acknowledgement.risk for acknowledgement in permissions.acknowledged] if permissions else []
    for grant in permissions.grants if permissions else ():
        if grant.capability != EVERYTHING:
            for sentence in assess([grant.capability], acknowledged, project).messages:
                message, _, help = sentence.partition("; ")
                yield Diagnostic(UNACKNOWLEDGED, message, grant.span, "", help)


def read_risk(text: str, where: str) -> ProjectRisk:
    """Read a project's table.

    Anything in it that is not understood is a problem, because it may have been important.
    """
    from quire.formats.yaml import read_yaml

    reading = read_yaml(Source.of(text, where))
    if reading.diagnostics:
        finding = reading.diagnostics[0]
        line = reading.source.position(finding.span.start).line
        return ProjectRisk(problem=f"{where}:{line}: the table of risks cannot be read: {finding.message}")
    if not reading.documents:
        return NO_RULES
    return _rules(reading.documents, where)


def project_risk(workspace: Path) -> ProjectRisk:
    """Return the table of the project in this folder; `NO_RULES` if it has none."""
    file = workspace.joinpath(*RISK_FILE)
    # A dangling link is not the same as a missing table.
    if not file.exists() and not file.is_symlink():
        return NO_RULES
    try:
        text = read_source(file).text
    except Unreadable as error:
        return ProjectRisk(problem=f"the table of risks {error}")
    return read_risk(text, "/".join(RISK_FILE))


def _rules(documents: Sequence[object], where: str) -> ProjectRisk:
    from quire.formats import yaml

    top = documents[0]
    listed = top.get("patterns") if isinstance(top, yaml.Mapping) else top
    if len(documents) > 1 or not isinstance(listed, yaml.Sequence):
        return ProjectRisk(problem=f'{where}: the table of risks has no list "patterns"')
    if isinstance(top, yaml.Mapping) and len(top.entries) > 1:
        return ProjectRisk(problem=f'{where}: the table of risks has more than the list "patterns"')
    rules = []
    for number, item in enumerate(listed.items, 1):
        pattern = yaml.text_of(item.get("pattern")) if isinstance(item, yaml.Mapping) else None
        tier = yaml.text_of(item.get("tier")) if isinstance(item, yaml.Mapping) else None
        if not pattern or tier not in _RANKS:
            tiers = ", ".join(Tier)
            return ProjectRisk(
                problem=f"{where}: entry {number} of the table of risks needs a pattern and a tier (one of {tiers})"
            )
        rules.append(Rule(canonical_grant(pattern), Tier(tier)))
    return ProjectRisk(tuple(rules))


def _classed(capability: str, rules: Iterable[Rule]) -> Tier | None:
    """Return the most severe tier among the matching rules with the most dots, or None."""
    fitting = [(rule.pattern.count("."), rule.tier.rank, rule.tier) for rule in rules if glob(rule.pattern, capability)]
    return max(fitting)[2] if fitting else None


def _message(capability: str, tier: Tier) -> str:
    effect = "that keeps the directive from starting" if tier is Tier.UNRESTRICTED else "it is not acknowledged"
    return (
        f"the capability {capability} is {tier.value} ({tier.meaning}), and {effect}; if it is meant, write "
        f'<acknowledge risk="{tier.value}">why</acknowledge> into its <permissions>'
    )


class Ungranted(Refused):
    """Dangerous capabilities, with their tiers, that an unsigned directive asks for and the user has not allowed.

    `reasons` are the author's explanations, by tier.
    """

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
    """Raise `Ungranted` with all capabilities that are elevated or unrestricted and that the user has not granted."""
    missing: dict[str, Tier] = {}
    for capability in capabilities:
        tier = tier_of(capability, project)
        allowed = all(granted.includes(pattern) for pattern in Grants.of([capability]).patterns)
        if tier in (Tier.ELEVATED, Tier.UNRESTRICTED) and not allowed:
            missing[capability] = tier
    if missing:
        raise Ungranted(item_id, missing, reasons)
