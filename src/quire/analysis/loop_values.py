"""Values that rounds of a loop make: how far they grow, and when one more round adds nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from quire.analysis.abstract_values import (
    LONGEST_VALUE,
    MOST_ITEMS_OF_A_VALUE,
    NO_PARTS,
    AbstractValue,
    depends_alike,
    either_of,
)
from quire.analysis.amounts import number

if TYPE_CHECKING:
    from quire.analysis.labels import Label


_KEPT_PARTS = 3
"""Levels of parts that are followed from round to round."""
_MOST_ITEMS, _LONGEST = number(MOST_ITEMS_OF_A_VALUE), number(LONGEST_VALUE * 4)


def grown(before: AbstractValue, after: AbstractValue, depth: int = 0) -> AbstractValue:
    """Return a value after any number of rounds of a loop that makes `after` from `before`, with the parts of both.

    A size that has become larger may go on growing, up to the longest value that an expression makes. Labels are only
    joined: they have few levels, so that more rounds find the worst of them.
    """
    joint = either_of(before, after)
    fields, element = NO_PARTS, None
    if depth < _KEPT_PARTS:
        if joint.fields:
            fields = {name: grown(before.fields[name], after.fields[name], depth + 1) for name in joint.fields}
        mine, theirs = before.element, after.element
        element = joint.element if mine is None or theirs is None else grown(mine, theirs, depth + 1)
    if not depends_alike(before, after):
        joint = joint.unanswered()
    return replace(
        joint,
        items=joint.items if joint.items == before.items else _MOST_ITEMS,
        length=joint.length if joint.length == before.length else _LONGEST,
        fields=fields,
        element=element,
        is_constant=False,
        constant=None,
        name="",
        largest=before.largest if joint.largest == before.largest else None,
    )


def same(one: AbstractValue, other: AbstractValue) -> bool:
    """Tell whether as much is known about one value, and about its parts, as about the other."""
    if one is other:
        return True
    mine, theirs = one.element, other.element
    return (
        one.label.levels == other.label.levels
        and one.length == other.length
        and one.items == other.items
        and one.largest == other.largest
        and one.type == other.type
        and (one.is_constant, one.is_word) == (other.is_constant, other.is_word)
        and depends_alike(one, other)
        and (mine is theirs or (mine is not None and theirs is not None and same(mine, theirs)))
        and one.fields.keys() == other.fields.keys()
        and all(same(part, other.fields[name]) for name, part in one.fields.items())
    )


def of_any_size(label: Label) -> AbstractValue:
    """Return a value of which only the label is known."""
    return AbstractValue(None, _MOST_ITEMS, _LONGEST, label)
