"""One line before a run: `at most 14 model calls, ≤ $0.09, 1 question; writes: reports/*`, and the one that `quire
show` begins with: `1–3 calls · ≤ $0.04 · writes reports/*.md · asks 1 question`.

The sizes of the inputs are known then, so formulas become numbers. A number that is not proven is never shown as one: a
formula with a size that is not known stays a formula, and infinity stays infinity.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from quire.analysis.amounts import written
from quire.display.text import one_line
from quire.wording import pluralize

if TYPE_CHECKING:
    from quire.analysis.quantities import Quantity
    from quire.plan.envelope import CapabilityEnvelope, Need

MOST_PLACES = 4
_NAMES = {"model_calls": "model call", "questions": "question"}
_LONG = 3_600_000
"""Milliseconds. A longer time is made of default time-outs."""


def preflight_line(
    quantities: Sequence[Quantity], sizes: Mapping[str, int], envelope: CapabilityEnvelope | None = None
) -> str:
    """Return the line, without a capital letter and a full stop."""
    by_name = {quantity.name: quantity for quantity in quantities}
    parts = [_counted(by_name["model_calls"], sizes)]
    if money := money_text(by_name.get("money"), sizes):
        parts.append(money)
    if not by_name["questions"].most.is_nothing:
        parts.append(_counted(by_name["questions"], sizes))
    if places := _named_places(envelope):
        parts[-1] += f"; writes: {places}"
    if envelope is not None and envelope.unknown:
        parts[-1] += f"; {_unknown(envelope)}"
    return one_line(", ".join(parts))


def summary_line(quantities: Sequence[Quantity], envelope: CapabilityEnvelope) -> str:
    """Return the line that `quire show` begins with. Bounds that say nothing are not in it."""
    by_name = {quantity.name: quantity for quantity in quantities}
    money = by_name.get("money")
    price = "unpriced" if money is not None and money.unpriced else money_text(money, {})
    parts = [_between(by_name["model_calls"], "call"), price]
    time = by_name["time"].most.as_number
    if time and time <= _LONG:
        parts.append(f"≤ {written(time, 'milliseconds')}")
    if places := _named_places(envelope):
        parts.append(f"writes {places}")
    if not by_name["questions"].most.is_nothing:
        parts.append(f"asks {_between(by_name['questions'], 'question')}")
    if envelope.unknown:
        parts.append(_unknown(envelope))
    return one_line(" · ".join(part for part in parts if part))


def _between(quantity: Quantity, word: str) -> str:
    """Return a count with its least: `1–3 calls`, `≤ 6·|readers| + 30 calls, stopped at 100`."""
    count = quantity.most.as_number
    if count is not None and quantity.ceiling is None:
        least = f"{quantity.least:,}–" if 0 < quantity.least < count else "" if quantity.least == count else "≤ "
        return f"{least}{count:,} {pluralize(word, count)}" if count else f"no {word}s"
    stop = f", stopped at {quantity.ceiling.most:,}" if quantity.ceiling is not None else ""
    return f"any number of {word}s{stop}" if quantity.most.is_endless else f"≤ {quantity.most} {word}s{stop}"


def _named_places(envelope: CapabilityEnvelope | None) -> str:
    places = list(written_places(envelope)) if envelope is not None else []
    more = f" and {len(places) - MOST_PLACES:,} more" if len(places) > MOST_PLACES else ""
    return ", ".join(places[:MOST_PLACES]) + more


def _unknown(envelope: CapabilityEnvelope) -> str:
    return f"and what {', '.join(envelope.unknown[:MOST_PLACES])} does, which is not known here"


def _counted(quantity: Quantity, sizes: Mapping[str, int]) -> str:
    name, most = _NAMES[quantity.name], quantity.most.with_sizes(sizes)
    limit = f", stopped at {quantity.ceiling.most:,}" if quantity.ceiling is not None else ""
    if most.is_endless:
        # A run that is stopped has failed, so a cap alone is not shown as a bound.
        return f"any number of {name}s{limit}"
    count = most.as_number
    if count is None:
        return f"at most {most} {name}s{limit}"
    if not count:
        return f"no {name}s"
    words = f"{count:,} {pluralize(name, count)}"
    if quantity.ceiling is not None and count > quantity.ceiling.most:
        words += limit
    return words if quantity.least == count else f"at most {words}"


def money_text(quantity: Quantity | None, sizes: Mapping[str, int]) -> str:
    """Return the most that a run costs: `≤ $0.09`; empty if no model is asked."""
    if quantity is None:
        return ""
    if quantity.unpriced:
        return "at a price that is not known"
    most, sign = quantity.with_sizes(sizes).number, "≤" if quantity.sure else "~"
    if most is not None:
        return f"{sign} {written(most, quantity.unit)}{_estimate(quantity, sizes, most)}" if most else "free"
    amount = quantity.most.with_sizes(sizes)
    if amount.is_endless:
        about = quantity.about.with_sizes(sizes).as_number if quantity.about is not None else None
        return f"~ {written(about, quantity.unit)}" if about else "at a price without a bound"
    return f"{sign} {amount.text(lambda count: written(count, quantity.unit))}"


def _estimate(quantity: Quantity, sizes: Mapping[str, int], most: int) -> str:
    """Return the estimate beside a bound that is far from it: no proof knows how long a reply is for its reader."""
    about = quantity.about.with_sizes(sizes).as_number if quantity.about is not None else None
    return f" (~ {written(about, quantity.unit)})" if about is not None and 2 * about < most else ""


def written_places(envelope: CapabilityEnvelope) -> Iterable[str]:
    """Return the places that a document may change, each once: paths, hosts and commands where they are known, else the
    names of tools."""
    places: dict[str, None] = {}
    for need in envelope.needs:
        if need.effect != "read":
            places.update(dict.fromkeys(_places(need)))
    return places


def _places(need: Need) -> Iterable[str]:
    from quire.display.lock_diff import capability_name  # many documents change nothing

    name = capability_name(need.capability)
    for detail in need.details or ("",):
        kind, _, value = detail.partition("=")
        if kind in ("env", "method", "words"):
            continue  # not a place
        if kind == "path" and value != "*":
            yield value
        elif kind == "script" and value != "*":
            yield f"{name} script"  # a digest says nothing to a person
        elif value and value != "*":
            yield f"{name} {value}"
        else:
            yield f"{name} (any {kind})" if kind else name
