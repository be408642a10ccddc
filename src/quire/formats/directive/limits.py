"""Check the values of `<limits>` and `<cost>`: wrong values, and values that contradict each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from quire.formats.directive.syntax import shown
from quire.plan.vocabulary import CURRENCY, INTEGER_LIMITS, LARGEST_LIMIT, LIMIT_ALIASES, number

if TYPE_CHECKING:
    from quire.formats.directive.syntax import Attributes, Cost, Directive, Text


def limit_problem(name: str, text: str) -> str | None:
    """Return what is wrong with the value of a limit, as the end of a sentence; None if it is right."""
    canonical = LIMIT_ALIASES.get(name, name)
    if canonical == "spend_currency":
        if text.strip().upper() == CURRENCY:
            return None
        return f"must be {CURRENCY}, not '{shown(text)}': costs are counted in US dollars"
    value = number(text)
    if canonical in INTEGER_LIMITS and not isinstance(value, int):
        return f"must be an integer, not '{shown(text)}'"
    if value is None:
        return f"must be a number, not '{shown(text)}'"
    if value > LARGEST_LIMIT:
        return f"must not be above {LARGEST_LIMIT:,}, and is {shown(text)}"
    return f"must not be below 0, and is {shown(text)}" if value < 0 else None


def leaves_no_room(name: str, text: str) -> bool:
    """Tell whether a limit is reached before the first turn."""
    return LIMIT_ALIASES.get(name, name) in ("turns", "tokens", "spend", "duration_seconds") and number(text) == 0


def conflicting_limits(directive: Directive) -> Iterator[tuple[str, Text]]:
    """Yield a message for each limit that `<limits>` sets twice, to different numbers, and the second of the values."""
    texts = dict(directive.limits or ())
    for alias, name in LIMIT_ALIASES.items():
        text, other = texts.get(alias), texts.get(name)
        if text is None or other is None or number(text.text) == number(other.text):
            continue
        message = (
            f"{alias} and {name} are the same limit, and have the values {shown(text.text)} and {shown(other.text)}"
        )
        yield message, max(text, other, key=lambda value: value.span.start)


def cost_values(cost: Cost) -> Iterator[tuple[str, Text]]:
    """Yield the values of `<cost>` under the names of the limits."""
    context: Attributes = cost.context
    for name, value in context:
        if name == "turns":
            yield "turns", value
        elif name == "spawn_threshold":
            yield "spawns", value
    named = {
        "tokens": cost.tokens,
        "duration_seconds": cost.duration,
        "spend": cost.spend,
        "spend_currency": cost.currency,
    }
    yield from ((name, text) for name, text in named.items() if text is not None)
