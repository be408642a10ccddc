"""Put the facts of a callee in the place of a call.

A callee is walked once for each kind of arguments. Each call asks its own questions: they are made anew for it, and the
answers among the values of the callee follow.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from quire.analysis.facts import ChoiceFact, Condition, EffectFact, Fact, FanFact, ModelFact, QuestionFact, StoreFact
from quire.plan.ways import JOINT

if TYPE_CHECKING:
    from quire.analysis.abstract_values import AbstractValue
    from quire.analysis.facts import Place
    from quire.analysis.scope import Scope
    from quire.plan.nodes import Step

_DEEPEST = 100
"""Levels of values in each other that answers are followed through."""


class CallSite:
    """One call, and the questions that it asks in place of those that were found in the callee."""

    def __init__(self, scope: Scope, step: Step, facts: Iterable[Fact]) -> None:
        self._scope = scope
        self._step = step
        self._depth = 0
        self._questions: dict[int, QuestionFact] = {}
        self._values: dict[int, AbstractValue] = {}
        self._conditions: dict[int, Condition] = {}
        for fact in facts:
            if isinstance(fact, QuestionFact):
                fans = (*scope.fans, *self._fans(fact.fans))
                self._questions[id(fact)] = replace(fact, place=self._place(fact.place), fans=fans)

    def _place(self, place: Place) -> Place:
        return replace(place, way=f"{self._scope.way}{self._step.label}{JOINT}{place.way}", site=self._step.span)

    def _fans(self, fans: tuple[Place, ...]) -> tuple[Place, ...]:
        return tuple(map(self._place, fans)) if fans else ()

    def fact(self, fact: Fact) -> Fact:
        """Return a fact of the callee as one of the calling document."""
        scope = self._scope
        match fact:
            case EffectFact():
                return replace(
                    fact,
                    place=self._place(fact.place),
                    arguments={name: self.value(one) for name, one in fact.arguments.items()},
                    conditions=(*scope.conditions, *self.conditions(fact.conditions)),
                    asked=(*scope.asked, *self.questions(fact.asked)),
                    fans=(*scope.fans, *self._fans(fact.fans)),
                    often=fact.often.times(scope.often),
                )
            case ModelFact():
                return replace(
                    fact,
                    place=self._place(fact.place),
                    conditions=(*scope.conditions, *self.conditions(fact.conditions)),
                    fans=(*scope.fans, *self._fans(fact.fans)),
                    often=fact.often.times(scope.often),
                )
            case QuestionFact():
                return self._questions[id(fact)]
            case FanFact() | StoreFact() | ChoiceFact():
                return replace(fact, place=self._place(fact.place))

    def questions(self, asked: Iterable[QuestionFact]) -> tuple[QuestionFact, ...]:
        return tuple(self._questions.get(id(one), one) for one in asked)

    def conditions(self, conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
        return tuple(map(self._condition, conditions)) if self._questions else conditions

    def _condition(self, condition: Condition) -> Condition:
        known = self._conditions.get(id(condition))
        if known is None:
            reads = {name: self.value(one) for name, one in condition.reads.items()}
            subject = self.value(condition.subject) if condition.subject is not None else None
            known = self._conditions[id(condition)] = replace(condition, reads=reads, subject=subject)
        return known

    def value(self, value: AbstractValue) -> AbstractValue:
        """Return a value of the callee with the answers of this call."""
        if not self._questions:
            return value
        known = self._values.get(id(value))
        if known is None:
            if self._depth == _DEEPEST:
                return replace(value.unanswered(), fields={}, element=None)
            self._depth += 1
            known = self._values[id(value)] = self._followed(value)
            self._depth -= 1
        return known

    def _followed(self, value: AbstractValue) -> AbstractValue:
        changed = value
        if value.answer is not None and id(value.answer) in self._questions:
            changed = replace(changed, answer=self._questions[id(value.answer)])
        if value.computed is not None:
            reads = {name: self.value(one) for name, one in value.computed.reads.items()}
            changed = replace(changed, computed=replace(value.computed, reads=reads))
        if value.choices:
            changed = replace(changed, choices=tuple(map(self.value, value.choices)))
        if value.fields:
            changed = replace(changed, fields={name: self.value(one) for name, one in value.fields.items()})
        if value.element is not None:
            changed = replace(changed, element=self.value(value.element))
        return changed
