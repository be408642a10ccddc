"""Prices of the models of open documents, for the lens that says what a run costs at most.

The list of prices takes long to load and much memory, so it is read in a process of its own, once a day for each model.
A lens shows no price until then, and is asked for again when there is one. A hover shows it the next time.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.lsp.jobs import Job, packed, unpacked

if TYPE_CHECKING:
    from quire.lsp.views import View
    from quire.models.choose import ModelSettings
    from quire.models.prices import Rate

MOST_KEPT = 500
"""Models whose prices are kept."""


class _Known(Struct, frozen=True):
    """The price of a model, and what it depends on."""

    day: datetime.date
    models: ModelSettings
    """The settings, which may have prices of the user's own."""
    rate: Rate | None
    """None if the process that read it died."""


class ModelPrices:
    """The prices that were asked for, by the name of the model."""

    def __init__(self, today: Callable[[], datetime.date] = datetime.date.today) -> None:
        self.on_change: Callable[[], None] = lambda: None
        """Called when lenses have more to show than before."""
        self._today = today
        self._known: dict[str, _Known] = {}
        self._wanted: dict[str, ModelSettings] = {}
        self._reading: dict[str, ModelSettings] = {}
        """The models whose prices another process reads."""

    def words(self, view: View) -> str:
        """Return the most that a run of a document costs, as `quire show` has it: `≤ $0.09`, or `unpriced` if the price
        of a model is not known. It is empty if no model is asked, and while prices are being read."""
        settings, proof = view.folder.settings, view.proof
        if settings is None or proof is None:
            return ""
        from quire.analysis.quantities import asked_models, quantities

        rates = {model: self._rate(model, settings.models) for model in asked_models(proof)}
        known = {model: rate for model, rate in rates.items() if rate is not None}
        if not known or len(known) < len(rates):
            return ""
        from quire.display.preflight_line import money_text

        found = quantities(proof, view.folder.foresight.world().premises, known.__getitem__)
        money = next((one for one in found if one.name == "money"), None)
        return "unpriced" if money is not None and money.unpriced else money_text(money, {})

    @property
    def wanted(self) -> Mapping[str, ModelSettings]:
        """The models whose prices are to be read, with their settings."""
        return self._wanted

    def want(self, models: Mapping[str, ModelSettings]) -> None:
        """Have prices read that a copy of this process has asked for, unless they were read in the meantime."""
        for model, settings in models.items():
            self._rate(model, settings)

    @property
    def is_due(self) -> bool:
        return bool(self._wanted) and not self._reading

    def next(self) -> Job | None:
        """Return the job that reads the prices which were asked for; None if there are none."""
        if not self.is_due:
            return None
        wanted = self._reading = self._wanted
        self._wanted = {}
        day = self._today()

        def take(result: bytes | None) -> None:
            self._reading = {}
            found: Mapping[str, Rate] = unpacked(result) if result is not None else {}
            for model, models in wanted.items():
                self._known.pop(model, None)
                self._known[model] = _Known(day, models, found.get(model))
            while len(self._known) > MOST_KEPT:
                del self._known[next(iter(self._known))]
            if found:
                self.on_change()

        return Job(lambda: packed(_read(wanted, day)), take)

    def _rate(self, model: str, models: ModelSettings) -> Rate | None:
        """Return the price of a model; None, and have it read, if it was not read today."""
        if not model:
            from quire.models.choose import Unpriced

            return Unpriced(model, "no model is named")
        known = self._known.get(model)
        if known is None or known.day != self._today() or known.models != models:
            if self._reading.get(model) != models:
                self._wanted[model] = models
            return None
        return known.rate


def _read(wanted: Mapping[str, ModelSettings], day: datetime.date) -> dict[str, Rate]:
    """Read the prices of models. This is done in another process."""
    from quire.analysis.rules.prices import noted_rate
    from quire.models.prices import rate_of

    return {model: noted_rate(rate_of(model, models, day, os.environ), day) for model, models in wanted.items()}
