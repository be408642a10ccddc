"""Note prices that are missing or old beside the money that is reckoned with them (BD106, BD107).

These are not findings of `check`, which loads no prices: they stand where money is shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from quire.analysis.rules.codes import OLD_PRICE, UNPRICED
from quire.models.prices import ModelRate, Unpriced

if TYPE_CHECKING:
    import datetime

    from quire.models.prices import Rate


def noted_rate(rate: Rate, today: datetime.date) -> Rate:
    """Return a price whose reason or premises name the code for what is doubtful about it."""
    match rate:
        case Unpriced(reason=reason):
            return replace(rate, reason=f"{reason} ({UNPRICED.id})")
        case ModelRate() if rate.is_old(today):
            note = f"the price of {rate.spec} was last looked at {rate.age(today):,} days ago ({OLD_PRICE.id})"
            return replace(rate, premises=(*rate.premises, note))
    return rate
