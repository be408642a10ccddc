"""Prove the most that a document can cost in its workspace, and the most of one run with its inputs, model and limits,
before its start.

A document is proven once, with sizes as names; each run puts the sizes of its own inputs in their place. So the
thousandth run of a document pays nothing for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from quire.analysis.costs import COUNTED, THREADS, WINDOW_OF
from quire.analysis.quantities import Quantity, asked_models, longest_reply, quantities
from quire.engine.proven_bounds import ProvenBounds
from quire.errors import QuireError
from quire.library.foresight import Foresight
from quire.models.choose import NO_SETTINGS, PICODOLLARS, CallSettings
from quire.plan.bounds import with_inputs
from quire.plan.vocabulary import CALLS
from quire.values import Value, encode

if TYPE_CHECKING:
    import datetime

    from quire.analysis.assumptions import Assumptions
    from quire.analysis.contributions import Contribution
    from quire.analysis.proof import Proof
    from quire.engine.premises import Premises
    from quire.library.document import Document
    from quire.models.prices import Rate
    from quire.plan.envelope import CapabilityEnvelope
    from quire.plan.nodes import Plan
    from quire.runs.earlier_runs import UsageSeen
    from quire.workspace.settings import Settings


class RunProof(Struct, frozen=True):
    """The proof of a run that is not started yet."""

    proof: Proof
    quantities: tuple[Quantity, ...]
    sizes: Mapping[str, int]
    """The sizes of inputs that formulas name, by their symbols. Inputs that are not given have none."""

    def quantity(self, name: str) -> Quantity | None:
        return next((quantity for quantity in self.quantities if quantity.name == name), None)

    def most(self, name: str) -> int | None:
        """Return the smallest number that is proven for this run; None if only a formula is, or nothing."""
        quantity = self.quantity(name)
        return None if quantity is None or quantity.unpriced else number_with(quantity, self.sizes)


def number_with(quantity: Quantity, sizes: Mapping[str, int]) -> int | None:
    """Return the smallest number that is proven with these sizes."""
    own = quantity.most.with_sizes(sizes).as_number
    if quantity.ceiling is None:
        return own
    return quantity.ceiling.most if own is None else min(own, quantity.ceiling.most)


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
    """Return the proof. With `one_model` every call goes to `model`, and the document's own choice is ignored. `limits`
    are those of a directive as the run has them, which may be higher than its own; `own` are the settings of the tier
    of `model`."""
    from quire.engine.declared_inputs import defaults_of

    plan = document.runnable()
    defaults = {field.name: field.default for field in plan.inputs if field.default is not None}
    values: dict[str, Value] = {**defaults, **defaults_of(plan), **inputs}
    foresight = Foresight(settings)
    world = foresight.world(model)
    limited = with_limits(with_inputs(plan, values), limits or {})
    proof = foresight.proof(limited, document.name, model, own=own, one_model=one_model)
    rates = rates_of(settings, model, one_model=one_model, environ=environ or {})
    numbers = quantities(proof, world.premises, rates)
    return RunProof(proof, numbers, sizes_of(values, sizes_in(numbers)))


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
    compared: frozenset[str]
    """The names of the quantities that the driver compares with what the run does."""
    reply_tokens: int | None
    """The longest reply that a call allows; None if it is not known."""


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
    calls: int | None = None,
    priced: bool,
    one_model: bool = False,
    own: CallSettings = NO_SETTINGS,
    measured: bool = True,
) -> RunBounds:
    """Return the bounds of a run. `limits` are those that a directive was started with; `calls` is how many model calls
    the run may make, where the settings do not say it. With `priced` money is counted, which may load the list of
    prices; with `one_model` every call goes to `model`, and the document's own choice is ignored. `own` are the
    settings of the tier of `model`. `measured` is false if the tokens of replies are numbers that a script names: they
    are not compared."""
    calls = settings.spawn.max_pipeline_spawns if calls is None else calls
    key = (id(plan), id(settings), calls, model, priced, one_model, own, measured, encode(dict(limits)))
    kept = _kept.get(key)
    if kept is None:
        kept = _proven(plan, name, settings, calls, documents, model, limits, priced, one_model, own, measured)
        while len(_kept) >= _MOST_KEPT:
            _kept.pop(next(iter(_kept)), None)
        _kept[key] = kept
    sizes = sizes_of(inputs, sizes_in(kept.quantities))
    return RunBounds(_compared(kept, sizes), kept.quantities, sizes, kept.envelope)


def _compared(kept: _Kept, sizes: Mapping[str, int]) -> ProvenBounds:
    """Return the bounds that the driver holds the run to, as numbers."""
    counts: dict[str, int] = {}
    cost = None
    for quantity in kept.quantities:
        if quantity.name not in kept.compared:
            continue
        # The cap of model calls is a limit that fails the run, so it is not a bound of them.
        most = (
            quantity.most.with_sizes(sizes).as_number if quantity.name in COUNTED else quantity.with_sizes(sizes).number
        )
        if most is not None and quantity.name == "money":
            cost = most / PICODOLLARS
        elif most is not None and most <= _LARGEST:
            counts[quantity.name] = most
    return ProvenBounds(**counts, cost=cost, reply_tokens=kept.reply_tokens)


def _proven(
    plan: Plan,
    name: str,
    settings: Settings,
    calls: int,
    documents: Mapping[str, Plan],
    model: str,
    limits: Mapping[str, Value],
    priced: bool,
    one_model: bool,
    own: CallSettings,
    measured: bool,
) -> _Kept:
    foresight = Foresight(with_cap(settings, calls), documents)
    proof = foresight.proof(with_limits(plan, limits), name, model, own=own, one_model=one_model)
    numbers = quantities(
        proof, foresight.world(model).premises, rates_of(settings, model, one_model=one_model) if priced else None
    )
    changes = any(effect.tool.effect != "read" for effect in proof.effects)
    compared = {*COUNTED}
    if measured and not any(spec.startswith("script:") for spec in asked_models(proof)):
        compared |= _compared_tokens(proof, numbers, one_model=one_model)
    longest = longest_reply(proof) if "output_tokens" in compared else 0
    envelope = foresight.envelope(plan, name) if changes else None
    return _Kept(plan, settings, numbers, envelope, frozenset(compared), longest or None)


def _compared_tokens(proof: Proof, numbers: Iterable[Quantity], *, one_model: bool) -> set[str]:
    """Return the names of the bounds of tokens and money that the driver can compare."""
    names = {"output_tokens"}
    if not any(kind.startswith(WINDOW_OF) for kind in proof.cost.kinds()):
        # Services alone know the windows of their models, so a window is not a bound that the engine enforces.
        names.add("input_tokens")
    # Threads may have other models than the run, with other prices.
    has_threads = proof.plan.thread is not None or not proof.bound(THREADS).most.is_nothing
    money = [number for number in numbers if number.name == "money"]
    if (one_model or not has_threads) and all(quantity.sure and not quantity.unpriced for quantity in money):
        names.add("money")
    return names


def with_cap(settings: Settings, calls: int) -> Settings:
    """Return the settings with the number of model calls that a run may make."""
    return replace(settings, spawn=replace(settings.spawn, max_pipeline_spawns=calls))


def with_limits(plan: Plan, limits: Mapping[str, Value]) -> Plan:
    """Return a directive with the limits of the run."""
    limits = {name: value for name, value in limits.items() if name != CALLS}
    if plan.thread is None or not limits:
        return plan
    from quire.plan.nodes import Sequence as StepSequence
    from quire.plan.thread import Thread

    steps = []
    for step in plan.body.steps:
        work = step.work
        if isinstance(work, Thread):
            step = replace(step, work=replace(work, limits={**work.limits, **limits}))
        steps.append(step)
    return replace(plan, body=StepSequence(tuple(steps)))


def rates_of(
    settings: Settings, model: str, *, one_model: bool, environ: Mapping[str, str] | None = None
) -> Callable[[str], Rate]:
    """Return a function that finds the price of a model today. With `one_model` every call goes to `model`. Without
    `environ`, the environment of the process tells where providers are."""

    def rate(spec: str) -> Rate:
        import datetime
        import os

        from quire.models.prices import Unpriced, rate_of

        name = spec or (model if one_model else "")
        if not name:
            return Unpriced(name, "no model is named")
        today = datetime.datetime.now(datetime.UTC).date()
        return rate_of(name, settings.models, today, os.environ if environ is None else environ)

    return rate


def sizes_in(numbers: Iterable[Quantity]) -> set[str]:
    """Return the sizes that formulas of bounds and of estimates name."""
    amounts = [amount for quantity in numbers for amount in (quantity.most, quantity.about) if amount is not None]
    return {size for amount in amounts for size in amount.sizes}


def sizes_of(inputs: Mapping[str, Value], names: set[str]) -> dict[str, int]:
    """Return the sizes of inputs that a formula names: `|rows|`, `‖doc‖`, `|rows[].parts|`; of several the largest.
    `|ctx|` is the number of all inputs."""
    sizes = {}
    named: dict[str, Value] = {"ctx": dict(inputs), **inputs} if names else {}
    for size in names:
        values = _reached(named, size[1:-1].replace("[]", ".[]").split("."))
        if values is not None:
            sizes[size] = max(map(_items if size[0] == "|" else _bytes, values), default=0)
    return sizes


def _reached(inputs: Mapping[str, Value], parts: list[str]) -> list[Value] | None:
    """Return all values at a path; None if they are too many to look at, or the input is missing."""
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
    from quire.analysis.written_sizes import text_length, written_length

    return written_length(value) if isinstance(value, str) else text_length(written_widely(value))


class ProvenDocument(Struct, frozen=True):
    """The proof of a document, and its numbers."""

    proof: Proof
    quantities: tuple[Quantity, ...]
    premises: Premises
    model: str = ""
    """The run's own model, as far as it is known; empty if not."""
    rates: Mapping[str, Rate] = {}
    """The prices of its models, if money was counted."""

    def shares(self, name: str) -> tuple[Contribution, ...]:
        """Return the steps that make up one of its numbers."""
        from quire.analysis.contributions import completed, contributions

        shares = contributions(self.proof, name, self.rates)
        whole = next(
            (quantity for quantity in self.quantities if quantity.name == name and not quantity.unpriced), None
        )
        return completed(shares, self.proof, whole.most, whole.unit) if whole is not None and name != "time" else shares


