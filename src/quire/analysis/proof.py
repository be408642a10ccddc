"""Prove, before a run, the most that a document can cost, touch and pass on.

`prove` walks over the plan once and returns a `Proof`: bounds as formulas in the sizes of the inputs, and the facts
that all rules, `show`, `quire.lock` and the page read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, cast, get_args

from msgspec import Struct

from quire.analysis.abstract_values import (
    BOOL,
    NULL,
    NUMBER,
    TEXT,
    AbstractValue,
    is_narrow,
    labelled_deeply,
    literal,
    outside_value,
)
from quire.analysis.costs import COUNTED, Cost
from quire.analysis.facts import ChoiceFact, EffectFact, Fact, FanFact, ModelFact, QuestionFact, StoreFact
from quire.analysis.labels import MOST_PROOFS, Integrity, Privacy, Trace, source_label
from quire.analysis.walk import Walk
from quire.schema_types import Enum

if TYPE_CHECKING:
    from typing import TypeVar

    from quire.analysis.amounts import Amount
    from quire.analysis.world import World
    from quire.plan.nodes import Input, Plan
    from quire.schema_types import FieldType
    from quire.values import Value

    F = TypeVar("F", bound="Fact")


class Bound(Struct, frozen=True):
    """How often something happens: at least in a run that completes, at most in every run."""

    least: int
    most: Amount


class Proof(Struct, frozen=True, dict=True):
    """Everything that is known of a document before it runs."""

    plan: Plan
    cost: Cost
    facts: tuple[Fact, ...]
    result: AbstractValue
    unknown: tuple[str, ...] = ()
    """Documents that are called but were not found. They can do anything."""
    missed_by: Mapping[str, str] = {}
    """For each of them, the direct call that leads to it; empty for one that the document calls itself."""
    incomplete: bool = False
    """True if the document does too much to list all of it."""

    def bound(self, kind: str) -> Bound:
        """Return the bounds of one of `COUNTED`."""
        return Bound(self.cost.at_least(kind), self.cost.amount(kind))

    @property
    def bounds(self) -> dict[str, Bound]:
        return {kind: self.bound(kind) for kind in COUNTED}

    @cached_property
    def effects(self) -> tuple[EffectFact, ...]:
        return self._all(EffectFact)

    @cached_property
    def questions(self) -> tuple[QuestionFact, ...]:
        return self._all(QuestionFact)

    @cached_property
    def model_calls(self) -> tuple[ModelFact, ...]:
        return self._all(ModelFact)

    @cached_property
    def fans(self) -> tuple[FanFact, ...]:
        return self._all(FanFact)

    @cached_property
    def choices(self) -> tuple[ChoiceFact, ...]:
        return self._all(ChoiceFact)

    @cached_property
    def stores(self) -> tuple[StoreFact, ...]:
        return self._all(StoreFact)

    def _all(self, kind: type[F]) -> tuple[F, ...]:
        """Return the facts of a kind."""
        return cast("tuple[F, ...]", tuple(self._by_kind[kind]))

    @cached_property
    def _by_kind(self) -> Mapping[type, list[Fact]]:
        """All facts by their kinds. They are looked through once, however many rules ask for some of them."""
        facts: dict[type, list[Fact]] = {kind: [] for kind in get_args(Fact)}
        for fact in self.facts:
            facts[fact.__class__].append(fact)
        return facts


def prove(
    plan: Plan, world: World, inputs: Mapping[str, AbstractValue] | None = None, pipe: AbstractValue = NULL
) -> Proof:
    """Return the proof of a document. `inputs` replaces what is known of inputs by their declaration alone; `pipe` is
    the value that the first step gets."""
    walk = Walk(world)
    values = {**input_values(plan), **(inputs or {})}
    walked = walk.document(plan, values, pipe)
    for proofs in range(1, MOST_PROOFS + 1):
        if not walk.contents.has_more:
            break
        walk = Walk(world, walk.contents.again(everywhere=proofs == MOST_PROOFS))
        walked = walk.document(plan, values, pipe)
    return Proof(plan, walked.cost, walked.facts, walked.result, tuple(walk.unknown), walk.unknown, walk.incomplete)


def given_values(plan: Plan, inputs: Mapping[str, Value]) -> dict[str, AbstractValue]:
    """Return the inputs of a run as they are. The caller has chosen them; nothing is known of those left out."""
    declared = input_values(plan)
    values = {}
    for name, value in inputs.items():
        known = declared[name] if name in declared else _input(name, None)
        values[name] = labelled_deeply(literal(value), known.label)
    return values


def outside_values(plan: Plan, names: Iterable[str]) -> dict[str, AbstractValue]:
    """Return inputs that get text from outside, such as the body of a webhook."""
    declared, values = input_values(plan), {}
    for name in names:
        value = declared.get(name) or _input(name, None)
        label = source_label(Integrity.OUTSIDE, Privacy.PUBLIC, Trace(name))
        values[name] = labelled_deeply(value, label.narrowed() if is_narrow(value.type) else label)
    return values


def earlier_value() -> AbstractValue:
    """Return the value of a step before the first one of the plan, of which nothing is known."""
    return _input("pipe", None)


def input_values(plan: Plan) -> dict[str, AbstractValue]:
    """Return what is known of the inputs of a document by their declaration. The caller has chosen them."""
    if plan.declared is not None:
        return {field.name: _input(field.name, field.type, enforced=True) for field in plan.declared}
    if plan.infers_inputs:
        return {}  # the walk takes every name that no step has written for an input
    if plan.thread is not None:
        return {parameter.name: _input(parameter.name, None) for parameter in plan.thread.inputs}
    return {declared.name: _input(declared.name, _playbook_type(declared), enforced=True) for declared in plan.inputs}


def _input(name: str, type: FieldType | None, *, enforced: bool = False) -> AbstractValue:
    label = source_label(Integrity.CALLER, Privacy.PUBLIC, Trace(name))
    return outside_value(name, type, label.narrowed() if enforced and is_narrow(type) else label)


def _playbook_type(declared: Input) -> FieldType:
    """Return the type of an input of a playbook, which a start holds its values to."""
    if declared.type == "enum" and declared.options:
        return Enum(declared.options)
    return {"number": NUMBER, "boolean": BOOL}.get(declared.type, TEXT)
