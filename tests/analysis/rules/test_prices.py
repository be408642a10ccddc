"""BD106 and BD107: prices that are missing or old, where money is shown."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from quire.analysis.money import noted_rate
from quire.models.prices import OLD_DAYS, ModelRate, Unpriced

TODAY = date(2026, 11, 17)


@pytest.mark.parametrize(("days", "noted"), [(OLD_DAYS, False), (OLD_DAYS + 1, True)])
def test_an_old_price_says_how_old_it_is(days: int, noted: bool) -> None:
    rate = noted_rate(ModelRate("house:a", date=TODAY - timedelta(days=days)), TODAY)
    assert isinstance(rate, ModelRate)
    found = [one for one in rate.premises if "BD107" in one]
    assert bool(found) == noted
    assert all(f"{days} days ago" in one for one in found)


def test_a_price_without_a_date_is_not_called_old() -> None:
    assert noted_rate(ModelRate("house:a"), TODAY) == ModelRate("house:a")


def test_a_missing_price_names_its_code() -> None:
    rate = noted_rate(Unpriced("house:a", "no list"), TODAY)
    assert isinstance(rate, Unpriced)
    assert rate.reason == "no list (BD106)"