def prove_document(
    document: Document,
    settings: Settings | None,
    *,
    model: str = "",
    today: datetime.date | None = None,
    environ: Mapping[str, str] | None = None,
) -> ProvenDocument:
    """Prove a document. With a day, money is counted in the prices of that day, which may load the list of prices."""
    from quire.analysis.money import noted_rate
    from quire.models.prices import Unpriced, rate_of

    foresight, one_model = Foresight(settings), bool(model)
    if not model and settings is not None and today is not None:
        model = _chosen_model(document, settings, environ or {})
    world = foresight.world(model)
    proof = foresight.proof(document.runnable(), document.name, model, one_model=one_model)

    def rate(spec: str, day: datetime.date) -> Rate:
        if not spec:
            return Unpriced(spec, "no model is named: --model NAME, or [models] default in quire.toml")
        if settings is None:
            return Unpriced(spec, "the settings cannot be read")
        return rate_of(spec, settings.models, day, environ or {})

    if today is None:
        return ProvenDocument(proof, quantities(proof, world.premises), world.premises, world.model)
    rates = {spec: noted_rate(rate(spec, today), today) for spec in asked_models(proof)}
    numbers = quantities(proof, world.premises, rates.__getitem__)
    return ProvenDocument(proof, numbers, world.premises, world.model, rates)


