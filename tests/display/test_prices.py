"""The line about a price, and amounts that are rounded up."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from quire.display.prices import amount_at_most, price_line
from quire.models.prices import ModelRate, PriceTier, Rate, Unpriced

TODAY = date(2026, 11, 17)
LIST = "genai-prices 0.2.1"


@pytest.mark.parametrize(
    ("rate", "line"),
    [
        (ModelRate("local:a", source="your machine", free=True), "local:a is free (your machine)"),
        (Unpriced("house:a", "no list"), "house:a is unpriced: no list"),
        (ModelRate("a:b", Decimal(3), Decimal("15.0"), source="contract"), "a:b $3/$15 per million tokens (contract)"),
        (
            ModelRate(
                "a:b",
                Decimal("0.075"),
                Decimal(1200),
                (PriceTier(200_000, Decimal(6), Decimal("22.50")),),
                Decimal("0.012"),
                source=LIST,
                date=date(2026, 7, 1),
                changes=date(2027, 1, 1),
            ),
            "a:b $0.075/$1,200 per million tokens, $6/$22.5 above 200,000 tokens, $0.012 a call "
            "(genai-prices 0.2.1, looked at 2026-07-01, 139 days ago, changes on 2027-01-01)",
        ),
        (
            ModelRate("a:b", Decimal(1), Decimal(2), source=LIST, date=date(2026, 10, 30), is_list_date=True),
            "a:b $1/$2 per million tokens (genai-prices 0.2.1, of 2026-10-30 or later)",
        ),
        (ModelRate("a:b", source=LIST), "a:b $0/$0 per million tokens (genai-prices 0.2.1)"),
    ],
)
def test_a_price_is_said_with_its_source_and_date(rate: Rate, line: str) -> None:
    assert price_line(rate, TODAY) == line


def test_a_source_cannot_write_to_the_terminal() -> None:
    assert "\x1b" not in price_line(ModelRate("a:\x1b[31m", source="\x1b[2J"), TODAY)


@pytest.mark.parametrize(
    ("picodollars", "text"),
    [
        (0, "$0.0000"),
        (1, "$0.0001"),
        (91_440_000_000, "$0.0915"),
        (99_999_999_999, "$0.1000"),
        (10**11, "$0.10"),
        (5_791_000_000_000, "$5.80"),
        (1_234_567_891_000_000, "$1,234.57"),
    ],
)
def test_an_amount_is_never_shown_too_low(picodollars: int, text: str) -> None:
    assert amount_at_most(picodollars) == text
