"""Check the types that flow through the steps of a pipeline, and look again only at steps whose types have changed."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from operator import is_
from typing import TYPE_CHECKING

from quire.formats.pipeline.known_steps import MOST_KINDS, FoundTypes, KnownStep, PlacedSteps, TypeFlow
from quire.formats.pipeline.known_types import KnownTypes
from quire.text_diff import common_prefix, common_suffix

if TYPE_CHECKING:
    from quire.formats.pipeline.check_types import TypeWalker
    from quire.formats.pipeline.incremental_stores import StepCheck
    from quire.formats.pipeline.syntax import Step
    from quire.schema import FieldType

_ABSENT = object()
"""Stands for the type of a store that no step has written."""


class IncrementalTypes:
    """Checks the types of one pipeline. `types` has one object for each type, so that types are compared by their
    identity."""

    def __init__(self, placed: PlacedSteps, check: StepCheck, types: dict[str, FieldType]) -> None:
        self._placed = placed
        self._check = check
        self._types = types
        self._found: list[FoundTypes | None] = []
        self._pipe: FieldType | None = None
        self._stores: dict[str, FieldType | None] = {
            one.name: self._same(one.type) for one in placed.pipeline.input or ()
        }

    def check(self, walker: TypeWalker) -> None:
        """Make the checks of `check_types`. Inputs and schemas are those of the flow before: when they change, nothing
        is known."""
        known, before = self._placed.known, self._placed.memory.flow
        start, end = _same_steps(before, known)
        self._reuse(before, 0, start)
        if start < len(known):
            for one, found in zip(known[:start], before.found[:start], strict=True):
                self._follow(one, found)
            old, new = before.known[start : len(before.known) - end], known[start : len(known) - end]
            expected = self._expected(old, before.found[start : len(before.known) - end], new) if end else None
            for at in range(start, len(known) - end):
                self._step(at, walker)
            if expected is not None and self._state(expected[1]) == expected:
                self._reuse(before, len(before.known) - end, len(before.known))
            else:
                for at in range(len(known) - end, len(known)):
                    self._step(at, walker)
        open = [at for at, one in enumerate(self._found) if one is None]
        self._placed.memory.flow = TypeFlow(known, self._found, open)

    def _reuse(self, before: TypeFlow, start: int, end: int) -> None:
        """Report the findings of steps to which nothing has happened."""
        by = len(self._found) - start
        for at in range(start, end):
            one = before.found[at]
            if one is not None and one.found.diagnostics:
                self._check.replay(one.found, self._placed.cut.part.span(at + by))
        self._found += before.found[start:end]

    def _follow(self, one: KnownStep, found: FoundTypes | None) -> None:
        """Go on to the types behind a step."""
        if found is not None:
            self._pipe = found.result
            for name, type in zip(one.facts.kept, found.after, strict=True):
                self._stores[name] = type

    def _expected(
        self, old: list[KnownStep], found: list[FoundTypes | None], new: list[KnownStep]
    ) -> tuple[int, dict[str, int]] | None:
        """Return the types that were behind the old steps, as `_state` does, for all stores that the old and the new
        steps write; None if they are not known."""
        names = dict.fromkeys(name for one in (*old, *new) for name in one.facts.kept)
        pipe, types = self._state(names)
        for one, types_found in zip(old, found, strict=True):
            if types_found is None:
                return None
            pipe = id(types_found.result)
            types |= zip(one.facts.kept, map(id, types_found.after), strict=True)
        return pipe, types

    def _state(self, names: Iterable[str]) -> tuple[int, dict[str, int]]:
        """Return the identities of the types of the pipe and of some stores."""
        return id(self._pipe), {name: id(self._stores.get(name, _ABSENT)) for name in names}

    def _same(self, type: FieldType | None) -> FieldType | None:
        return None if type is None else self._types.setdefault(repr(type), type)

    def _step(self, at: int, walker: TypeWalker) -> None:
        one, stores = self._placed.known[at], self._stores
        facts = one.facts
        before = (self._pipe, *[stores.get(name, _ABSENT) for name in facts.types])
        calls = "calls" in facts.traits
        kept = None if calls else next((types for types in one.types if all(map(is_, types.before, before))), None)
        if kept is not None:
            if kept.found.diagnostics:
                self._check.replay(kept.found, self._placed.cut.part.span(at))
            self._follow(one, kept)
            self._found.append(kept)
            return
        result: list[FieldType | None] = []
        step, scope = self._placed.cut.steps[at], KnownTypes(stores, self._pipe, {})
        found, is_kept = self._check.run(partial(_collect, result, walker, step, scope), self._placed.cut.part.span(at))
        self._pipe = self._same(result[0])
        for name in facts.kept:
            stores[name] = self._same(stores.get(name))
        if not is_kept or calls:
            self._found.append(None)
            return
        kept = FoundTypes(found, before, self._pipe, tuple(stores[name] for name in facts.kept))
        one.types = [*one.types[1 - MOST_KINDS :], kept]
        self._found.append(kept)


def _same_steps(before: TypeFlow, known: list[KnownStep]) -> tuple[int, int]:
    """Return how many steps at the beginning and at the end are those of the flow before, and have not to be looked at
    again."""
    most = min(len(before.known), len(known))
    start = common_prefix(before.known, known, min(most, before.open[0]) if before.open else most)
    last = before.open[-1] if before.open else -1
    end = common_suffix(before.known, known, min(most - start, len(before.known) - 1 - last))
    return start, end


def _collect(results: list[FieldType | None], walker: TypeWalker, step: Step, scope: KnownTypes) -> None:
    results.append(walker.step(step, scope))
