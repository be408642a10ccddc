"""Check which stores the steps of a pipeline read and write, and look again only at steps whose stores have changed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Protocol

from msgspec.structs import replace

from quire.formats.pipeline.check_inputs import InputCheck
from quire.formats.pipeline.check_stores import StoreCheck
from quire.formats.pipeline.inputs import UseWalk, Written
from quire.formats.pipeline.known_steps import MOST_KINDS, NOTHING, Found, KnownStep, PlacedSteps, StoreFlow
from quire.formats.pipeline.step_facts import StepFacts, read_as_a_whole
from quire.text_diff import common_prefix, common_suffix

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
        self._before = placed.memory.stores
        self._new = _new_steps(self._before, placed.known)
        """The steps that have to be looked at."""
        if len(self._new) < len(placed.known):
            before = self._before
            self._begins, self._first = before.begins, before.first
            self._inner, self._any_store = before.inner, before.any_store
        else:
            self._begins, self._first = _written(placed.known)
            self._inner = frozenset(name for one in placed.facts for name in one.inner)
            self._any_store = "any store" in placed.traits
        self._certain: dict[str, int] = {}
        self._counted = 0
        """The number of the steps whose stores are in `_certain`."""

    def check(self) -> None:
        """Make the checks of `check_stores` about places that read."""
        check = StoreCheck(self._placed.pipeline, self._inner, self._any_store, self._check.fields)
        suggestions, silent, before, new = self._check.fields.suggestions, -1, self._before, self._new
        known: list[Found | None] = []
        for at in range(len(self._placed.known)):
            if silent < 0 and not suggestions.are_left:
                silent = at
            found = None if at in new or (silent < 0 and at >= before.silent) else before.found[at]
            if found is None or (found.asked and not suggestions.ask_again(found.asked)):
                found = self._look_at(at, check, is_silent=silent >= 0)
            elif found.diagnostics:
                self._check.replay(found, self._placed.cut.part.span(at))
            known.append(found)
        silent = silent if silent >= 0 else len(known)
        self._placed.memory.stores = StoreFlow(
            self._placed.known, known, silent, self._begins, self._first, self._inner, self._any_store
        )

    def _look_at(self, at: int, check: StoreCheck, *, is_silent: bool) -> Found | None:
        """Check one step. Return the findings; None if they must not be kept. If it is silent, nothing is said about
        names that no step writes."""
        facts, declared = self._placed.facts[at], check.declared or ()
        pending: list[str] = []
        if not self._any_store:
            certain = self._certain_before(at)
            pending = [name for name in facts.reads if name not in certain and name not in declared]
        if is_silent:
            pending = [name for name in pending if name in self._first or name in self._inner]
        return self._check_step(at, pending, check) if pending or facts.is_unbound else NOTHING

    def _certain_before(self, at: int) -> dict[str, int]:
        """Return the stores that are certainly written before a step. Steps are asked for in their order."""
        facts, begins = self._placed.facts, self._begins
        for number in range(self._counted, at):
            for name, ends in facts[number].certain:
                self._certain.setdefault(name, begins[number] + ends)
        self._counted = at
        return self._certain

    def _check_step(self, at: int, pending: Collection[str], check: StoreCheck) -> Found | None:
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
        if not states and not one.facts.is_unbound and not one.facts.inner:
            suggest = partial(self._suggest, at, pending, check)
            found, _ = self._check.run(suggest, self._placed.cut.part.span(at))
            all_asked = -1 not in found.asked and self._check.fields.suggestions.are_left
            return found if all_asked else None
        # The label of a store that the step itself writes has the number of the step.
        number = at if one.facts.inner or any(state[1] == "here" for state in states) else -1
        key = (number, *states)
        if not suggests and one.stores is not None and (kept := one.stores.get(key)):
            self._check.replay(kept, self._placed.cut.part.span(at))
            return kept
        uses = self._uses(at, self._certain_before(at))
        found, is_kept = self._check.run(partial(check.uses, uses), self._placed.cut.part.span(at))
        if not is_kept or suggests:
            return None
        if one.stores is None or len(one.stores) >= MOST_KINDS:
            one.stores = {}
        one.stores[key] = found
        return found

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
        if "hole" not in placed.traits:
            check.report_unread(self._unread(check.names))
        check.report_hidden()

    def _is_written(self, name: str, at: int) -> bool:
        found = self._first.get(name)
        return found is not None and found.ends < self._begins[at]

    def _unread(self, names: Mapping[str, object]) -> list[str]:
        """Return the inputs that no step reads, as `unread_inputs` does."""
        facts = self._placed.facts
        if "prompt file" in self._placed.traits or read_as_a_whole(facts):
            return []
        read: set[str] = set()
        for at, one in enumerate(facts):
            for name in one.all_reads & names.keys():
                if name not in one.inner:
                    read |= {name} if not self._is_written(name, at) else set()
                elif any(use.store == name and not use.written(name) for use in self._uses(at, {})):
                    read.add(name)
        return [name for name in names if name not in read]


def _new_steps(before: StoreFlow, known: list[KnownStep]) -> range:
    """Return the steps that have changed since the flow before; all of them if this changes which stores are written
    when."""
    everything = range(len(known))
    if len(known) != len(before.known):
        return everything
    start = common_prefix(before.known, known, len(known))
    end = len(known) - common_suffix(before.known, known, len(known) - start)
    both = zip(before.known[start:end], known[start:end], strict=True)
    return range(start, end) if all(_writes_the_same(old.facts, new.facts) for old, new in both) else everything


def _writes_the_same(old: StepFacts, new: StepFacts) -> bool:
    is_same = (old.numbers, old.writes, old.certain, old.inner) == (new.numbers, new.writes, new.certain, new.inner)
    return is_same and ("any store" in old.traits) is ("any store" in new.traits)


def _written(known: Iterable[KnownStep]) -> tuple[list[int], dict[str, Written]]:
    """Return the number at which each step begins, and where each store is first written."""
    begins: list[int] = []
    first: dict[str, Written] = {}
    number = 0
    for label, one in enumerate(known, 1):
        for name, written in one.writes_at(label, number):
            before = first.get(name)
            if before is None or before.ends > written.ends:
                first[name] = written
        begins.append(number)
        number += one.facts.numbers
    return begins, first
