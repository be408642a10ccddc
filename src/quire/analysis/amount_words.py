"""Write amounts for people: counts, tokens, money and time, always rounded up, so that a bound stays one."""

from __future__ import annotations

from typing import Literal

Unit = Literal["count", "tokens", "picodollars", "milliseconds"]
_SHORT = {"K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def written(count: int, unit: Unit) -> str:
    """Return an amount in its unit, rounded up."""
    match unit:
        case "count":
            return f"{count:,}"
        case "tokens":
            return short_number(count)
        case "picodollars":
            return money(count)
        case "milliseconds":
            return duration(count)


def money(picodollars: int) -> str:
    """Return dollars, rounded up to cents, or to four decimals below a cent."""
    from quire.models.prices import rounded_dollars

    decimals = 4 if 0 < picodollars < 10**10 else 2
    return f"${rounded_dollars(picodollars, decimals):,}"


def short_number(count: int) -> str:
    """Return a number with at most two digits after its highest three, rounded up: `3.1 M`."""
    for word, size in reversed(_SHORT.items()):
        if count >= size:
            whole, tenth = divmod(-(-count * 10 // size), 10)
            if whole >= 100 or not tenth:
                return f"{-(-count // size):,} {word}"
            return f"{whole:,}.{tenth} {word}"
    return f"{count:,}"


def duration(milliseconds: int) -> str:
    """Return a time in the largest unit that is not too coarse, rounded up."""
    seconds = -(-milliseconds // 1000)
    if seconds < 120:
        return f"{seconds} s"
    minutes = -(-seconds // 60)
    if minutes < 120:
        return f"{minutes} min"
    hours = -(-minutes // 60)
    return f"{hours} h" if hours < 72 else f"{-(-hours // 24):,} days"
