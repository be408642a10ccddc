"""Put the differences of two locks into words, for findings, refusals and displays alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from quire.analysis.assumptions import Assumptions
from quire.analysis.lock.compare import Change, amount_of
from quire.models.choose import PICODOLLARS

if TYPE_CHECKING:
    from quire.analysis.amounts import Amount

NOT_ASSUMED = Assumptions()

_NAMES = {
    "model_calls": "model calls",
    "tool_calls": "tool calls",
    "input_tokens": "input tokens",
    "output_tokens": "output tokens",
    "minutes": "minutes, not counting people",
}


def told(change: Change, sizes: Assumptions = NOT_ASSUMED, *, bars: bool = True) -> str:
    """Return one difference in words. Without `bars` sizes are written as `readers`, not as `|readers|`."""
    match change.kind:
        case "document":
            return "new document" if change.new else "removed"
        case "plan":
            return "its steps or prompts have changed"
        case "may":
            return f"may {_capability(change)}"
        case "unknown":
            return f"calls {change.new or change.old}, which is not here"
        case "asks":
            return f"{'uses' if change.new else 'does not use'} the {change.name} {change.new or change.old}"
        case "most":
            return _bound(change, sizes, bars)
        case "gate":
            return f"question before {change.name}: {change.old or 'not there'} → {change.new or 'not there'}"
        case "flow":
            return f"flow {change.new or change.old}"
        case "allow":
            return f"hides {change.new or change.old}"
        case "tool" if change.direction == "wider":
            return f"the tool {change.name} has other schemas or hints than it was locked with"
        case "tool":
            return f"the tool {change.name}: {change.old[:19] or 'not locked'} → {change.new[:19]}"
        case "price":
            return f"price of {change.name}: {change.old or 'not locked'} → {change.new or 'not there'}"


def _capability(change: Change) -> str:
    name = short_name(change.name)
    if change.old and change.new:
        return f"{name}: {change.old} → {change.new}"
    text = f"{name} ({change.new or change.old})"
    if change.direction == "wider" and not change.decided:
        return f"{text}, which could not be compared"
    return f"{text}, e.g. {short_name(change.example)}" if change.example else text


def short_name(capability: str) -> str:
    """Return a capability without the beginning that nearly all have."""
    return capability.removeprefix("rye.execute.tool.").removeprefix("rye.")


def _bound(change: Change, sizes: Assumptions, bars: bool) -> str:
    old, new = (_formula(change.name, text, bars) for text in (change.old, change.new))
    text = f"{_NAMES.get(change.name, change.name)} {old} → {new}"
    amounts = [amount_of(change.name, bound) for bound in (change.old, change.new)]
    symbols = [size for amount in amounts if amount is not None for size in amount.sizes]
    used = sizes.used(symbols)
    if not used.all:
        return text
    counts = sizes.sizes(symbols)
    before, now = (_at(change.name, amount, counts) for amount in amounts)
    if before == old and now == new:
        return text
    assumed = ", ".join(f"{assumption.name} = {assumption.size}" for assumption in used.all)
    return f"{text} ({before} → {now} at {assumed})"


def _formula(name: str, text: str, bars: bool) -> str:
    if not text:
        return "not locked"
    shown = text if bars else text.replace("|", "")
    return f"≤ ${shown}" if name == "money" and text[:1].isdigit() else shown


def _at(name: str, amount: Amount | None, counts: Mapping[str, int]) -> str:
    """Return a bound with the assumed sizes."""
    if amount is None:
        return "?"
    amount = amount.with_sizes(counts)
    number = amount.as_number
    if name != "money":
        return str(amount)
    if number is None:
        return f"≤ ${amount.text(lambda count: f'{count / PICODOLLARS:g}')}"
    return f"≤ ${-(-number * 100 // PICODOLLARS) / 100:,.2f}"
