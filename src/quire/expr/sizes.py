"""Two walks over whole values that cannot be trusted to be small: is this result too large, and are these two equal.

A value built by expressions may hold the same list in many places. It is small in memory and huge when written or
compared, so both walks count what they see, place by place, and stop at a limit.
"""

from __future__ import annotations

from collections.abc import Mapping

from quire.expr.errors import EvalError
from quire.expr.kinds import ATOMS, FLAT, is_list, is_map, kind
from quire.expr.limits import MAX_ITEMS, MAX_TEXT
from quire.expr.run import Run
from quire.source import Span
from quire.values import MAX_DEPTH, Value

_LONG = 1_000
"""Shorter texts are compared in the time of a step."""


def check_size(value: object, span: Span) -> None:
    """Raises `EvalError` when a result could not be stored."""
    if type(value) in FLAT:
        return
    items = characters = 0
    level = [value]
    for _ in range(MAX_DEPTH):
        deeper: list[object] = []
        for holder in level:
            if is_map(holder):
                parts = list(holder.values())
                characters += _keys(holder, span)
            elif is_list(holder):
                parts = list(holder)
            elif isinstance(holder, str | int | float):
                continue
            else:
                raise EvalError(f"the result holds {kind(holder)}, which is no value", span)
            items += len(parts)
            if items > MAX_ITEMS:
                raise EvalError(f"the result has more than {MAX_ITEMS:,} items", span)
            kinds = set(map(type, parts))
            if str in kinds:
                characters += sum(len(part) for part in parts if isinstance(part, str))
            if characters > MAX_TEXT:
                raise EvalError(f"the result has more than {MAX_TEXT:,} characters", span)
            if not kinds <= FLAT:
                deeper.extend(part for part in parts if type(part) not in FLAT)
        if not deeper:
            return
        level = deeper
    raise EvalError(f"the result is nested deeper than {MAX_DEPTH} levels", span)


def _keys(holder: Mapping[str, Value], span: Span) -> int:
    try:
        return sum(map(len, holder))
    except TypeError:
        raise EvalError("the result holds a map with a key that is no text", span) from None


def equal(left: object, right: object, run: Run, span: Span) -> bool:
    """Python's equality for JSON, deep: `1 == true`, `1 == 1.0`, the order of keys does not count."""
    if type(left) in ATOMS or type(right) in ATOMS:
        return bool(left == right)
    pairs = [(left, right)]
    while pairs:
        one, other = pairs.pop()
        if one is other:
            continue
        if is_map(one):
            if not is_map(other) or len(one) != len(other):
                return False
            run.charge(len(one), span)
            for key, part in one.items():
                if key not in other:
                    return False
                pairs.append((part, other[key]))
        elif is_list(one):
            if not is_list(other) or len(one) != len(other):
                return False
            run.charge(len(one), span)
            pairs.extend(zip(one, other, strict=True))
        else:
            if isinstance(one, str) and len(one) > _LONG:
                run.charge(len(one) >> 6, span)
            if one != other:
                return False
    return True


def in_order(left: str, right: str, run: Run, span: Span) -> None:
    """Charges for comparing two texts."""
    if len(left) > _LONG:
        run.charge(min(len(left), len(right)) >> 6, span)
