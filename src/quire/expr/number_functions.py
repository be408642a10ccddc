"""Functions of numbers. Rounding looks at the number as it is written in decimal digits, and halves go away from zero:
`round(2.675, 2)` is 2.68, although the nearest binary number is a little smaller."""

from __future__ import annotations

import math
import re
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

from quire.expr.arguments import At, needs_number, needs_text, needs_whole
from quire.expr.kinds import NUMBERS
from quire.expr.limits import MAX_DIGITS, Run
from quire.expr.operators import storable
from quire.wording import cut

MOST_DECIMALS = 15

# Enough for every number that can be stored, with all of its decimals.
_EXACT = Context(prec=MAX_DIGITS + 2 * MOST_DECIMALS, rounding=ROUND_HALF_UP, Emin=-9_999, Emax=9_999)
_UNITS = {digits: Decimal(1).scaleb(-digits) for digits in range(-MOST_DECIMALS, MOST_DECIMALS + 1)}
_NUMBER = re.compile(r"[+-]?[0-9]++(\.[0-9]++)?([eE][+-]?[0-9]++)?")
_MISSING: Any = object()


def number(run: Run, at: At, value: Any, default: Any = _MISSING) -> Any:
    """Return the number that a text holds; a number as it is."""
    if type(value) in NUMBERS:
        return value
    if default is not _MISSING and not isinstance(value, str):
        return default
    text = needs_text(value, at, 0)
    run.charge(len(text) >> 4, at.span)
    text = text.strip()
    match = _NUMBER.fullmatch(text)
    if match is None:
        problem = f'"{cut(text, 40)}" is not one' if text else "the text is empty"
    elif len(text) > MAX_DIGITS:
        problem = f"this one has more than {MAX_DIGITS:,} digits"
    elif match[1] is None and match[2] is None:
        run.charge(len(text) >> 2, at.span)
        return int(text)
    elif math.isfinite(found := float(text)):
        return found
    else:
        problem = f"{cut(text, 40)} is too large"
    if default is not _MISSING:
        return default
    help = "number(text, default) gives the default instead of failing"
    raise at.fails(f"number needs a number in decimal digits: {problem}", 0, help)


def absolute(run: Run, at: At, value: Any) -> int | float:
    return abs(needs_number(value, at, 0))


def floor(run: Run, at: At, value: Any) -> int:
    return math.floor(needs_number(value, at, 0))


def ceil(run: Run, at: At, value: Any) -> int:
    return math.ceil(needs_number(value, at, 0))


def nearest(run: Run, at: At, value: Any, decimals: Any = 0) -> int | float:
    """Return the nearest number with so many decimals; a whole number if there are none."""
    found = needs_number(value, at, 0)
    digits = needs_whole(decimals, at, 1, -MOST_DECIMALS, MOST_DECIMALS) if decimals != 0 else 0
    if isinstance(found, int):
        return found if digits >= 0 else storable(_whole(found, 10**-digits), run, at.span)
    if digits == 0:
        # The difference between a number and its whole part is exact.
        below = math.floor(abs(found))
        above = below + (abs(found) - below >= 0.5)
        return above if found > 0 else -above
    rounded = _quantized(found, digits)
    return storable(float(rounded), run, at.span) + 0.0 if digits > 0 else int(rounded)


def decimals(value: int | float, digits: int) -> str:
    """Return a number with so many decimals as text. Zero has no sign."""
    if isinstance(value, int):
        return f"{value}.{'0' * digits}" if digits else str(value)
    rounded = _quantized(value, digits)
    return format(abs(rounded) if rounded == 0 else rounded, "f")


def _quantized(value: float, digits: int) -> Decimal:
    return _EXACT.quantize(Decimal(repr(value)), _UNITS[digits])


def _whole(value: int, unit: int) -> int:
    rounded = (abs(value) + unit // 2) // unit * unit
    return rounded if value > 0 else -rounded
