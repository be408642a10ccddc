"""What a user agrees to after the start of a run: other limits of its thread, another budget.

A run never changes what it has pinned, so this stands in its journal. It holds until something else is given, in
whatever process the run goes on. Nothing that is recorded is refused for it: only what is performed has limits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import cast

from quire.engine.record_shapes import has_shape
from quire.engine.records import EffectRecord
from quire.runtime.options import checked_budget
from quire.runtime.pins import Pins
from quire.values import Value

PATH = "terms"
"""Where it stands. No step is at such a place, and no walk asks for it."""


def agreed(pins: Pins, records: Iterable[EffectRecord]) -> Pins:
    """The pins of a run with what was given since."""
    found = next((record for record in records if record.path == PATH), None)
    if found is None or not has_shape(found):
        return pins
    given = cast("Mapping[str, Value]", found.value)
    limits = cast("Mapping[str, Value]", given["limits"])
    return replace(pins, limits=limits, budget=cast("float | None", given.get("budget")))


def with_given(pins: Pins, limits: Mapping[str, Value], budget: float | None) -> Pins:
    """Raises `CannotStart` for a budget that is none."""
    budget = pins.budget if checked_budget(budget) is None else budget
    return replace(pins, limits={**pins.limits, **limits}, budget=budget)


def record_of(pins: Pins, now: float) -> EffectRecord:
    """Nothing was asked for, so there is no request to compare."""
    return EffectRecord(PATH, "terms", "ok", "", now, {"limits": dict(pins.limits), "budget": pins.budget})
