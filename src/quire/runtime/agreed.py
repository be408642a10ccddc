"""What a user agrees to after the start of a run: another budget, model or limits, answers, stops, nobody to ask.

A run never changes what it has pinned, so this stands in its journal. It holds until something else is given, in
whatever process the run goes on. Nothing that is recorded is refused for it: only what is performed has limits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import cast

from quire.engine.record_shapes import has_shape
from quire.engine.records import EffectRecord
from quire.runtime.options import checked_budget
from quire.runtime.pin_shapes import SHAPES
from quire.runtime.pins import Pins
from quire.values import Value

PATH = "terms"
"""Where it stands. No step is at such a place, and no walk asks for it."""

_FURTHER = ("instead", "answers", "unattended", "breakpoints")
"""Pins that are recorded only where something else was given: 0.1.0 recorded limits and the budget alone."""


@dataclass(frozen=True, slots=True)
class Given:
    """What is given when a run goes on. `unlimited` takes its budget away; `model` is asked in place of every other."""

    limits: Mapping[str, Value] = field(default_factory=dict)
    budget: float | None = None
    unlimited: bool = False
    model: str = ""
    answers: Mapping[str, str] = field(default_factory=dict)
    unattended: bool = False
    breakpoints: tuple[str, ...] = ()


def agreed(pins: Pins, records: Iterable[EffectRecord]) -> Pins:
    """The pins of a run with what was given since."""
    found = next((record for record in records if record.path == PATH), None)
    if found is None or not has_shape(found):
        return pins
    given = cast("Mapping[str, Value]", found.value)
    limits = cast("Mapping[str, Value]", given["limits"])
    pins = replace(pins, limits=limits, budget=cast("float | None", given.get("budget")))
    further = {name: given[name] for name in _FURTHER if name in given and SHAPES[name](given[name])}
    if "breakpoints" in further:
        further["breakpoints"] = tuple(cast("list[str]", further["breakpoints"]))
    return replace(pins, **further)  # type: ignore[arg-type]  # of the shapes that the pins have


def with_given(pins: Pins, given: Given) -> Pins:
    """Raises `CannotStart` for a budget that is none."""
    budget = pins.budget if checked_budget(given.budget) is None else given.budget
    return replace(
        pins,
        limits={**pins.limits, **given.limits},
        budget=None if given.unlimited else budget,
        instead=given.model or pins.instead,
        answers={**pins.answers, **given.answers},
        unattended=pins.unattended or given.unattended,
        breakpoints=tuple(dict.fromkeys((*pins.breakpoints, *given.breakpoints))),
    )


def record_of(pins: Pins, start: Pins, now: float) -> EffectRecord:
    """`start` are the pins of the start. Nothing was asked for, so there is no request to compare."""
    value: dict[str, Value] = {"limits": dict(pins.limits), "budget": pins.budget}
    now_and_then = ((name, pins.as_json()[name], start.as_json()[name]) for name in _FURTHER)
    value |= {name: as_now for name, as_now, as_then in now_and_then if as_now != as_then}
    return EffectRecord(PATH, "terms", "ok", "", now, value)
