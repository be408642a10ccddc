"""The numbers of a proof for people and programs: calls, tokens, money and time, each with its premises.

`≤` is proven: the engine enforces every premise. `~` is estimated. An infinite amount has reasons; a model without a
price makes the money `unpriced`, never 0. Of a formula with sizes, the caps of the engine still make a number: a run of
a pipeline makes no more model calls than its cap, and no call reads more than the window of its model. A number that
would only say how much the engine holds at all, such as the longest prompt, is not a bound: it is infinite here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from quire.analysis.abstract_values import BYTES_A_TOKEN
from quire.analysis.amounts import NOTHING, Amount, Reason, endless, number, total
from quire.analysis.costs import (
    BYTES_OF,
    CALLS_OF,
    COUNTED,
    LAUNCHES_OF,
    MODEL_CALLS,
    OUTPUT_OF,
    SPAN,
    SURE_INPUT_OF,
    TOOLS_OF,
    WINDOW_OF,
    WORK,
)

if TYPE_CHECKING:
    from quire.analysis.amounts import Unit
    from quire.analysis.proof import Proof
    from quire.engine.premises import Premises
    from quire.models.prices import Rate

RateOf = Callable[[str], "Rate"]
"""Returns the price of a model, which may be empty for one that is not known."""


MOST_COUNTED = 1_000_000
"""A larger count has no use: it is a product of limits that no document has chosen."""


class Ceiling(Struct, frozen=True):
    """A number that an amount cannot exceed for any sizes, and why."""

    most: int
    why: str


class Quantity(Struct, frozen=True):
    """One number of a proof."""

    name: str
    unit: Unit
    least: int = 0
    most: Amount = NOTHING
    """The proven bound."""
    about: Amount | None = None
    """The estimate; None where the proven bound is the best that is known."""
    ceiling: Ceiling | None = None
    unpriced: tuple[str, ...] = ()
    """Of money: why the prices of some models are not known."""
    premises: tuple[str, ...] = ()
    """The numbers that the proof rests on."""
    parts: Mapping[str, Amount] = {}
    """The same by class, or by model."""
    sure: bool = True
    """False if it rests on a premise that the engine does not enforce, such as a rate that a service may change."""

    def with_sizes(self, sizes: Mapping[str, int]) -> Quantity:
        """Return the number with the sizes that are known in their place."""
        if not sizes:
            return self
        about = self.about.with_sizes(sizes) if self.about is not None else None
        return replace(self, most=self.most.with_sizes(sizes), about=about)

    @property
    def number(self) -> int | None:
        """The smallest number that is proven; None if only a formula is."""
        own = self.most.as_number
        if self.ceiling is None:
            return own
        return self.ceiling.most if own is None else min(own, self.ceiling.most)


def quantities(
    proof: Proof, premises: Premises, rate_of: RateOf | None = None, *, longest: int | None = None
) -> tuple[Quantity, ...]:
    """Return all numbers of a proof. Without `rate_of` no price list is loaded, and money is left out. `longest` stands
    for windows that are not known, and for counts without end: of a lock, whose numbers are only compared."""
    cap = premises.spawns if proof.plan.has_call_cap else None
    models = asked_models(proof)
    rates = {model: rate_of(model) for model in models} if rate_of is not None else {}
    windows: Mapping[str, int | None] = {}
    if rates:
        # Prices take long to load, and most callers count no money.
        from quire.analysis.money import money_of

        windows = {model: rate.context for model, rate in rates.items()}
    windows = {model: longest if windows.get(model) is None else windows[model] for model in models}
    several = [_counted(proof, kind, cap, shown=longest is None) for kind in COUNTED]
    calls = proof.bound(MODEL_CALLS).most.as_number
    if calls is not None and (cap is None or calls < cap):
        cap = calls  # as many calls as there can be, each as large as the largest
    if models:
        several += [_input(proof, models, windows, cap), _output(proof, models, cap)]
        if rates:
            several.append(money_of(proof, rates, cap, windows))
    return (*several, _time(proof))


def asked_models(proof: Proof) -> list[str]:
    """Return the models that are asked, each once; the empty text stands for the run's own if it is not known."""
    return _after(CALLS_OF, proof)


def _after(beginning: str, proof: Proof) -> list[str]:
    """Return the models, or classes of tools, of the kinds of amounts that begin so."""
    return [kind.removeprefix(beginning) for kind in proof.cost.kinds() if kind.startswith(beginning)]


def _counted(proof: Proof, kind: str, cap: int | None, *, shown: bool) -> Quantity:
    bound = proof.bound(kind)
    most = without_end(proof, bound.most) if shown else bound.most
    ceiling = None
    if kind == MODEL_CALLS and cap and may_pass(most, cap):
        ceiling = Ceiling(cap, f"[safety.spawn] max_pipeline_spawns = {cap:,}: a run stops there")
    parts = {}
    if kind == "tool_calls":
        parts = {effect: proof.cost.amount(f"{TOOLS_OF}{effect}") for effect in _after(TOOLS_OF, proof)}
    return Quantity(kind, "count", bound.least, most, ceiling=ceiling, premises=_on_their_own(proof), parts=parts)