def _chosen_model(document: Document, settings: Settings, environ: Mapping[str, str]) -> str:
    """Return the model that a run would choose; empty if there is none. A local Ollama is not asked for its models."""
    from quire.errors import NoModel
    from quire.models.choose import choose_model

    thread = document.runnable().thread
    try:
        if thread is not None:
            from quire.models.tiers import thread_model

            return thread_model(thread.model, settings.models, environ, offline=True).spec
        return choose_model(None, None, settings.models, environ, offline=True).spec
    except NoModel:
        return ""


def seen_in_runs(document: Document, settings: Settings, environ: Mapping[str, str], *, ask_server: bool) -> UsageSeen:
    """Return the usage of earlier runs. A store behind a network is asked only with `ask_server`; a store that is not
    there, or cannot be read, has seen nothing."""
    from quire.runs.earlier_runs import UsageSeen, usage_seen
    from quire.runs.stored import finish_reading, store_of, store_place
    from quire.stores import file_of, is_server

    place = store_place(settings)
    if not (ask_server if is_server(place) else file_of(place).is_file()):
        return UsageSeen()

    async def look() -> UsageSeen:
        store = store_of(settings, environ)
        try:
            return await usage_seen(store, document, document.folder)
        finally:
            await store.close()

    try:
        return finish_reading(look(), place)
    except QuireError:
        return UsageSeen()


def assumed_sizes(settings: Settings | None, options: Sequence[str], seen: UsageSeen | None) -> Assumptions:
    """Return what is assumed of sizes: by options, by earlier runs if they are given, and by `[assume]`."""
    from quire.analysis.assumptions import assumptions_of

    file = settings.assume if settings is not None else {}
    if seen is None or not seen.runs:
        return assumptions_of(file, options)
    return assumptions_of(file, options, seen.assumed(), seen.told)
