"""Values of the last runs of open documents, for hovers, and prices of their models, for lenses.

Both are read in a process of their own, when a document is opened or looked at; a hover and a lens show what is known
by then and never wait. Runs are read again once the store or the agreement of the user has changed, and after a while;
a price is read once a day.
"""

from __future__ import annotations

import datetime
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from quire.lsp.answers import code
from quire.lsp.jobs import Job, keep_newest, packed, unpacked
from quire.wording import cut

if TYPE_CHECKING:
    from quire.lsp.document_view import View
    from quire.models.choose import ModelSettings
    from quire.models.prices import Rate
    from quire.runs.last_values import LastValues
    from quire.values import Value


LONGEST_SHOWN = 300
MOST_KEPT_RUNS = 200
"""Documents whose last runs are kept."""
KEPT_SECONDS = 60.0
"""Values are read again after so long: files that the user has agreed to may have changed."""
JOB_SECONDS = 10.0
"""A process that reads longer is ended."""
RUNNABLE = ("playbook", "pipeline", "directive")
_MARKS = ("quire.toml", "pyproject.toml", ".mcp.json")

Stamp: TypeAlias = tuple[tuple[int, int, int], ...]


class _KnownRuns(Struct, frozen=True):
    """The values that were read of one document."""

    stamp: Stamp
    at: float
    store: str
    """The path or the address of the store. Nothing is read from behind a network."""
    values: dict[str, LastValues]
    """By the pipeline of the file; by the empty text for other documents."""


class LastRuns:
    """The last runs of the open documents, as far as they were read."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._known: dict[str, _KnownRuns] = {}
        self._wanted: dict[str, View] = {}
        self._reading = ""

    def want(self, view: View) -> None:
        """Read the last run of a document, unless that has been done and nothing has changed since."""
        if view.format not in RUNNABLE or view.path == self._reading:
            return
        runs, store = self._known.get(view.path), self._store(view)
        if runs is None and not os.path.exists(store) and not _names_store(view):  # noqa: PTH110  # for every hover
            return
        if runs is None or self.clock() - runs.at > KEPT_SECONDS or runs.stamp != _stamp(view, store):
            self._wanted[view.path] = view

    def markdown(self, view: View, way: Sequence[str], part: str = "") -> str:
        """Return the value that the last run gave to a name, with the run and its age; empty if none is known."""
        self.want(view)
        runs = self._known.get(view.path)
        last = runs.values.get(part) if runs is not None else None
        if last is None:
            return ""
        from quire.display.text import age
        from quire.runs.last_values import value_at

        for value in value_at(last, way):
            old = "" if last.sha256 == view.source.sha256 else ", before the last change of the text"
            ago = f"{age(time.time() - last.at)} ago"
            return f"Last value: {code(_shown(value))}, in run {code(last.run)}, {ago}{old}."
        return ""

    @property
    def is_due(self) -> bool:
        return bool(self._wanted) and not self._reading

    def next(self) -> Job | None:
        """Return the job that reads the next document; None if none is due."""
        if not self.is_due:
            return None
        path, view = next(iter(self._wanted.items()))
        del self._wanted[path]
        self._reading = path
        now, store = self.clock(), self._store(view)
        nothing = _KnownRuns(_stamp(view, store), now, store, {})

        def take(result: bytes | None) -> None:
            self._reading = ""
            keep_newest(self._known, path, unpacked(result) if result is not None else nothing, MOST_KEPT_RUNS)

        return Job(lambda: packed(_read_runs(view, nothing)), take, lambda: self.clock() > now + JOB_SECONDS)

    def _store(self, view: View) -> str:
        from quire.stores import DEFAULT_PATH

        runs = self._known.get(view.path)
        return runs.store if runs is not None else str(view.folder.path / DEFAULT_PATH)


def _read_runs(view: View, nothing: _KnownRuns) -> _KnownRuns:
    """Read the last runs of a document. This is done in another process."""
    from quire.runs.last_values import last_values
    from quire.runs.stored import store_place

    try:
        settings = view.folder.settings
        if settings is None:
            return nothing
        store = str(store_place(settings))
        stamp = _stamp(view, store)
        return _KnownRuns(stamp, nothing.at, store, last_values(settings, os.environ, Path(view.path), view.format))
    except Exception:  # no value and no error: a hover is not the place to hear of a broken store
        return nothing


def _names_store(view: View) -> bool:
    """Tell whether the settings may name another place for runs, without reading them."""
    return "settings" in vars(view.folder) and bool(view.folder.settings and view.folder.settings.store_url)


def _stamp(view: View, store: str) -> Stamp:
    """Return numbers that change with the store, with the settings and with the agreement of the user."""
    from quire.workspace.locate import user_space

    folder, user, store = str(view.folder.path), str(user_space()), store.removeprefix("sqlite:///")
    marks = [f"{folder}/{name}" for name in _MARKS]
    return tuple(_status(path) for path in (store, f"{store}-wal", *marks, f"{user}/trust/workspaces.json"))


def _status(path: str) -> tuple[int, int, int]:
    try:
        status = os.stat(path)  # noqa: PTH116  # for every hover
    except OSError:
        return (0, 0, 0)
    return (status.st_ino, status.st_size, status.st_mtime_ns)


def _shown(value: Value) -> str:
    from quire.display.visible import visible
    from quire.values import encode

    text = value if isinstance(value, str) else encode(value)
    return cut(visible(" ".join(text[: 4 * LONGEST_SHOWN].split())), LONGEST_SHOWN) or "(empty)"


MOST_KEPT_PRICES = 500
"""Models whose prices are kept."""


class _KnownPrice(Struct, frozen=True):
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
        self._known: dict[str, _KnownPrice] = {}
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
        priced = {model: rate for model, rate in rates.items() if rate is not None}
        if not priced or len(priced) < len(rates):
            return ""
        from quire.display.preflight_line import money_text

        amounts = quantities(proof, view.folder.foresight.world().premises, priced.__getitem__)
        money = next((quantity for quantity in amounts if quantity.name == "money"), None)
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
        settings = self._reading = self._wanted
        self._wanted = {}
        day = self._today()

        def take(result: bytes | None) -> None:
            self._reading = {}
            rates: Mapping[str, Rate] = unpacked(result) if result is not None else {}
            for model, models in settings.items():
                keep_newest(self._known, model, _KnownPrice(day, models, rates.get(model)), MOST_KEPT_PRICES)
            if rates:
                self.on_change()

        return Job(lambda: packed(_read_prices(settings, day)), take)

    def _rate(self, model: str, models: ModelSettings) -> Rate | None:
        """Return the price of a model; None, and have it read, if it was not read today."""
        if not model:
            from quire.models.choose import Unpriced

            return Unpriced(model, "no model is named")
        price = self._known.get(model)
        if price is None or price.day != self._today() or price.models != models:
            if self._reading.get(model) != models:
                self._wanted[model] = models
            return None
        return price.rate


def _read_prices(settings: Mapping[str, ModelSettings], day: datetime.date) -> dict[str, Rate]:
    """Read the prices of models. This is done in another process."""
    from quire.analysis.money import noted_rate
    from quire.models.prices import rate_of

    return {model: noted_rate(rate_of(model, models, day, os.environ), day) for model, models in settings.items()}
