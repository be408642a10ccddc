"""Values that rounds of a loop make: how far they grow, and when one more round adds nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from quire.analysis.abstract_values import (
    LONGEST_VALUE,
    MOST_ITEMS_OF_A_VALUE,
    AbstractValue,
    depends_alike,
    either_of,
)
from quire.analysis.amounts import number
from quire.analysis.labels import Integrity, Privacy, Trace, source_label

if TYPE_CHECKING:
    from quire.analysis.facts import Place


def grown(before: AbstractValue, after: AbstractValue) -> AbstractValue:
    """Return a value after any number of rounds of a loop that makes `after` from `before`.

    A value that has become larger may go on growing, up to the longest that an expression makes.
    """
    found = either_of(before, after)
    if found.length != before.length:
        found = replace(found, length=number(LONGEST_VALUE * 4))
    if found.items != before.items:
        found = replace(found, items=number(MOST_ITEMS_OF_A_VALUE))
    if not depends_alike(before, after):
        found = found.unanswered()
    largest = before.largest if found.largest == before.largest else None
    return replace(found, fields={}, element=None, is_constant=False, constant=None, name="", largest=largest)


def same(one: AbstractValue, other: AbstractValue) -> bool:
    """Tell whether as much is known about one value as about the other."""
    mine, theirs = one.label, other.label
    return one is other or (
        (mine.integrity, mine.chosen, mine.privacy) == (theirs.integrity, theirs.chosen, theirs.privacy)
        and one.length == other.length
        and one.items == other.items
        and one.largest == other.largest
        and one.type == other.type
        and depends_alike(one, other)
        and (one.is_constant, bool(one.fields), one.element is None)
        == (other.is_constant, bool(other.fields), other.element is None)
    )


def anything(place: Place) -> AbstractValue:
    """Return the value of a loop that was not followed: it can be everything, from everywhere."""
    trace = Trace("loop", place.way, place.span, place.document)
    label = source_label(Integrity.OUTSIDE, Privacy.PRIVATE, trace)
    return AbstractValue(None, number(MOST_ITEMS_OF_A_VALUE), number(LONGEST_VALUE * 4), label)
