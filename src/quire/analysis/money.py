"""Count the money of a proof in the prices of its models: picodollars, rounded up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from quire.analysis.amounts import NOTHING, number
from quire.analysis.costs import CALLS_OF, LAUNCHED_MONEY, OUTPUT_OF
from quire.analysis.quantities import (
    Ceiling,
    Quantity,
    launched_models,
    longest_reply,
    may_pass,
    read_about,
    read_at_most,
)
from quire.models.choose import Unpriced

if TYPE_CHECKING:
    import datetime

    from quire.analysis.proof import Proof
    from quire.models.prices import ModelRate, Rate
    from quire.plan.nodes import Plan


def money_of(proof: Proof, rates: Mapping[str, Rate], cap: int | None, windows: Mapping[str, int | None]) -> Quantity:
    """Return the most that a run can cost. It is unpriced if the price of a single model is not known."""
    most, about = NOTHING, NOTHING
    notes: list[str] = []
    unpriced: list[str] = []
    dearest: int | None = 0
    reply = longest_reply(proof)
    for model, rate in rates.items():
        amount = proof.cost.amount(f"{OUTPUT_OF}{model}")
        if isinstance(rate, Unpriced):
            if amount.is_endless:
                most = most.plus(amount)  # no bound exists, for any price
            else:
                unpriced.append(f"{model or 'the model'}: {rate.reason}")
            continue
        read, written = rate.picodollars()
        window = windows[model]
        tokens, premise = read_at_most(proof, model, window) if read else (NOTHING, "")
        calls = proof.cost.amount(f"{CALLS_OF}{model}")
        output = amount.times(number(written))
        each = calls.times(number(rate.call_picodollars))
        most = most.plus(tokens.times(number(read))).plus(output).plus(each)
        about = about.plus(read_about(proof, model).times(number(read))).plus(output).plus(each)
        if dearest is not None:
            dearest = None if read and window is None else max(dearest, rate.cost(window or 0, reply))
        notes += [_rate_note(rate), *rate.premises, *([premise] if premise else [])]
    launched = launched_models(proof)
    is_sure = not any(rate.premises for rate in rates.values() if not isinstance(rate, Unpriced))
    if pays_for_launches(proof, rates):
        most = most.plus(proof.cost.amount(LAUNCHED_MONEY))
        note = "runs that a thread launches are paid from its limit of spend"
        if any(_price(model, rates) is None for model in launched):
            note, is_sure = f"{note}, if their model has a price", False
        notes.append(note)
    premises_said = tuple(dict.fromkeys(notes))
    if unpriced:
        return Quantity("money", "picodollars", unpriced=tuple(unpriced), premises=premises_said)
    ceiling = None
    if cap and reply and not launched and dearest is not None and may_pass(most, cap * dearest):
        ceiling = Ceiling(cap * dearest, f"{cap:,} model calls of the most expensive kind")
    spend = spend_limit(proof.plan)
    if spend is not None and may_pass(most, spend):
        ceiling = Ceiling(spend, "the limit of spend: the cost of a call is set aside before the call")
    uses_tools = any(fact.tools for fact in proof.model_calls)
    estimate = None if uses_tools or about.is_endless else about
    return Quantity("money", "picodollars", 0, most, estimate, ceiling, premises=premises_said, sure=is_sure)


def pays_for_launches(proof: Proof, rates: Mapping[str, Rate]) -> bool:
    """Tell whether runs that threads launch may cost something."""
    found = [_price(model, rates) for model in launched_models(proof)]
    return not all(rate is not None and rate.free for rate in found)


def _price(model: str, rates: Mapping[str, Rate]) -> ModelRate | None:
    rate = rates.get(model)
    return None if isinstance(rate, Unpriced) else rate


def _rate_note(rate: ModelRate) -> str:
    if rate.free:
        return f"{rate.spec} is free ({rate.source})"
    read, written = rate.at()
    looked = f", looked at on {rate.date}" if rate.date else ""
    each = f"${read.normalize():f} read and ${written.normalize():f} written per million tokens"
    return f"{rate.spec} {each} ({rate.source}{looked})"


def spend_limit(plan: Plan) -> int | None:
    """Return the picodollars that the run of a directive may cost by its own limit; None if nothing holds it to one.

    Threads that it starts, and documents that it runs, are paid from the same purse."""
    thread = plan.thread
    if thread is None:
        return None
    from quire.analysis.thread_hooks import raised_limits
    from quire.engine.interpreter.thread.budgets import resolve_limits
    from quire.errors import BadInputs
    from quire.models.prices import PICODOLLARS

    if "spend" in raised_limits(thread.hooks):
        return None
    try:
        spend = resolve_limits(thread.limits, {}, None).spend
    except BadInputs:
        return None
    return None if spend is None else round(spend * PICODOLLARS)


def noted_rate(rate: Rate, today: datetime.date) -> Rate:
    """Return a price whose reason or premises name the code for what is doubtful about it: that it is missing (BD106),
    or old (BD107). `check` loads no prices, so these are not findings of it: they stand where money is shown."""
    from quire.analysis.rules.codes import OLD_PRICE, UNPRICED

    if isinstance(rate, Unpriced):
        return replace(rate, reason=f"{rate.reason} ({UNPRICED.id})")
    if not rate.is_old(today):
        return rate
    note = f"the price of {rate.spec} was last looked at {rate.age(today):,} days ago ({OLD_PRICE.id})"
    return replace(rate, premises=(*rate.premises, note))
