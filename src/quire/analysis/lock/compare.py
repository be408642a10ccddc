"""Compare two locks, fact by fact: which documents may do more, cost more, or ask less than before.

Capabilities are compared as patterns with their details, bounds by the coefficients of their formulas. A comparison
that cannot be decided counts as wider.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal, InvalidOperation
from itertools import product
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from quire.analysis.amounts import ENDLESS, Amount, compared, parsed
from quire.analysis.lock import read
from quire.analysis.lock.approvals import NONE, Direction, gate_changes
from quire.analysis.lock.file import COUNTS, NOT_ASKED, Lock, LockedCapability, LockedDocument, pinned_capability
from quire.models.choose import PICODOLLARS
from quire.patterns import late_pattern
from quire.plan.built_in_tools import SEND, SHELL, canonical_grant
from quire.plan.tool_details import ALL_VARIABLES, ANY_METHOD, NO_VARIABLE, PLAIN_HTTP, TERMS

if TYPE_CHECKING:
    from quire.analysis.pattern_inclusion import PatternSet
    from quire.diagnostics import Code

Kind = Literal["document", "plan", "may", "unknown", "asks", "most", "gate", "flow", "allow", "tool", "price"]

_SEND, _SHELL = (f"rye.execute.tool.{identity.replace('/', '.')}" for identity in (SEND, SHELL))
_MARK = "\x1f"
"""Between a capability and a detail, where both are one text."""
_LABEL = late_pattern(r"^(private: )?(?:[0-9][^ ]*|thread)(?: › [^ ]+)* ")
_DOLLARS = late_pattern(r"[0-9][0-9,]{0,60}(?:\.[0-9]{1,12})?")
_CLASSES = {"read": 0, "idempotent": 1, "write": 2, "unknown": 2}


class Change(Struct, frozen=True):
    """One fact that differs."""

    document: str
    """The key of the document; empty for tools and prices."""
    kind: Kind
    direction: Direction
    name: str
    """The subject of the fact: a capability, the name of a bound, an effect, a tool."""
    old: str = ""
    """Empty if it is new."""
    new: str = ""
    """Empty if it is gone."""
    example: str = ""
    """A text of something that is new; empty if the name says it."""
    decided: bool = True
    """False if a comparison was given up and counts as wider."""
    steps: tuple[str, ...] = ()
    """The steps that need it."""

    @property
    def code(self) -> Code:
        """The code of the finding that it is."""
        if self.kind == "document":
            return read.NO_LOCK if self.direction == "wider" else read.STALE
        return _CODES.get(self.kind, read.STALE) if self.direction == "wider" else read.STALE


_CODES = {
    "may": read.WIDER,
    "unknown": read.WIDER,
    "asks": read.WIDER,
    "most": read.HIGHER,
    "gate": read.GATE_GONE,
    "flow": read.NEW_FLOW,
    "tool": read.TOOL_CHANGED,
    "price": read.DEARER,
}


def compare(old: Lock, new: Lock) -> tuple[Change, ...]:
    """Return all differences: of documents in the order of their keys, then of tools and prices."""
    changes: list[Change] = []
    tools = (*old.tools, *new.tools)
    for key in sorted({*old.documents, *new.documents}):
        changes += compare_document(key, old.documents.get(key), new.documents.get(key), tools)
    return (*changes, *compare_tools(old, new), *compare_prices(old, new))


def compare_document(
    key: str, old: LockedDocument | None, new: LockedDocument | None, tools: Iterable[str] = ()
) -> list[Change]:
    """Return the differences of one document. `tools` are the keys of pinned tools, for examples of what is new."""
    known = [name for tool in tools if (name := pinned_capability(tool))]
    if old is None or new is None:
        if new is None:
            return [Change(key, "document", "narrower", key, old="locked")]
        return [Change(key, "document", "wider", key, new="new"), *_facts(key, LockedDocument(""), new, known)]
    return list(_facts(key, old, new, known))


def _facts(key: str, old: LockedDocument, new: LockedDocument, known: Iterable[str]) -> Iterator[Change]:
    if old.plan and old.plan != new.plan:
        yield Change(key, "plan", "other", "plan", old.plan, new.plan)
    yield from _may(key, old, new, known)
    yield from _listed(key, "unknown", "called document", old.unknown, new.unknown)
    yield from _listed(key, "asks", "model", old.models, new.models)
    yield from _listed(key, "asks", "server", old.servers, new.servers)
    yield from _listed(key, "asks", "variable", old.variables, new.variables)
    yield from _bounds(key, old, new)
    for change in gate_changes(old, new):
        yield Change(key, "gate", change.direction, change.effect, change.old, change.new, steps=change.steps)
    yield from _flows(key, old.flows, new.flows)
    yield from _listed(key, "allow", "allow", old.allows, new.allows)


def _may(key: str, old: LockedDocument, new: LockedDocument, known: Iterable[str]) -> Iterator[Change]:
    names = [f"{name}{_MARK}" for name in known]
    # A lock of an older version may have another name of a built-in tool.
    locked = tuple(replace(entry, capability=canonical_grant(entry.capability)) for entry in old.may)
    covering = locked
    if old.plan == new.plan and not any(detail.startswith("words=") for entry in locked for detail in entry.details):
        # A lock that was written before locks had the words of commands: in the same document these are the same.
        commands = (entry for entry in locked if entry.capability == _SHELL and entry.details)
        covering = (*locked, *(replace(entry, details=(*entry.details, "words=*")) for entry in commands))
    yield from _beyond(key, "wider", covering, new.may, names)
    yield from _beyond(key, "narrower", new.may, locked, names)
    before = {entry.capability: entry for entry in locked}
    for capability in new.may:
        earlier = before.get(capability.capability)
        if earlier is not None and (earlier.effect, earlier.tier) != (capability.effect, capability.tier):
            more = _CLASSES.get(capability.effect, 2) > _CLASSES.get(earlier.effect, 2)
            yield Change(
                key,
                "may",
                "wider" if more else "other",
                capability.capability,
                f"{earlier.tier or NONE}, {earlier.effect}",
                f"{capability.tier or NONE}, {capability.effect}",
                steps=capability.steps,
            )


def _beyond(
    key: str,
    direction: Direction,
    covering: tuple[LockedCapability, ...],
    needs: tuple[LockedCapability, ...],
    names: Iterable[str],
) -> Iterator[Change]:
    """Yield the needs that go beyond the covering ones. `names` are texts that are tried as examples."""
    limited, limited_needs = _limited(covering), _limited(needs)
    written = {(capability.capability, capability.details, capability.capability in limited) for capability in covering}
    held = {capability.capability for capability in covering}
    patterns: PatternSet | None = None
    for need in needs:
        if (need.capability, need.details, need.capability in limited_needs) in written:
            continue
        if patterns is None:
            from quire.analysis.pattern_inclusion import PatternSet

            patterns = PatternSet((pattern for cover in covering for pattern in _covered_by(cover, limited)), names)
        beyond = [(detail, patterns.inclusion(pattern)) for pattern, detail in _patterns(need, limited_needs).items()]
        fresh = [(detail, inclusion) for detail, inclusion in beyond if inclusion.answer != "covered"]
        if not fresh and direction == "wider":
            yield from _other_terms(key, need, covering, limited, limited_needs)
        if not fresh:
            continue
        hidden = ("",) if need.capability in held else ("", ALL_VARIABLES)  # a new command says enough
        shown = " ".join(dict.fromkeys(detail for detail, _ in fresh if detail not in hidden))
        decided = any(inclusion.answer == "new" for _, inclusion in fresh)
        example = next((inclusion.example for _, inclusion in fresh if inclusion.example), "")
        text = f"{need.tier or NONE}, {need.effect}" + (f", {shown}" if shown else "")
        yield Change(
            key,
            "may",
            direction,
            need.capability,
            text if direction == "narrower" else "",
            text if direction == "wider" else "",
            _example(example, need.capability) if direction == "wider" else "",
            decided,
            need.steps,
        )


def _other_terms(
    key: str,
    need: LockedCapability,
    covering: tuple[LockedCapability, ...],
    limited: frozenset[str],
    limited_needs: frozenset[str],
) -> Iterator[Change]:
    """Yield a command with a variable, or a host with a method, of which the covering ones have each, and not both
    together. Lines of the same steps are parts of one fact."""
    parts: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for capability in covering:
        parts.setdefault((capability.capability, capability.steps), []).extend(_covered_by(capability, limited))
    patterns = {detail: pattern for pattern, detail in _patterns(need, limited_needs).items()}
    terms = [detail for detail in patterns if detail.startswith(TERMS)]
    if len(parts) < 2 or not terms:
        return
    from quire.analysis.pattern_inclusion import PatternSet

    sets = [PatternSet(several) for several in parts.values()]
    for what, term in product([detail for detail in patterns if detail not in terms], terms):
        pair = patterns[what], patterns[term]
        if not any(all(each.inclusion(pattern).answer == "covered" for pattern in pair) for each in sets):
            together = f"{what} {term}"
            text = f"{need.tier or NONE}, {need.effect}, {together}"
            yield Change(key, "may", "wider", need.capability, "", text, together, True, need.steps)
            return


def _limited(several: Iterable[LockedCapability]) -> frozenset[str]:
    """Return the capabilities of commands and requests that name the variables or the methods that they use."""
    return frozenset(
        capability.capability
        for capability in several
        for detail in capability.details
        if detail.startswith(("env=", "method="))
    )


def _patterns(capability: LockedCapability, limited: frozenset[str]) -> dict[str, str]:
    """Return the patterns of a capability with each of its details, each with the detail. A command that names no
    variables gets all of them; one that gets none needs nothing of that kind."""
    names = [capability.capability, *([capability.capability[:-2]] if capability.capability.endswith(".*") else [])]
    details = [detail for detail in capability.details if detail != NO_VARIABLE]
    if capability.capability == _SHELL and capability.capability not in limited:
        details.append(ALL_VARIABLES)
    return {f"{name}{_MARK}{detail or '*'}": detail for name in names for detail in details or ("",)}


def _covered_by(capability: LockedCapability, limited: frozenset[str]) -> Iterator[str]:
    """Yield the patterns that a capability covers. A lock without methods was written before locks had any, and covers
    all of them; a host that is asked without TLS may be asked with it."""
    yield from _patterns(capability, limited)
    if capability.capability == _SEND and capability.capability not in limited:
        yield f"{_SEND}{_MARK}{ANY_METHOD}"
    for detail in capability.details:
        if detail.startswith(PLAIN_HTTP):
            yield f"{capability.capability}{_MARK}host={detail.removeprefix(PLAIN_HTTP)}"
        if detail == "command=*":
            yield from (f"{capability.capability}{_MARK}{kind}=*" for kind in ("words", "script"))


def _example(text: str, capability: str) -> str:
    """Return an example, unless it says no more than the capability itself."""
    name, _, detail = text.partition(_MARK)
    if name != capability:
        return name
    return detail if "=" in detail else ""


def _listed(key: str, kind: Kind, name: str, old: Iterable[str], new: Iterable[str]) -> Iterator[Change]:
    before, now = dict.fromkeys(old), dict.fromkeys(new)
    wider: Direction = "other" if kind == "allow" else "wider"
    yield from (Change(key, kind, wider, name, new=text) for text in now if text not in before)
    yield from (Change(key, kind, "narrower", name, old=text) for text in before if text not in now)


def _bounds(key: str, old: LockedDocument, new: LockedDocument) -> Iterator[Change]:
    is_new = not old.plan
    for name in COUNTS:
        before, now = old.most.get(name, ""), new.most.get(name, "")
        if before == now or (is_new and now == "0"):
            continue
        higher = is_new or is_higher(name, before, now)
        yield Change(key, "most", "narrower" if higher is False else "wider", name, before, now, decided=higher is True)


def is_higher(name: str, old: str, new: str) -> bool | None:
    """Tell whether a bound is higher for any sizes; None if that cannot be told. A bound that was not locked counts as
    0."""
    before, now = amount_of(name, old or "0"), amount_of(name, new or "0")
    if now is not None and now.is_nothing:
        return False
    if before is None or now is None:
        return None
    order = compared(now, before)
    return None if order == "unclear" else order == "higher"


def amount_of(name: str, text: str) -> Amount | None:
    """Return the formula of a bound, or None if it is not one; money in picodollars."""
    return parsed(_in_picodollars(text)) if name == "money" else parsed(text)


def _in_picodollars(text: str) -> str:
    if text == ENDLESS:
        return text
    terms = []
    for term in text.split(" + "):
        first, dot, rest = term.partition("·")
        if first[:1] in ("|", "‖"):
            terms.append(f"{PICODOLLARS}·{term}")
            continue
        if not _DOLLARS.fullmatch(first):
            return ""
        count = Decimal(first.replace(",", "")) * PICODOLLARS
        if count != int(count):
            return ""
        terms.append(f"{int(count)}{dot}{rest}")
    return " + ".join(terms)


def _flows(key: str, old: Sequence[str], new: Sequence[str]) -> Iterator[Change]:
    """Yield the flows that are new or gone, ignoring the labels of their steps. One more of the same kind is
    new. A lock of an older version may have a loop as the source of a text from anywhere: it covers all that ends where
    it ends."""
    ways = [_unnumbered_flow(flow).split(" → ") for flow in old]
    covered = {way[-1] for way in ways if way[0] == "loop"}
    yield from (
        Change(key, "flow", "wider", "flow", new=flow)
        for flow in _more_flows(new, old)
        if _unnumbered_flow(flow).split(" → ")[-1] not in covered
    )
    yield from (Change(key, "flow", "narrower", "flow", old=flow) for flow in _more_flows(old, new))


def _more_flows(several: Sequence[str], others: Sequence[str]) -> Iterator[str]:
    """Yield the flows that are not among the others, or occur more often."""
    left, same = Counter(map(_unnumbered_flow, others)), set(several).intersection(others)
    left.subtract(_unnumbered_flow(flow) for flow in several if flow in same)
    for flow in several:
        text = _unnumbered_flow(flow)
        if flow in same:
            continue
        if left[text] > 0:
            left[text] -= 1
        else:
            yield flow


def _unnumbered_flow(text: str) -> str:
    """Return a flow without the labels of its steps: `1 http__get → 3 model` as `http__get → model`."""
    return " → ".join(_LABEL.sub("", part) for part in text.split(" → "))


def compare_tools(old: Lock, new: Lock) -> Iterator[Change]:
    """Yield the tools that are not as they were locked."""
    for name in sorted({*old.tools, *new.tools}):
        before, now = old.tools.get(name), new.tools.get(name)
        if before == now or now is None:
            continue
        # The digest covers the class too, so another class under the same digest was written by hand.
        changed = before is not None and NOT_ASKED not in (before.digest, now.digest)
        digest = before.digest if before is not None else ""
        yield Change("", "tool", "wider" if changed else "other", name, digest, now.digest)


def compare_prices(old: Lock, new: Lock) -> Iterator[Change]:
    """Yield the models whose prices are not as they were locked."""
    for model in sorted({*old.prices, *new.prices}):
        before, now = old.prices.get(model, ""), new.prices.get(model, "")
        if before != now and now:
            dearer = bool(before) and any(
                rate > other for rate, other in zip(_rates(now), _rates(before), strict=False)
            )
            yield Change("", "price", "wider" if dearer else "other", model, before, now)


def _rates(text: str) -> list[Decimal]:
    """Return the dollars per million tokens, read and written."""
    try:
        return [Decimal(word) for word in text.split()[:2]]
    except InvalidOperation:
        return []
