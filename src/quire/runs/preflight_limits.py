"""Find caps and budgets that cannot be kept, before a run starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from quire.engine.ports import ModelCall, Priced
from quire.errors import CannotStart, LimitReached
from quire.models.choose import price_key
from quire.plan.limits import cap_problem

if TYPE_CHECKING:
    from quire.plan.nodes import Plan
    from quire.runs.adapters import Models


def check_cap(plan: Plan, documents: Mapping[str, Plan], most: int) -> None:
    """Raise `LimitReached` if a run needs more model calls than it may make, even at the fewest. 0 means no limit."""
    if problem := cap_problem(plan, documents, most):
        raise LimitReached(problem)


def check_prices(models: Models, specs: Sequence[str], budget: float | None) -> None:
    """Raise `CannotStart` if there is a budget and the price of a model is unknown."""
    if budget is None:
        return
    for spec in dict.fromkeys(filter(None, specs)):
        if not has_price(models, spec):
            key = price_key(spec, models.settings.models)
            raise CannotStart(
                f"the price of {key} is not known, so a budget cannot be kept; two ways on:\n"
                f"--budget none, or its prices in the quire.toml of your space:\n"
                f'[models.prices."{key}"] with input and output, in dollars per million tokens'
            )


def has_price(models: Models, spec: str) -> bool:
    model = models.open(spec)
    return not isinstance(model, Priced) or model.estimate(ModelCall("", ())) is not None
