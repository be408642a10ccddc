"""Find amounts that nothing in the document bounds, and runs that a limit of the engine stops (BD101 to BD105)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import TYPE_CHECKING

from quire.analysis.costs import ASKED, MODEL_CALLS, OUTPUT_OF
from quire.analysis.quantities import may_pass
from quire.analysis.rules import codes
from quire.diagnostics import Diagnostic, Edit, Fix
from quire.plan.pipeline_work import Fold, ForEach, Formula
from quire.plan.vocabulary import MAX_ITEMS
from quire.source import Span

if TYPE_CHECKING:
    from quire.analysis.amounts import Amount
    from quire.analysis.facts import FanFact
    from quire.analysis.proof import Proof
    from quire.analysis.rules import RuleContext
    from quire.source import Source


USUAL_ITEMS = 100
"""The number that a fix of a fan proposes."""
_MOST_SIZE = 10**9


def check(proof: Proof, context: RuleContext) -> Iterator[Diagnostic]:
    """Yield amounts without a bound, and amounts above the limit of a run."""
    yield from _endless(proof)
    stops = list(_stops(proof, context))
    yield from stops
    yield from _fans(proof, context, asks_counted=bool(stops))


def _endless(proof: Proof) -> Iterator[Diagnostic]:
    """Yield the reasons of infinite amounts that a line of the document or of the settings would bound."""
    for kind, reasons in sorted(proof.cost.endless.items()):
        for reason in reasons:
            if not reason.remedy or reason.document:  # a called document is reported where it is checked itself
                continue
            code = codes.UNBOUNDED_REPLY if kind.startswith(OUTPUT_OF) else codes.UNBOUNDED_TURN
            yield Diagnostic(code, reason.text, reason.span, help=reason.remedy)


def _stops(proof: Proof, context: RuleContext) -> Iterator[Diagnostic]:
    """Yield a finding if the limit of model calls stops every run, or the runs from some size on."""
    cap = context.premises.spawns
    if not cap or not proof.plan.has_call_cap:
        return
    least = proof.bound(MODEL_CALLS).least
    limit = f"a run may make {cap:,} (max_pipeline_spawns)"
    if least > cap:
        if least - _by_directives(proof, least) <= cap:  # otherwise PL116 says it
            message = f"every run makes at least {least:,} model calls, and {limit}"
            yield Diagnostic(codes.CANNOT_COMPLETE, message, context.span(proof.model_calls[0].place))
        return
    amount, most = proof.cost.amount(ASKED), proof.bound(MODEL_CALLS).most
    if most.is_endless or not may_pass(amount, cap):
        return
    fan = _first_fan(proof)
    place = fan.place if fan else proof.model_calls[0].place if proof.model_calls else None
    if place is None:
        return
    worst = ""
    if str(amount) != str(most):
        when = _size(most, cap)[0]
        worst = f"; with turns, corrections and further tries up to {most}{when}"
    message = f"a run makes up to {amount} model calls{_size(amount, cap)[0]}{worst}, and {limit}: it stops there"
    items = _size(amount, cap)[1]
    fits = f"at most {items:,} items fit the limit of {cap:,} calls (max_items: {items})"
    more = "raise max_pipeline_spawns under [safety.spawn] in quire.toml"
    if context.asked_calls:
        more = f"confirm max_pipeline_spawns = {context.asked_calls} of quire.toml: quire trust workspace"
    help = f"{fits if fan and items else 'limit the list with max_items'}; or run it with --limit calls=N, or {more}"
    yield Diagnostic(codes.MAY_STOP, message, context.span(place), help=help, fix=_fix(fan, items, context))


def _by_directives(proof: Proof, least: int) -> int:
    """Return how many model calls directives make at most, which PL116 does not count."""
    counts = [call.often.as_number for call in proof.model_calls if call.place.is_thread]
    return sum(least if count is None else count for count in counts)


def _size(most: Amount, cap: int) -> tuple[str, int]:
    """Return for people from which size on a formula is above a number, and the largest size below it if there is only
    one. Each size is looked at for itself, with the others at nothing."""
    words = []
    sizes = most.sizes
    items = 0
    for size in sizes:
        alone = most.with_sizes({other: 0 for other in sizes if other != size})
        first = _first_above(alone, size, cap)
        if first is not None:
            words.append(f"{size} = {first:,}")
            items = first - 1
    if not words:
        return "", 0
    return f" (more than {cap:,} from {' or '.join(words)} on)", items if len(sizes) == 1 else 0


def _first_above(formula: Amount, size: str, cap: int) -> int | None:
    """Return the smallest value of a size for which a formula is above a number; formulas never fall."""

    def above(value: int) -> bool:
        return (formula.with_sizes({size: value}).as_number or 0) > cap

    return bisect_left(range(_MOST_SIZE), True, key=above) if above(_MOST_SIZE) else None


def _first_fan(proof: Proof) -> FanFact | None:
    """Return the first fan without a limit of its own around a model call; else the first around one at all."""
    around = {place.key for call in proof.model_calls for place in call.fans}
    fans = [fan for fan in proof.fans if fan.place.key in around]
    return next((fan for fan in fans if _is_open(fan)), fans[0] if fans else None)


def _fans(proof: Proof, context: RuleContext, *, asks_counted: bool) -> Iterator[Diagnostic]:
    """Yield the fans whose rounds only the engine limits, if they cost something in each round. Those of called
    documents are reported where the called document is checked."""
    asking = {place.key for call in proof.model_calls for place in call.fans}
    acting = {place.key for effect in proof.effects if not effect.by_model for place in effect.fans}
    costly = asking | acting
    for fan in proof.fans if costly else ():
        key = fan.place.key
        if fan.place.document or not _is_open(fan) or key not in costly or (asks_counted and key in asking):
            continue
        limit = context.premises.items
        rounds = f"{fan.rounds} times" if fan.rounds.sizes else "for every item of a list of unknown length"
        message = f"step {fan.place.way} does its work {rounds}: only the engine stops it, above {limit:,} items"
        help = f"max_items: {USUAL_ITEMS} says how many are meant"
        fix = _fix(fan, USUAL_ITEMS, context)
        yield Diagnostic(codes.UNBOUNDED_FAN, message, context.span(fan.place), help=help, fix=fix)


def _is_open(fan: FanFact) -> bool:
    """Tell whether only the size of an input, or the engine itself, limits the rounds of a fan."""
    work = fan.place.step.work
    if not isinstance(work, ForEach | Fold) or work.max_items is not None:
        return False
    rounds = fan.rounds.as_number
    return rounds is None or rounds >= MAX_ITEMS


def _fix(fan: FanFact | None, most: int, context: RuleContext) -> Fix | None:
    if fan is None or not most or fan.place.document or not _is_open(fan):
        return None
    work = fan.place.step.work
    over = work.source if isinstance(work, ForEach | Fold) else None
    return add_max_items(context.source, over.span, most) if isinstance(over, Formula) else None


def add_max_items(source: Source, over: Span, most: int) -> Fix | None:
    """Return the fix that adds a limit below `over: LIST`; None if the list is not alone on the line of its key."""
    text = source.text
    start = text.rfind("\n", 0, over.start) + 1
    end = text.find("\n", over.end) + 1
    line = text[start:end]
    before = text[start : over.start]
    indent = before[: len(before) - len(before.lstrip(" "))]
    if before != f"{indent}over: " or end == 0 or "\n" in text[over.start : over.end]:
        return None
    # The whole line is in the edit, so that a changed text is noticed.
    edit = Edit(Span(start, end), line, f"{line}{indent}max_items: {most}\n")
    return Fix(f"add max_items: {most}", (edit,), safe=False)
