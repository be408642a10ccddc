"""Put the facts of a called document in the place of a call.

A called document is walked once for each kind of arguments. Each call asks its own questions: they are made anew for
it, and the answers among the values of the called document follow. So do the ways of text from outside and of private
text, whose steps get the way to the called document in front.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from quire.analysis.amounts import endless
from quire.analysis.costs import Cost
from quire.analysis.facts import ChoiceFact, Condition, EffectFact, Fact, FanFact, ModelFact, QuestionFact, StoreFact
from quire.analysis.labels import OUTSIDE, PRIVATE
from quire.plan.vocabulary import JOINT

if TYPE_CHECKING:
    from quire.analysis.abstract_values import AbstractValue
    from quire.analysis.amounts import Amount, Reason
    from quire.analysis.facts import Place
    from quire.analysis.labels import Label, Trace
    from quire.analysis.scope import Scope
    from quire.plan.nodes import Step

_DEEPEST = 100
"""Levels of values in each other that answers are followed through."""


class CallSite:
    """One call, and the questions that it asks in place of those that were found in the called document."""

    def __init__(self, scope: Scope, step: Step, facts: Iterable[Fact], entered: Mapping[int, Trace]) -> None:
        """`entered` are the ways of values into the called document, by identity: their steps are not its own."""
        self._scope = scope
        self._step = step
        self._entered = entered
        self._depth = 0
        self._traces: dict[int, Trace] = {}
        self._questions: dict[int, QuestionFact] = {}
        self._values: dict[int, AbstractValue] = {}
        self._conditions: dict[int, Condition] = {}
        for fact in facts:
            if isinstance(fact, QuestionFact):
                fans = (*scope.fans, *self._fans(fact.fans))
                self._questions[id(fact)] = replace(
                    fact,
                    place=self._place(fact.place),
                    fans=fans,
                    often=fact.often.times(scope.often),
                    in_an_arm=fact.in_an_arm or bool(scope.conditions),
                )

    def _place(self, place: Place) -> Place:
        return replace(place, way=self._way(place.way), site=self._step.span)

    def _way(self, way: str) -> str:
        return f"{self._scope.way}{self._step.label}{JOINT}{way}"

    def cost(self, cost: Cost) -> Cost:
        """Return the cost of the called document, whose reasons for infinite amounts name the way to their steps."""
        if not cost.endless:
            return cost
        placed = Cost()
        placed.add(cost)
        placed.endless = {kind: self._reasons(reasons) for kind, reasons in cost.endless.items()}
        return placed

    def _reasons(self, reasons: tuple[Reason, ...]) -> tuple[Reason, ...]:
        return tuple(replace(reason, step=self._way(reason.step)) if reason.step else reason for reason in reasons)

    def _amount(self, amount: Amount) -> Amount:
        return endless(*self._reasons(amount.reasons)) if amount.is_endless else amount

    def label(self, label: Label) -> Label:
        """Return a label of the called document with the ways of this call."""
        if not _has_way(label):
            return label
        return replace(
            label,
            trace=self._trace(label.trace),
            chosen_trace=self._trace(label.chosen_trace),
            private_trace=self._trace(label.private_trace),
        )

    def _trace(self, trace: Trace | None) -> Trace | None:
        own: list[Trace] = []
        at = trace
        while at is not None and id(at) not in self._entered and id(at) not in self._traces:
            own.append(at)
            at = at.before
        placed = at if at is None or id(at) in self._entered else self._traces[id(at)]
        for place in reversed(own):
            placed = replace(place, step=self._way(place.step) if place.step else "", before=placed)
            self._traces[id(place)] = placed
        return placed

    def _fans(self, fans: tuple[Place, ...]) -> tuple[Place, ...]:
        return tuple(map(self._place, fans)) if fans else ()

    def fact(self, fact: Fact) -> Fact:
        """Return a fact of the called document as one of the calling document."""
        scope = self._scope
        match fact:
            case EffectFact():
                return replace(
                    fact,
                    place=self._place(fact.place),
                    arguments={name: self.value(value) for name, value in fact.arguments.items()},
                    chooser=self.label(fact.chooser),
                    conditions=(*scope.conditions, *self.conditions(fact.conditions)),
                    asked=(*scope.asked, *self.questions(fact.asked)),
                    fans=(*scope.fans, *self._fans(fact.fans)),
                    often=fact.often.times(scope.often),
                )
            case ModelFact():
                return replace(
                    fact,
                    place=self._place(fact.place),
                    told=self.label(fact.told),
                    prompt_file=self.label(fact.prompt_file),
                    conditions=(*scope.conditions, *self.conditions(fact.conditions)),
                    fans=(*scope.fans, *self._fans(fact.fans)),
                    often=fact.often.times(scope.often),
                )
            case QuestionFact():
                return self._questions[id(fact)]
            case FanFact() | StoreFact() | ChoiceFact():
                return replace(fact, place=self._place(fact.place))

    def questions(self, facts: Iterable[QuestionFact]) -> tuple[QuestionFact, ...]:
        return tuple(self._questions.get(id(fact), fact) for fact in facts)

    def conditions(self, conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
        if self._questions or any(_has_way(condition.label) for condition in conditions):
            return tuple(map(self._condition, conditions))
        return conditions

    def _condition(self, condition: Condition) -> Condition:
        if id(condition) not in self._conditions:
            reads = {name: self.value(value) for name, value in condition.reads.items()}
            subject = self.value(condition.subject) if condition.subject is not None else None
            label = self.label(condition.label)
            self._conditions[id(condition)] = replace(condition, reads=reads, subject=subject, label=label)
        return self._conditions[id(condition)]

    def result(self, value: AbstractValue) -> AbstractValue:
        """Return the result of the called document as the calling document knows it."""
        result = self.value(value)
        if result.length.is_endless or result.items.is_endless:
            result = replace(result, items=self._amount(result.items), length=self._amount(result.length))
        return result

    def value(self, value: AbstractValue) -> AbstractValue:
        """Return a value of the called document with the answers and the ways of this call."""
        if not self._questions and not _has_way(value.label):
            return value
        if id(value) not in self._values:
            if self._depth == _DEEPEST:
                return replace(value.unanswered(), fields={}, element=None) if self._questions else value
            self._depth += 1
            self._values[id(value)] = self._followed(value)
            self._depth -= 1
        return self._values[id(value)]

    def _followed(self, value: AbstractValue) -> AbstractValue:
        changed = value.labelled(self.label(value.label))
        if value.answer is not None and id(value.answer) in self._questions:
            changed = replace(changed, answer=self._questions[id(value.answer)])
        if value.computed is not None:
            reads = {name: self.value(read) for name, read in value.computed.reads.items()}
            changed = replace(changed, computed=replace(value.computed, reads=reads))
        if value.choices:
            changed = replace(changed, choices=tuple(map(self.value, value.choices)))
        if value.fields:
            changed = replace(changed, fields={name: self.value(part) for name, part in value.fields.items()})
        if value.element is not None:
            changed = replace(changed, element=self.value(value.element))
        return changed


def _has_way(label: Label) -> bool:
    """Tell whether the way of a label is shown: only that of text from outside or of private text is."""
    return label.chosen >= OUTSIDE or label.privacy >= PRIVATE
