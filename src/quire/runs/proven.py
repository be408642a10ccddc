"""The proof of a document in its workspace, with prices, and with the numbers of its earlier runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.analysis.money import noted_rate
from quire.analysis.quantities import Quantity, asked_models, quantities
from quire.errors import QuireError
from quire.library.foresight import Foresight
from quire.models.prices import Unpriced, rate_of
from quire.runs.earlier_runs import UsageSeen, usage_seen

if TYPE_CHECKING:
    import datetime

    from quire.analysis.assumptions import Assumptions
    from quire.analysis.contributions import Contribution
    from quire.analysis.proof import Proof
    from quire.engine.premises import Premises
    from quire.library.document import Document
    from quire.models.prices import Rate
    from quire.workspace.settings import Settings


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

        found = contributions(self.proof, name, self.rates)
        whole = next(
            (quantity for quantity in self.quantities if quantity.name == name and not quantity.unpriced), None
        )
        return completed(found, self.proof, whole.most, whole.unit) if whole is not None and name != "time" else found


def prove_document(
    document: Document,
    settings: Settings | None,
    *,
    model: str = "",
    today: datetime.date | None = None,
    environ: Mapping[str, str] | None = None,
) -> ProvenDocument:
    """Prove a document. With a day, money is counted in the prices of that day, which may load the list of prices."""
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
    found = quantities(proof, world.premises, rates.__getitem__)
    return ProvenDocument(proof, found, world.premises, world.model, rates)


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
    from quire.runs.stored import finish_reading, store_of, store_place
    from quire.stores import is_server

    place = store_place(settings)
    if is_server(place) and not ask_server:
        return UsageSeen()
    if not is_server(place) and not _exists(str(place)):
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


def _exists(place: str) -> bool:
    from pathlib import Path

    scheme, separator, rest = place.partition("://")
    return Path(rest[1:] if separator else scheme).is_file()


def assumed_sizes(settings: Settings | None, options: Sequence[str], seen: UsageSeen | None) -> Assumptions:
    """Return what is assumed of sizes: by options, by earlier runs if they are given, and by `[assume]`."""
    from quire.analysis.assumptions import assumptions_of

    file = settings.assume if settings is not None else {}
    if seen is None or not seen.runs:
        return assumptions_of(file, options)
    return assumptions_of(file, options, seen.assumed(), seen.told)
