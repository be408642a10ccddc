"""Bounds of one run with its inputs: the numbers that the driver holds it to.

A document is proven once, with sizes as names; each run puts the sizes of its own inputs in their place. So the
thousandth run of a document pays nothing for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from quire.analysis.costs import COUNTED
from quire.analysis.quantities import Quantity, quantities
from quire.engine.proven_bounds import ProvenBounds
from quire.library.foresight import Foresight
from quire.values import Value, encode

if TYPE_CHECKING:
    from quire.models.prices import Rate
    from quire.plan.envelope import CapabilityEnvelope
    from quire.plan.nodes import Plan
    from quire.workspace.settings import Settings

_MOST_KEPT = 64
_LARGEST = 10**12
"""A run never does more; a larger bound is not worth keeping."""
_MOST_LOOKED_AT = 100_000
"""Items of nested lists that are looked at to find the largest; a bound that would need more is left out."""


class RunBounds(Struct, frozen=True):
    """The bounds of one run."""

    proven: ProvenBounds
    quantities: tuple[Quantity, ...]
    sizes: Mapping[str, int]
    """The sizes of its inputs, by their symbols."""
    envelope: CapabilityEnvelope | None
    """None if the run changes nothing."""


class _Kept(Struct, frozen=True):
    """The proof of a document in a workspace, and what it was made from, so that both stay as long as it does."""

    plan: Plan
    settings: Settings
    quantities: tuple[Quantity, ...]
    envelope: CapabilityEnvelope | None


_kept: dict[tuple[object, ...], _Kept] = {}


def bounds_of_run(
    plan: Plan,
    name: str,
    settings: Settings,
    documents: Mapping[str, Plan],
    model: str,
    inputs: Mapping[str, Value],
    limits: Mapping[str, Value],
    *,
    priced: bool,
    one_model: bool = False,
) -> RunBounds:
    """Return the bounds of a run. `limits` are those that a directive was started with. With `priced` money is counted,
    which may load the list of prices; with `one_model` every call goes to `model`, whatever the document says."""
    key = (id(plan), id(settings), model, priced, one_model, encode(dict(limits)))
    found = _kept.get(key)
    if found is None:
        found = _proven(plan, name, settings, documents, model, limits, priced, one_model)
        while len(_kept) >= _MOST_KEPT:
            _kept.pop(next(iter(_kept)), None)
        _kept[key] = found
    sizes = sizes_of(inputs, sizes_in(found.quantities))
    numbers = {one.name: one.most.with_sizes(sizes).as_number for one in found.quantities if one.name in COUNTED}
    kept = {name: count for name, count in numbers.items() if count is not None and count <= _LARGEST}
    return RunBounds(ProvenBounds(**kept), found.quantities, sizes, found.envelope)


def _proven(
    plan: Plan,
    name: str,
    settings: Settings,
    documents: Mapping[str, Plan],
    model: str,
    limits: Mapping[str, Value],
    priced: bool,
    one_model: bool,
) -> _Kept:
    foresight = Foresight(settings, documents)
    proof = foresight.proof(with_limits(plan, limits), name, model)
    numbers = quantities(
        proof, foresight.world(model).premises, rates_of(settings, model, one_model=one_model) if priced else None
    )
    changes = any(one.tool.effect != "read" for one in proof.effects)
    return _Kept(plan, settings, numbers, foresight.envelope(plan, name) if changes else None)


def with_limits(plan: Plan, limits: Mapping[str, Value]) -> Plan:
    """Return a directive with the limits of the run."""
    if plan.thread is None or not limits:
        return plan
    from quire.plan.nodes import Sequence
    from quire.plan.thread import Thread

    steps = []
    for step in plan.body.steps:
        work = step.work
        if isinstance(work, Thread):
            step = replace(step, work=replace(work, limits={**work.limits, **limits}))
        steps.append(step)
    return replace(plan, body=Sequence(tuple(steps)))


def rates_of(
    settings: Settings, model: str, *, one_model: bool, environ: Mapping[str, str] | None = None
) -> Callable[[str], Rate]:
    """Return a function that finds the price of a model today. With `one_model` every call goes to `model`. Without
    `environ`, the environment of the process tells where providers are."""

    def rate(spec: str) -> Rate:
        import datetime
        import os

        from quire.models.prices import Unpriced, rate_of

        asked = model if one_model and model else spec
        if not asked:
            return Unpriced(asked, "no model is named")
        today = datetime.datetime.now(datetime.UTC).date()
        return rate_of(asked, settings.models, today, os.environ if environ is None else environ)

    return rate


def sizes_in(found: Iterable[Quantity]) -> set[str]:
    """Return the sizes that formulas of bounds and of estimates name."""
    amounts = [amount for one in found for amount in (one.most, one.about) if amount is not None]
    return {size for amount in amounts for size in amount.sizes}


def sizes_of(inputs: Mapping[str, Value], wanted: set[str]) -> dict[str, int]:
    """Return the sizes of inputs that a formula names: `|rows|`, `‖doc‖`, `|rows[].parts|`; of several the largest."""
    found = {}
    for size in wanted:
        values = _reached(inputs, size[1:-1].replace("[]", ".[]").split("."))
        if values is not None:
            found[size] = max(map(_items if size[0] == "|" else _bytes, values), default=0)
    return found


def _reached(inputs: Mapping[str, Value], parts: list[str]) -> list[Value] | None:
    """Return all values at a path; None if they are too many to look at, or the input is not there."""
    if parts[0] not in inputs:
        return None
    values: list[Value] = [inputs[parts[0]]]
    for part in parts[1:]:
        if part == "[]":
            values = [item for value in values if isinstance(value, list | tuple) for item in value]
        else:
            values = [value[part] for value in values if isinstance(value, Mapping) and part in value]
        if len(values) > _MOST_LOOKED_AT:
            return None
    return values


def written_widely(value: Value) -> str:
    """Return JSON with the widest spacing that a document gets when it inserts a value: a bound must not be lower."""
    import json

    return json.dumps(value, ensure_ascii=False, indent=4)


def _items(value: Value) -> int:
    return len(value) if isinstance(value, list | tuple | Mapping) else 1


def _bytes(value: Value) -> int:
    if isinstance(value, str):
        from quire.analysis.written_sizes import written_length

        return written_length(value)
    text = written_widely(value)
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
