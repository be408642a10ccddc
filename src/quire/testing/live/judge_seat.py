"""Open the judges of a live test: the file of each, its model, and whether it may fail a case."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.errors import CannotStart
from quire.models.choose import Choice
from quire.models.limits import provider_of
from quire.source import real_path
from quire.testing.live.calibration import Standing, standing_of, stored_calibration

if TYPE_CHECKING:
    from quire.engine.ports import Model
    from quire.runs.adapters import Models
    from quire.testing.live.judges import Judge


class JudgeSeat(Struct, frozen=True):
    """A judge with its model."""

    judge: Judge
    spec: str
    """The name of the model behind a tier."""
    model: Model
    standing: Standing


class JudgeSeats:
    """Opens each judge once. `tested` are the models under test: none of them may judge."""

    def __init__(self, models: Models, named: str, tested: tuple[str, ...] = ()) -> None:
        """`named` is the model that the user wants as the judge; empty for that of the file."""
        self._models = models
        self._named = named
        self._tested = tested
        self._seats: dict[str, JudgeSeat] = {}

    @property
    def taken(self) -> tuple[JudgeSeat, ...]:
        return tuple(self._seats.values())

    def seat(self, judge: Judge) -> JudgeSeat:
        """Return the seat of a judge. Raises `CannotStart`."""
        key = str(judge.path)
        if key not in self._seats:
            self._seats[key] = self._opened(judge)
        return self._seats[key]

    def _opened(self, judge: Judge) -> JudgeSeat:
        choice = self._choose(judge)
        if any(same_model(choice.spec, one) for one in self._tested):
            message = f"the judge {judge.name} cannot be {choice.spec}, which is under test: name another --judge-model"
            raise CannotStart(message)
        model = self._models.open(choice.spec, choice.settings)
        calibration = stored_calibration(judge.path) if judge.path else None
        return JudgeSeat(judge, choice.spec, model, standing_of(judge, choice.spec, calibration))

    def _choose(self, judge: Judge) -> Choice:
        if self._named:
            return self._models.choose(self._named)
        if not judge.model:
            raise CannotStart(f"the judge {judge.name} names no model: name one with --judge-model")
        known = self._models.settings.models
        spec = known.tiers.get(judge.model, judge.model)
        return self._models.choose(None, lambda: Choice(spec, "the judge", known.settings_of(judge.model)))


def same_model(spec: str, other: str) -> bool:
    """Tell whether two names mean one model: of one account by two protocols, or one file by two paths."""
    return _identity(spec) == _identity(other)


def _identity(spec: str) -> tuple[str, str]:
    kind, _, name = spec.partition(":")
    if kind == "local":
        return kind, str(real_path(Path(name))) if "/" in name or name.endswith(".gguf") else name
    if spec.startswith(("http://", "https://")):
        return "", spec
    return provider_of(spec), name.casefold()
