"""The numbers of a proof for people and programs: calls, tokens, money and time, each with its premises.

`≤` is proven: the engine enforces every premise. `~` is estimated. An infinite amount has reasons; a model without a
price makes the money `unpriced`, never 0. Of a formula with sizes, the caps of the engine still make a number: a run of
a pipeline makes no more model calls than its cap, and no call reads more than the window of its model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from quire.analysis.abstract_values import BYTES_A_TOKEN
from quire.analysis.amounts import NOTHING, Amount, Reason, number, total
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
    from quire.analysis.amount_words import Unit
    from quire.analysis.proof import Proof
    from quire.engine.premises import Premises
    from quire.models.prices import Rate

RateOf = Callable[[str], "Rate"]
"""Returns the price of a model, which may be empty for one that is not known."""


class Ceiling(Struct, frozen=True):
    """A number that an amount cannot pass whatever its sizes are, and why."""

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


def quantities(proof: Proof, premises: Premises, rate_of: RateOf | None = None) -> tuple[Quantity, ...]:
    """Return all numbers of a proof. Without `rate_of` no price list is loaded, and money is left out."""
    cap = premises.spawns if proof.plan.format == "pipeline" else None
    models = asked_models(proof)
    rates = {model: rate_of(model) for model in models} if rate_of is not None else {}
    windows: Mapping[str, int | None] = {}
    if rates:
        # Prices take long to load, and most callers count no money.
        from quire.analysis.money import money_of, windows_of

        windows = windows_of(rates)
    found = [_counted(proof, kind, cap, premises) for kind in COUNTED]
    calls = proof.bound(MODEL_CALLS).most.as_number
    if calls is not None and (cap is None or calls < cap):
        cap = calls  # as many calls as there can be, each as large as the largest
    if models:
        found += [_input(proof, models, windows, cap, premises), _output(proof, models, cap)]
        if rates:
            found.append(money_of(proof, rates, cap, premises))
    found.append(_time(proof))
    return tuple(found)


def asked_models(proof: Proof) -> list[str]:
    """Return the models that are asked, each once; the empty text stands for the run's own if it is not known."""
    return [kind.removeprefix(CALLS_OF) for kind in proof.cost.kinds() if kind.startswith(CALLS_OF)]


def _counted(proof: Proof, kind: str, cap: int | None, premises: Premises) -> Quantity:
    bound = proof.bound(kind)
    ceiling = None
    if kind == MODEL_CALLS and cap and may_pass(bound.most, cap):
        ceiling = Ceiling(cap, f"[safety.spawn] max_pipeline_spawns = {cap:,}: a run stops there")
    parts = {}
    if kind == "tool_calls":
        parts = {
            one.removeprefix(TOOLS_OF): proof.cost.amount(one) for one in proof.cost.kinds() if one.startswith(TOOLS_OF)
        }
    return Quantity(kind, "count", bound.least, bound.most, ceiling=ceiling, premises=_on_their_own(proof), parts=parts)


def launched_models(proof: Proof) -> list[str]:
    """Return the models of runs that threads may launch; the empty text stands for one that is not known."""
    return [kind.removeprefix(LAUNCHES_OF) for kind in proof.cost.kinds() if kind.startswith(LAUNCHES_OF)]


def _on_their_own(proof: Proof) -> tuple[str, ...]:
    if not launched_models(proof):
        return ()
    return ("runs that a thread launches, and does not wait for or has written itself, are counted on their own",)


def may_pass(amount: Amount, cap: int) -> bool:
    """Tell whether an amount can be larger than a cap."""
    own = amount.as_number
    return own is None or own > cap


def read_at_most(proof: Proof, model: str, known: int | None, premises: Premises) -> tuple[Amount, int, str]:
    """Return the tokens that a model reads at most, the window of one call, and the premise about it. `known` is the
    window, if there is a list that has it."""
    window = known if known is not None else premises.prompt_characters * 4
    calls = proof.cost.amount(f"{WINDOW_OF}{model}")
    premise = ""
    if not calls.is_nothing:
        name = model or "the model"
        premise = (
            f"{name} reads at most {window:,} tokens a call"
            if known is not None
            else f"the window of {name} is not known: no call reads more than {window:,} tokens"
        )
    return proof.cost.amount(f"{SURE_INPUT_OF}{model}").plus(calls.times(number(window))), window, premise


def _input(
    proof: Proof, models: list[str], windows: Mapping[str, int | None], cap: int | None, premises: Premises
) -> Quantity:
    found = {model: read_at_most(proof, model, windows.get(model), premises) for model in models}
    about = total(read_about(proof, model) for model in models)
    most = total(amount for amount, _, _ in found.values())
    notes = tuple(premise for _, _, premise in found.values() if premise)
    uses_tools = any(fact.tools for fact in proof.model_calls)
    return Quantity(
        "input_tokens",
        "tokens",
        0,
        most,
        None if uses_tools else about,
        _capped(most, cap, max(window for _, window, _ in found.values())),
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
    return max((one or 0 for one in longest), default=0)


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
    return tuple(dict.fromkeys(one for several in proof.cost.endless.values() for one in several))