def without_end(proof: Proof, most: Amount) -> Amount:
    """Return a count, or infinity for one that is only a product of the largest numbers that the engine allows."""
    if (most.as_number or 0) <= MOST_COUNTED:
        return most
    remedy = '<limits turns="10" spawns="4" depth="1"/>' if proof.plan.thread is not None else "max_items"
    return endless(Reason(f"more than {MOST_COUNTED:,} are possible, by the limits of the engine alone", remedy))


def launched_models(proof: Proof) -> list[str]:
    """Return the models of runs that threads may launch; the empty text stands for one that is not known."""
    return _after(LAUNCHES_OF, proof)


def _on_their_own(proof: Proof) -> tuple[str, ...]:
    if not launched_models(proof):
        return ()
    return ("runs that a thread launches, and does not wait for or has written itself, are counted on their own",)


def may_pass(amount: Amount, cap: int) -> bool:
    """Tell whether an amount can be larger than a cap."""
    own = amount.as_number
    return own is None or own > cap


def read_at_most(proof: Proof, model: str, window: int | None) -> tuple[Amount, str]:
    """Return the tokens that a model reads at most, and the premise about its window, which is None if it is not
    known."""
    calls, sure = proof.cost.amount(f"{WINDOW_OF}{model}"), proof.cost.amount(f"{SURE_INPUT_OF}{model}")
    if calls.is_nothing:
        return sure, ""
    if window is None:
        return sure.plus(endless(unknown_window(model))), ""
    return sure.plus(calls.times(number(window))), f"{model or 'the model'} reads at most {window:,} tokens a call"


def unknown_window(model: str) -> Reason:
    """Return why the input of a model has no bound."""
    remedy = f'window = 128000 under [models.prices."{model}"] of your quire.toml' if model else "--model NAME"
    return Reason(f"input not bounded: the window of {model or 'the model'} is not known", remedy)


def _input(proof: Proof, models: list[str], windows: Mapping[str, int | None], cap: int | None) -> Quantity:
    bounds = [read_at_most(proof, model, windows[model]) for model in models]
    about = total(read_about(proof, model) for model in models)
    most = total(amount for amount, _ in bounds)
    notes = tuple(premise for _, premise in bounds if premise)
    each = [window for window in windows.values() if window is not None]
    uses_tools = any(fact.tools for fact in proof.model_calls)
    return Quantity(
        "input_tokens",
        "tokens",
        0,
        most,
        None if uses_tools else about,
        _capped(most, cap, max(each)) if len(each) == len(models) else None,
        premises=(*notes, *_on_their_own(proof)),
    )


def read_about(proof: Proof, model: str) -> Amount:
    """Return the tokens that a model reads, as an estimate by the bytes."""
    return proof.cost.amount(f"{BYTES_OF}{model}").divided(BYTES_A_TOKEN)


def _capped(most: Amount, cap: int | None, each: int) -> Ceiling | None:
    if not cap or not may_pass(most, cap * each):
        return None
    return Ceiling(cap * each, f"{cap:,} model calls of at most {each:,}")


def _output(proof: Proof, models: list[str], cap: int | None) -> Quantity:
    most = total(proof.cost.amount(f"{OUTPUT_OF}{model}") for model in models)
    longest = longest_reply(proof)
    notes = (f"a reply has at most {longest:,} tokens",) if longest else ()
    return Quantity(
        "output_tokens",
        "tokens",
        0,
        most,
        ceiling=_capped(most, cap, longest) if longest else None,
        premises=(*notes, *_on_their_own(proof)),
    )


def longest_reply(proof: Proof) -> int:
    """Return the tokens of the longest reply; 0 if it is not known."""
    longest = [fact.reply_tokens for fact in proof.model_calls]
    if None in longest or proof.incomplete or proof.unknown:
        return 0
    return max((tokens or 0 for tokens in longest), default=0)


def _time(proof: Proof) -> Quantity:
    span, work = proof.cost.amount(SPAN), proof.cost.amount(WORK)
    return Quantity(
        "time",
        "milliseconds",
        0,
        span,
        parts={"one after the other": work},
        premises=("model calls and tools take as long as their time-outs allow; people are not counted",)
        if not span.is_nothing and not span.is_endless
        else (),
    )


def reasons(proof: Proof) -> tuple[Reason, ...]:
    """Return why numbers of a proof are infinite, each reason once."""
    return tuple(dict.fromkeys(reason for several in proof.cost.endless.values() for reason in several))
