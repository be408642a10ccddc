"""Check which stores the steps of a pipeline read and write, and look again only at steps whose stores have changed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Protocol

from msgspec.structs import replace

from quire.formats.pipeline.check_inputs import InputCheck
from quire.formats.pipeline.check_stores import StoreCheck
from quire.formats.pipeline.inputs import UseWalk, Written
from quire.formats.pipeline.known_steps import MOST_KINDS, Found, PlacedSteps
from quire.formats.pipeline.step_facts import read_as_a_whole

if TYPE_CHECKING:
    from quire.formats.pipeline.fields import Fields
    from quire.formats.pipeline.inputs import Use
    from quire.source import Span


class StepCheck(Protocol):
    """Makes checks of single steps, and puts their findings to their places."""

    @property
    def fields(self) -> Fields: ...

    def run(self, check: Callable[[], object], at: Span) -> tuple[Found, bool]:
        """Make a check. Return the findings, and whether they may be kept."""
        ...

    def replay(self, found: Found, at: Span) -> None:
        """Report findings that were kept."""
        ...


class IncrementalStores:
    """Checks which stores the steps of one pipeline read and write, and when."""

    def __init__(self, placed: PlacedSteps, check: StepCheck) -> None:
        self._placed = placed
        self._check = check
        self._inner = {name for one in placed.facts for name in one.inner}
        self._any_store = any(one.writes_any for one in placed.facts)
        self._begins: list[int] = []
        """The number at which each step begins."""
        self._first: dict[str, Written] = {}
        number = 0
        first = self._first
        for label, one in enumerate(placed.known, 1):
            for name, written in one.writes_at(label, number):
                before = first.get(name)
                if before is None or before.ends > written.ends:
                    first[name] = written
            self._begins.append(number)
            number += one.facts.numbers
        self._certain: dict[str, int] = {}
        self._counted = 0
        """The number of the steps whose stores are in `_certain`."""

    def check(self) -> None:
        """Make the checks of `check_stores` about places that read."""
        check = StoreCheck(self._placed.pipeline, self._inner, self._any_store, self._check.fields)
        suggestions, is_silent = self._check.fields.suggestions, False
        harmless = set(check.declared or ())
        for at, facts in enumerate(self._placed.facts):
            if not is_silent and not suggestions.are_left:
                is_silent = True
                # Nothing more is said about names that no step writes.
                harmless |= self._never_written()
            if facts.is_unbound or not facts.reads <= harmless:
                pending = () if self._any_store else facts.reads - harmless
                if pending or facts.is_unbound:
                    self._check_step(at, pending, check)
            for name, _ in facts.certain:
                harmless.add(name)

    def _certain_before(self, at: int) -> dict[str, int]:
        """Return the stores that are certainly written before a step. Steps are asked for in their order."""
        for number in range(self._counted, at):
            for name, ends in self._placed.facts[number].certain:
                self._certain.setdefault(name, self._begins[number] + ends)
        self._counted = at
        return self._certain

    def _check_step(self, at: int, pending: Collection[str], check: StoreCheck) -> None:
        one, begins = self._placed.known[at], self._begins[at]
        states: list[tuple[str, ...]] = []
        suggests = False
        for name in sorted(pending):
            written = self._first.get(name)
            if written is None:
                if name in self._inner:
                    states.append((name, "inside"))
                else:
                    suggests = True
            elif written.ends < begins:
                states.append((name, "perhaps", written.label, written.when))
            elif written.begins >= begins + one.facts.numbers:
                states.append((name, "later", written.label))
            else:
                states.append((name, "here"))
        if not states and not one.facts.is_unbound:
            if not suggests:
                return
            if not one.facts.inner:
                self._check.run(partial(self._suggest, at, pending, check), self._placed.cut.part.span(at))
                return
        # The label of a store that the step itself writes has the number of the step.
        number = at if one.facts.inner or any(state[1] == "here" for state in states) else -1
        key = (number, *states)
        if not suggests and (kept := one.stores.get(key)):
            self._check.replay(kept, self._placed.cut.part.span(at))
            return
        uses = self._uses(at, self._certain_before(at))
        found, is_kept = self._check.run(partial(check.uses, uses), self._placed.cut.part.span(at))
        if is_kept and not suggests:
            if len(one.stores) >= MOST_KINDS:
                one.stores.clear()
            one.stores[key] = found

    def _suggest(self, at: int, pending: Collection[str], check: StoreCheck) -> None:
        """Look for the names that were meant by those that a step reads and no step writes, in the order of the places.
        Steps inside of it write nothing, so they see the same stores."""
        one, begins = self._placed.known[at], self._begins[at]
        if one.reading is None:
            walk = UseWalk(self._placed.common)
            walk.count(one.piece.step, "")
            found = walk.step(one.piece.step, self._placed.common, {}, {})
            one.reading = tuple(use for use in found if not use.optional and use.store is not None)
        for use in one.reading:
            if use.store in pending:
                check.use(replace(use, index=begins + use.index, first=self._first))

    def _never_written(self) -> set[str]:
        found = {name for one in self._placed.facts for name in one.reads}
        return found - self._first.keys() - self._inner

    def _uses(self, at: int, certain: dict[str, int]) -> Iterator[Use]:
        """Yield the places of a step that read. `certain` are the stores that are certainly written before."""
        step, common = self._placed.cut.steps[at], self._placed.common
        walk = UseWalk(common, self._begins[at])
        walk.count(step, str(at + 1))
        return walk.step(step, common, self._first, certain)

    def check_inputs(self) -> None:
        """Make the checks of `check_inputs`."""
        placed, fields = self._placed, self._check.fields
        check = InputCheck(placed.pipeline, self._inner, self._any_store, fields)
        harmless = {name for name in check.declared if not check.may_be_missing(name)}
        for at, facts in enumerate(placed.facts):
            if any(not self._is_written(name, at) for name in facts.all_reads - harmless):
                self._check.run(partial(check.uses, self._uses(at, {})), placed.cut.part.span(at))
        if not any(one.has_hole for one in placed.facts):
            check.report_unread(self._unread(check.names))
        check.report_hidden()

    def _is_written(self, name: str, at: int) -> bool:
        found = self._first.get(name)
        return found is not None and found.ends < self._begins[at]

    def _unread(self, names: Mapping[str, object]) -> list[str]:
        """Return the inputs that no step reads, as `unread_inputs` does."""
        facts = self._placed.facts
        if any(one.has_prompt_file for one in facts) or read_as_a_whole(facts):
            return []
        read: set[str] = set()
        for at, one in enumerate(facts):
            for name in one.all_reads & names.keys():
                if name not in one.inner:
                    read |= {name} if not self._is_written(name, at) else set()
                elif any(use.store == name and not use.written(name) for use in self._uses(at, {})):
                    read.add(name)
        return [name for name in names if name not in read]
