"""How large computed numbers can be, and so how many items `range`, `slice` and `flatten` can give."""

from __future__ import annotations

from functools import reduce
from math import ceil, floor
from typing import TYPE_CHECKING

from quire.analysis.amounts import Amount, number
from quire.expr.limits import MAX_ITEMS as MOST_ITEMS_OF_A_VALUE
from quire.schema_types import Simple

if TYPE_CHECKING:
    from quire.analysis.abstract_values import AbstractValue

_FARTHEST = 1 << 50
"""Larger numbers are not followed: a division may round them up."""


def largest_of(value: AbstractValue) -> Amount | None:
    """Return a whole number, or a formula of sizes, that a number is not larger than; None if that is not known."""
    constant = value.constant
    if value.is_constant and isinstance(constant, int | float) and not isinstance(constant, bool):
        return number(max(0, ceil(constant))) if constant <= _FARTHEST else None
    found = value.largest
    if found is None:
        most = value.type.maximum if isinstance(value.type, Simple) else None
        return number(max(0, ceil(most))) if most is not None and most <= _FARTHEST else None
    return None if found.is_endless else found


def largest_after(operator: str, largest: Amount, operand: AbstractValue) -> Amount | None:
    """Return the largest result of an operator whose first operand has the largest value `largest`.

    Division keeps the order of numbers and rounds to the nearest one, so that it does not pass a whole number.
    """
    if operator == "+":
        more = largest_of(operand)
        return largest.plus(more) if more is not None else None
    by = operand.constant
    if not operand.is_constant or not isinstance(by, int | float) or isinstance(by, bool):
        return None
    if operator == "/" and by >= 1:
        return largest.divided(floor(by))
    if operator == "-" and by >= 0:
        most = largest.as_number
        return number(max(0, most - floor(by))) if most is not None else largest
    return None


def largest_extreme(name: str, parts: list[AbstractValue]) -> Amount | None:
    """Return the largest value of `min` or `max` of several numbers."""
    known = [largest_of(part) for part in parts]
    bounds = [one for one in known if one is not None]
    if name == "max":
        return reduce(Amount.either, bounds) if len(bounds) == len(parts) else None
    return reduce(fewer, bounds) if bounds else None


def fewer(one: Amount, other: Amount) -> Amount:
    """Return the smaller one of two bounds of the same, as far as numbers tell; else the first."""
    least = other.as_number
    return one.at_most(least) if least is not None else one


def items_between(parts: list[AbstractValue], items: Amount) -> Amount:
    """Return how many items `slice` takes at most: of positions that are not counted from the end, as many as there are
    between them."""
    known = [part.constant for part in parts[1:] if part.is_constant]
    positions = [one for one in known if isinstance(one, int) and not isinstance(one, bool) and one >= 0]
    if len(positions) < 2:
        return items
    most = max(0, positions[1] - positions[0])
    return number(most) if items.as_number is None else items.at_most(most)


def items_counted(bounds: list[AbstractValue]) -> tuple[Amount, Amount] | None:
    """Return how many items `range` makes at most, and the largest of them: no more than its end says, if it does not
    begin below 0."""
    end = largest_of(bounds[-1]) if bounds else None
    items = end
    if end is not None and len(bounds) == 2:
        begin = bounds[0].constant
        if not bounds[0].is_constant or not isinstance(begin, int) or begin < 0:
            return None
        items = largest_after("-", end, bounds[0])
    return (items.at_most(MOST_ITEMS_OF_A_VALUE), end) if items is not None and end is not None else None
