"""Prove what one run can cost at most: with its inputs, its model and its limits, before it is started."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.analysis.quantities import Quantity, quantities
from quire.engine.declared_inputs import defaults_of
from quire.library.foresight import Foresight
from quire.plan.bounds import with_inputs
from quire.runs.run_bounds import rates_of, sizes_in, sizes_of, with_limits

if TYPE_CHECKING:
    from quire.analysis.proof import Proof
    from quire.library.document import Document
    from quire.models.choose import CallSettings
    from quire.plan.nodes import Plan
    from quire.values import Value
    from quire.workspace.settings import Settings


class RunProof(Struct, frozen=True):
    """The proof of a run that is not started yet."""

    proof: Proof
    quantities: tuple[Quantity, ...]
    sizes: Mapping[str, int]
    """The sizes of inputs that formulas name, by their symbols. Inputs that are not given have none."""

    def quantity(self, name: str) -> Quantity | None:
        return next((one for one in self.quantities if one.name == name), None)

    def most(self, name: str) -> int | None:
        """Return the smallest number that is proven for this run; None if only a formula is, or nothing."""
        one = self.quantity(name)
        return None if one is None or one.unpriced else number_with(one, self.sizes)


def number_with(one: Quantity, sizes: Mapping[str, int]) -> int | None:
    """Return the smallest number that is proven with these sizes."""
    own = one.most.with_sizes(sizes).as_number
    if one.ceiling is None:
        return own
    return one.ceiling.most if own is None else min(own, one.ceiling.most)


def prove_run(
    document: Document,
    settings: Settings,
    inputs: Mapping[str, Value],
    *,
    model: str = "",
    one_model: bool = False,
    limits: Mapping[str, Value] | None = None,
    environ: Mapping[str, str] | None = None,
    own: CallSettings | None = None,
) -> RunProof:
    """Return the proof. With `one_model` every call goes to `model`, whatever the document says. `limits` are those of
    a directive as the run has them, which may be higher than its own; `own` are the settings of the tier of `model`."""
    plan = document.runnable()
    given: dict[str, Value] = {**_defaults(plan), **inputs}
    foresight = Foresight(settings)
    world = foresight.world(model)
    limited = with_limits(with_inputs(plan, given), limits or {})
    proof = foresight.proof(limited, document.name, model, own=own, one_model=one_model)
    rates = rates_of(settings, model, one_model=one_model, environ=environ or {})
    found = quantities(proof, world.premises, rates)
    return RunProof(proof, found, sizes_of(given, sizes_in(found)))


def _defaults(plan: Plan) -> dict[str, Value]:
    return {**{one.name: one.default for one in plan.inputs if one.default is not None}, **defaults_of(plan)}
