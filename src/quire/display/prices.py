"""Say in one line which price an amount was reckoned with, and how old it is."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import assert_never

from quire.display.visible import visible
from quire.models.prices import ModelRate, Rate, Unpriced, rounded_dollars


def price_line(rate: Rate, today: date) -> str:
    """Return the price of a model for people: the amounts, the source, the date."""
    match rate:
        case Unpriced():
            return visible(f"{rate.spec} is unpriced: {rate.reason}")
        case ModelRate(free=True):
            return visible(f"{rate.spec} is free ({rate.source})")
        case ModelRate():
            tiers = [f"{_pair(one.input, one.output)} above {one.above:,} tokens" for one in rate.tiers]
            each = [f"${_plain(rate.call)} a call"] if rate.call else []
            amounts = ", ".join([f"{_pair(rate.input, rate.output)} per million tokens", *tiers, *each])
            return visible(f"{rate.spec} {amounts} ({_since(rate, today)})")
        case _:
            assert_never(rate)


def amount_at_most(picodollars: int) -> str:
    """Return an amount for people, rounded up: to cents, and below ten cents to hundredths of one."""
    return f"${rounded_dollars(picodollars, 2 if picodollars >= 10**11 else 4):,}"


def _since(rate: ModelRate, today: date) -> str:
    parts = [rate.source]
    if rate.date is not None:
        parts.append(f"of {rate.date} or later" if rate.is_list_date else f"looked at {rate.date}")
    if rate.is_old(today):
        parts.append(f"{rate.age(today):,} days ago")
    if rate.changes is not None:
        parts.append(f"changes on {rate.changes}")
    return ", ".join(parts)


def _pair(read: Decimal, written: Decimal) -> str:
    return f"${_plain(read)}/${_plain(written)}"


def _plain(amount: Decimal) -> str:
    text = f"{amount:,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
