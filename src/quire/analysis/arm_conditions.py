"""The conditions under which the arms of a step are chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from quire.analysis.abstract_values import NULL
from quire.analysis.facts import Condition
from quire.analysis.labels import AUTHORED, joined

if TYPE_CHECKING:
    from quire.analysis.abstract_values import AbstractValue
    from quire.analysis.facts import Place
    from quire.analysis.scope import Scope
    from quire.plan.nodes import Comparison, Match

MOST_TESTS = 100
"""Most tests before an arm that are known to be false in it. Each arm keeps those before it."""


def arm_conditions(match: Match, place: Place, scope: Scope) -> list[Condition]:
    """Return the condition of each arm: its test holds, and none of those before it.

    The values of all tests before an arm are in its label. The tests themselves are only those of the first arms: an
    arm of which less is known may be chosen more often, never less.
    """
    found: list[Condition] = []
    earlier: tuple[Comparison, ...] = ()
    known: dict[str, AbstractValue] = {}
    label = AUTHORED
    read: set[str] = set()
    for case in match.cases:
        test, reads = case.test, known
        if test is not None:
            value = scope.names.stores.get(test.variable) or NULL
            if test.variable not in read:
                read.add(test.variable)
                label = joined((label, value.label.narrowed()))
            reads = known if test.variable in known else {**known, test.variable: value}
        found.append(Condition(place, test, True, reads, label, span=place.span, others=earlier))
        if test is not None and len(earlier) < MOST_TESTS:
            earlier, known = (*earlier, test), reads
    return found


def any_arm(match: Match, conditions: list[Condition]) -> Condition:
    """Return the condition that one of the arms is chosen. It has the tests of all of them, so that none is left out as
    impossible because its test is not known."""
    return replace(conditions[-1], test=None, holds=False, others=tuple(case.test for case in match.cases))
