"""Walk over the first rounds of a loop one after the other, each with the value that the round before it has made.

What is known of every round at once is the cost of the dearest. A loop that gathers its items in groups until one is
left has fewer of them in each round, and one that collects them has more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from quire.analysis.amounts import Amount, number, total
from quire.analysis.costs import Cost, lower
from quire.analysis.facts import EffectFact, FanFact, ModelFact

if TYPE_CHECKING:
    from quire.analysis.abstract_values import AbstractValue
    from quire.analysis.facts import Fact, Place
    from quire.analysis.scope import Scope
    from quire.analysis.walk import StepWalk, Walk
    from quire.plan.nodes import Step

_MOST_ROUNDS = 12
"""Rounds that are walked one by one; those after them cost as much as any."""
_MOST_FACTS = 500
"""Facts of a round that is walked again."""


class Round(Struct, frozen=True):
    """The part of a document that a loop repeats."""

    walk: Walk
    each: StepWalk
    do: Step
    path: str
    bound: Mapping[str, AbstractValue]
    place: Place
    scope: Scope

    def after(
        self, accumulated: AbstractValue, carried: Mapping[str, AbstractValue]
    ) -> tuple[AbstractValue, Mapping[str, AbstractValue], Cost, list[Fact]]:
        """Return the value, the stores, the cost and the facts of a round that begins with these. Nothing is noted."""
        walk, scope, cost = self.walk, self.scope, Cost()
        kept, noted, missed, ended = walk.facts, walk.noted, set(scope.names.missed), scope.ended
        walk.facts = []
        saved = scope.enter(bound={**self.bound, "acc": accumulated}, fan=self.place)
        for name, value in carried.items():
            scope.keep(name, value)
        self.each(walk, self.do, self.path, scope, cost)
        result = scope.names.pipe
        arm = scope.leave(saved)
        facts, walk.facts, walk.noted, scope.ended = walk.facts, kept, noted, ended
        scope.names.missed.clear()
        scope.names.missed.update(missed)
        return result, {name: value for name, (value, _) in arm.stores.items()}, cost, facts


def may_shrink(walk: Walk, scope: Scope, rounds: Amount, facts: Sequence[Fact]) -> bool:
    """Tell whether the rounds of a loop may differ in cost, and are few enough to look at each: a fan is in it, and no
    other loop is around it."""
    return (
        scope.loops == 1
        and (rounds.as_number or 0) > 1
        and len(facts) <= _MOST_FACTS
        and not walk.is_long
        and any(isinstance(fact, FanFact) for fact in facts)
    )


def one_by_one(
    round: Round, begin: AbstractValue, rounds: Amount, any_round: Cost, whole: Cost, facts: list[Fact]
) -> tuple[Cost, list[Fact]]:
    """Return the cost and the facts of a loop, lower than `whole` and `facts` where its rounds tell.

    The first round begins with `begin`, and each later one with a value that the walk of the round before it covers;
    so the walks of all rounds together cover every run of the loop. A round that begins like the one before it costs
    the same, and so do all after it; rounds that are not walked cost as much as `any_round`.
    """
    from quire.analysis.walk import signature

    together, value, found = Cost(), begin, []
    carried: Mapping[str, AbstractValue] = {}
    left, before = rounds.as_number or 0, None
    for _ in range(min(left, _MOST_ROUNDS)):
        key = signature(value), {name: signature(one) for name, one in carried.items()}
        often = left if key == before else 1
        value, carried, cost, seen = round.after(value, carried)
        together.add(cost.times(number(often), 0))
        found.append((often, seen))
        left, before = left - often, key
        if not left:
            break
    if left:
        together.add(any_round.times(number(left), 0))
        return lower(whole, together), facts
    return lower(whole, together), _happening(facts, found)


def _happening(facts: list[Fact], rounds: Sequence[tuple[int, Sequence[Fact]]]) -> list[Fact]:
    """Return the facts of a loop with how often each happens in all rounds. They stay as they are if the rounds have
    others."""
    if any([_where(one) for one in seen] != [_where(one) for one in facts] for _, seen in rounds):
        return facts
    changed = list(facts)
    for at, fact in enumerate(facts):
        if isinstance(fact, EffectFact | ModelFact):
            often = total(
                one.often.times(number(times))
                for times, seen in rounds
                if isinstance(one := seen[at], EffectFact | ModelFact)
            )
            changed[at] = replace(fact, often=often)
    return changed


def _where(fact: Fact) -> tuple[type, str, str]:
    return type(fact), fact.place.way, fact.place.path
