"""The steps that make up a number of a proof, each with its share: the arithmetic of `quire show --why`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from quire.analysis.amounts import ONE, Amount, Unit, bounded, endless, number, total, written
from quire.analysis.costs import LAUNCHED_MONEY
from quire.analysis.quantities import unknown_window
from quire.engine.premises import MOST_CALLS
from quire.models.choose import Unpriced

if TYPE_CHECKING:
    from quire.analysis.facts import ModelFact
    from quire.analysis.proof import Proof
    from quire.models.prices import ModelRate, Rate

NO_RATES: Mapping[str, Rate] = {}


class Contribution(Struct, frozen=True):
    """A step that adds to a number: how much each time, and how often."""

    way: str
    what: str
    each: Amount
    often: Amount
    chosen: bool = False
    """True if it is in a branch: of several branches only the most expensive counts."""
    unit: Unit = "count"
    product: str = ""
    """Of money: the tokens and their price, `4,096 × $15/M`."""

    @property
    def whole(self) -> Amount:
        return self.each.times(self.often)


def contributions(proof: Proof, kind: str, rates: Mapping[str, Rate] = NO_RATES) -> tuple[Contribution, ...]:
    """Return the steps that make up a number. `rates` has the prices of models, where they were looked up: money needs
    them, and the windows of models are among them."""
    shares: list[Contribution] = []
    if kind == "questions":
        shares += [
            Contribution(question.place.way, f"asks ({question.kind})", ONE, question.often, question.in_an_arm)
            for question in proof.questions
        ]
    for fact in proof.model_calls:
        rate = rates.get(fact.model)
        priced = None if isinstance(rate, Unpriced) else rate
        match kind:
            case "model_calls":
                turns = max(0, fact.calls - 1)
                more = f", with up to {turns:,} turns or corrections" if turns else ""
                shares.append(_share(fact, f"asks {fact.model or 'the model'}{more}", number(fact.calls)))
            case "tool_calls" if fact.tools or fact.place.is_thread:
                what = f"may use {len(fact.tools)} tools, {MOST_CALLS} calls a turn"
                shares.append(_share(fact, what, number(fact.uses)))
            case "questions" if fact.asks:
                shares.append(_share(fact, f"may ask, {MOST_CALLS} questions a turn", number(fact.uses)))
            case "input_tokens":
                shares += [_share(fact, what, tokens, "tokens") for what, tokens in _read(fact, rate)]
            case "output_tokens":
                shares += [_share(fact, what, tokens, "tokens") for what, tokens in _wrote(fact)]
            case "money" if priced is not None:
                shares += _paid(fact, priced)
    if kind == "tool_calls":
        shares += [
            Contribution(effect.place.way, f"calls {effect.tool.name}", ONE, effect.often, bool(effect.conditions))
            for effect in proof.effects
            if not effect.by_model
        ]
    if kind == "money" and rates:
        shares += _launched(proof, rates)
    return tuple(shares)


def completed(shares: tuple[Contribution, ...], proof: Proof, most: Amount, unit: Unit) -> tuple[Contribution, ...]:
    """Return the shares with that of what has no facts of its own: hooks, and the threads that threads start."""
    thread = next((fact for fact in proof.model_calls if fact.place.is_thread), None)
    amount = total(contribution.whole for contribution in shares)
    if thread is None or most.is_endless or amount.is_endless:
        return shares
    left = {product: count - amount.terms.get(product, 0) for product, count in most.products}
    rest = bounded({product: count for product, count in left.items() if count > 0})
    if rest.is_nothing:
        return shares
    what = "the threads that it starts, and what hooks do"
    return (*shares, Contribution(thread.place.way, what, rest, ONE, unit=unit))


def _launched(proof: Proof, rates: Mapping[str, Rate]) -> Iterator[Contribution]:
    from quire.analysis.money import pays_for_launches

    amount = proof.cost.amount(LAUNCHED_MONEY)
    thread = next((fact for fact in proof.model_calls if fact.place.is_thread), None)
    if thread is not None and not amount.is_nothing and pays_for_launches(proof, rates):
        what = "pays for runs that it launches, within its limit of spend"
        yield Contribution(thread.place.way, what, amount, ONE, unit="picodollars")


def _share(fact: ModelFact, what: str, each: Amount, unit: Unit = "count") -> Contribution:
    return Contribution(fact.place.way, what, each, fact.often, bool(fact.conditions), unit)


def _read(fact: ModelFact, rate: Rate | None) -> Iterator[tuple[str, Amount]]:
    """Yield what a step reads each time it runs, in words, with its tokens."""
    if fact.place.is_thread:
        if not fact.first.is_nothing:
            yield "reads up to its limit of tokens", fact.first
    elif fact.windows < fact.calls:
        yield "reads its prompt, a token for each byte, and what the service adds", fact.first
    if fact.windows:
        calls = "1 call" if fact.windows == 1 else f"{fact.windows:,} calls"
        window = rate.context if rate is not None else None
        if window is None:
            yield f"reads up to the window of its model in {calls}", endless(unknown_window(fact.model))
        else:
            yield f"reads up to {window:,} tokens in {calls}: the window of its model", number(fact.windows * window)


def _wrote(fact: ModelFact) -> Iterator[tuple[str, Amount]]:
    """Yield what the model writes each time a step runs, in words, with its tokens; nothing if it is not limited."""
    if fact.reply_tokens is None:
        return
    limit, tokens = fact.first.as_number if fact.place.is_thread else None, fact.calls * fact.reply_tokens
    if limit and limit < tokens:
        yield "writes up to its limit of tokens", number(limit)
    else:
        yield f"writes up to {fact.reply_tokens:,} tokens a call", number(tokens)


def _paid(fact: ModelFact, rate: ModelRate) -> Iterator[Contribution]:
    """Yield what a step costs each time it runs: tokens times their price."""
    read, wrote = rate.picodollars()
    parts = [(what, tokens, read, _per_million(read)) for what, tokens in _read(fact, rate) if read]
    parts += [(what, tokens, wrote, _per_million(wrote)) for what, tokens in _wrote(fact)]
    if rate.call_picodollars:
        price = written(rate.call_picodollars, "picodollars")
        parts.append(("pays for each call", number(fact.calls), rate.call_picodollars, price))
    for what, tokens, each, price in parts:
        count = tokens.text()
        product = f"({count}) × {price}" if " + " in count else f"{count} × {price}"
        share = _share(fact, what, tokens.times(number(each)), "picodollars")
        yield replace(share, product=product)


def _per_million(picodollars: int) -> str:
    """Return the price of a token as that of a million: `$3/M`."""
    return f"${picodollars / 10**6:,.10g}/M"
