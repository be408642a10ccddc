"""The installed price list, read as upper bounds: hours, dates, tiers, caches, and the same price as in a real call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal

import pytest

pytest.importorskip("genai_prices", reason='needs the extra "llm"')

from genai_prices import Usage
from genai_prices.data_snapshot import DataSnapshot, get_snapshot
from genai_prices.types import (
    ClauseEquals,
    ConditionalPrice,
    ModelInfo,
    ModelPrice,
    PriceVariant,
    Provider,
    StartDateConstraint,
    Tier,
    TieredPrices,
    TimeOfDateConstraint,
)

from quire.models import price_list
from quire.models.choose import ModelSettings, Price
from quire.models.open import open_model
from quire.models.price_list import SOURCE, list_date, listed_rate
from quire.models.prices import PICODOLLARS, ModelRate, Unpriced, dollars, rate_of

TODAY = date(2026, 11, 17)
ONE = Decimal(1)
Listing = Callable[..., ModelRate | Unpriced]


def priced(read: str, written: str, **more: Decimal | TieredPrices) -> ModelPrice:
    return ModelPrice(input_mtok=Decimal(read), output_mtok=Decimal(written), **more)


def from_day(day: str, price: ModelPrice) -> ConditionalPrice:
    return ConditionalPrice(StartDateConstraint(date.fromisoformat(day)), prices=price)


@pytest.fixture
def listing(monkeypatch: pytest.MonkeyPatch) -> Iterator[Listing]:
    """Price a model of a list that contains nothing else."""

    def rate(
        prices: ModelPrice | list[ConditionalPrice],
        *,
        provider: str = "acme",
        comment: str = "",
        variants: list[PriceVariant] | None = None,
        name: str = "m",
        address: str = "",
    ) -> ModelRate | Unpriced:
        model = ModelInfo(name, ClauseEquals(name), prices=prices, price_comments=comment, price_variants=variants)
        house = Provider(provider, provider, rf"https://api\.{provider}\.com", models=[model])
        snapshot = DataSnapshot([house], from_auto_update=False)
        monkeypatch.setattr(price_list, "get_snapshot", lambda: snapshot)
        listed_rate.cache_clear()
        list_date.cache_clear()
        return listed_rate(f"{provider}:{name}", name, provider, address, TODAY)

    yield rate
    listed_rate.cache_clear()
    list_date.cache_clear()


def known(rate: ModelRate | Unpriced) -> ModelRate:
    assert isinstance(rate, ModelRate), rate
    return rate


def rates(rate: ModelRate) -> list[tuple[int, int, int]]:
    """The prices from each number of tokens on, read and written."""
    found = [(0, rate.input, rate.output), *((tier.above, tier.input, tier.output) for tier in rate.tiers)]
    return [(above, int(read), int(written)) for above, read, written in found]


def test_the_price_of_today_counts(listing: Listing) -> None:
    prices = [
        ConditionalPrice(prices=priced("9", "9")),
        from_day("2026-06-01", priced("2", "4")),
        from_day("2026-11-17", priced("1", "3")),
        from_day("2027-01-01", priced("5", "5")),
    ]
    rate = known(listing(prices))
    assert rates(rate) == [(0, 1, 3)]
    assert rate.changes == date(2027, 1, 1)


def test_the_dearest_hour_counts(listing: Listing) -> None:
    def at(start: int, end: int, price: ModelPrice) -> ConditionalPrice:
        return ConditionalPrice(TimeOfDateConstraint(time(start), time(end)), prices=price)

    prices = [
        ConditionalPrice(prices=priced("99", "99")),
        from_day("2026-06-01", priced("2", "4")),
        at(1, 4, priced("3", "3")),
        at(6, 10, priced("1", "8")),
    ]
    rate = known(listing(prices))
    assert rates(rate) == [(0, 3, 8)]  # and not 99, which has been over since June
    only_hours = [at(1, 4, priced("1", "1")), at(6, 10, priced("2", "2"))]
    assert known(listing(only_hours)).input == 2


def test_tiers_of_all_prices_are_joined(listing: Listing) -> None:
    read = TieredPrices(Decimal(1), [Tier(100, Decimal(2)), Tier(300, Decimal(5))])
    written = TieredPrices(Decimal(7), [Tier(200, Decimal(9))])
    rate = known(listing(ModelPrice(input_mtok=read, output_mtok=written)))
    assert rates(rate) == [(0, 1, 7), (100, 2, 7), (200, 2, 9), (300, 5, 9)]


def test_a_tier_from_the_first_token_on_is_the_price(listing: Listing) -> None:
    rate = known(listing(ModelPrice(input_mtok=TieredPrices(ONE, [Tier(0, Decimal(4))]), output_mtok=ONE)))
    assert rates(rate) == [(0, 4, 1)]


@pytest.mark.parametrize(("provider", "read"), [("acme", "1.25"), ("openai", "1.25"), ("anthropic", "1")])
def test_cached_input_is_never_cheaper_and_may_be_dearer(listing: Listing, provider: str, read: str) -> None:
    cache = {"cache_read_mtok": Decimal("0.1"), "cache_write_mtok": Decimal("1.25")}
    assert known(listing(priced("1", "2", **cache), provider=provider)).input == Decimal(read)


def test_thinking_and_calls_may_have_prices(listing: Listing) -> None:
    rate = known(listing(priced("1", "2", output_reasoning_mtok=Decimal(3), requests_kcount=Decimal(12))))
    assert rates(rate) == [(0, 1, 3)]
    assert rate.call == Decimal("0.012")


@pytest.mark.parametrize(
    ("price", "missing"), [(ModelPrice(input_mtok=Decimal(1)), "writes"), (ModelPrice(output_mtok=Decimal(1)), "reads")]
)
def test_half_a_price_is_none(listing: Listing, price: ModelPrice, missing: str) -> None:
    rate = listing(price)
    assert isinstance(rate, Unpriced)
    assert missing in rate.reason


@pytest.mark.parametrize(
    ("comment", "day", "of_list"),
    [
        ("Rates verified on 2026-10-12 at https://x.", date(2026, 10, 12), False),
        ("Checked 2026-05-01. Re-verified on 2026-10-15: unchanged.", date(2026, 10, 15), False),
        ("Launched on 2026-09-09, no word of a check.", date(2026, 9, 9), True),
        ("Verified on 2026-13-45, and as of 2099-01-01.", None, True),
        ("", None, True),
    ],
)
def test_the_date_is_that_of_the_last_check(listing: Listing, comment: str, day: date | None, of_list: bool) -> None:
    rate = known(listing(priced("1", "1"), comment=comment))
    assert (rate.date, rate.is_list_date) == (day, of_list)


def test_the_list_is_as_new_as_its_newest_price(listing: Listing) -> None:
    prices = [ConditionalPrice(prices=priced("1", "1")), from_day("2026-03-04", priced("1", "1"))]
    assert known(listing([*prices, from_day("2027-03-04", priced("1", "1"))])).date == date(2026, 3, 4)


def test_dearer_ways_of_being_served_are_a_premise(listing: Listing) -> None:
    variants = [
        PriceVariant({"processing": "batch"}, priced("0.5", "0.5")),
        PriceVariant({"service_tier": "priority"}, priced("2", "2")),
    ]
    (premise,) = known(listing(priced("1", "1"), variants=variants)).premises
    assert "service_tier priority" in premise
    assert "batch" not in premise
    assert known(listing(priced("1", "1"), variants=variants[:1])).premises == ()


def test_an_address_that_the_list_does_not_know_is_a_premise(listing: Listing) -> None:
    assert known(listing(priced("1", "1"), address="https://api.acme.com/v1")).premises == ()
    (premise,) = known(listing(priced("1", "1"), address="https://proxy.example/v1")).premises
    assert "https://proxy.example/v1" in premise


def test_a_bound_holds_for_every_listed_model_at_every_hour() -> None:
    """The list itself counts the cost of calls of several sizes; caches and thinking included."""
    sizes = [(1, 1), (1_000, 4096), (199_999, 10), (300_000, 5_000)]
    hours = [datetime(2026, 11, 17, hour, 15, tzinfo=UTC) for hour in (0, 2, 8, 17)]
    checked = 0
    for provider in get_snapshot().providers:
        for model in provider.models:
            rate = listed_rate("x:y", model.id, provider.id, "", TODAY)
            if isinstance(rate, Unpriced):
                continue
            found, info = get_snapshot().find_provider_model(model.id, None, provider.id, None)
            for read, written in sizes[checked % 2 :: 2]:
                usage = Usage(input_tokens=read, output_tokens=written)
                price = info.calc_price(usage, found, genai_request_timestamp=hours[checked % 4])
                assert rate.cost(read, written) >= price.total_price * PICODOLLARS, (provider.id, model.id)
            checked += 1
    assert checked > 1_000


KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "DEEPSEEK_API_KEY", "MOONSHOTAI_API_KEY")


@pytest.mark.parametrize(
    "spec",
    [
        "anthropic:claude-sonnet-4-5",
        "anthropic:claude-sonnet-5-5",
        "openai:gpt-6.1-terra",
        "openai-chat:gpt-5.6-sol",
        "google:gemini-flash-latest",
        "deepseek:deepseek-v4-pro",
        "moonshotai:kimi-k3.1-pro",
        "openai:a-model-of-tomorrow",
        "ollama:llama4",
    ],
)
def test_an_open_model_reserves_by_the_same_price(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pydantic_ai", reason='needs the extra "llm"')
    from quire.engine.ports import ModelCall, Priced
    from quire.engine.premises import REPLY_TOKENS
    from quire.models.tokens import call_tokens_at_most

    for key in KEYS:
        monkeypatch.setenv(key, "x")
    model = open_model(spec, ModelSettings())
    assert isinstance(model, Priced)
    call = ModelCall("x" * 3_000_000, (), cache="shared")
    rate = rate_of(spec, ModelSettings(), datetime.now(UTC).date())
    if isinstance(rate, Unpriced):
        assert model.estimate(call) is None
    else:
        assert model.estimate(call) == dollars(rate.cost(call_tokens_at_most(call), REPLY_TOKENS))


def test_an_own_price_of_a_hosted_model_keeps_its_context() -> None:
    spec = "anthropic:claude-sonnet-4-5"
    own, listed = ModelSettings(prices={spec: Price(1.0, 1.0)}), ModelSettings()
    with_own, of_list = known(rate_of(spec, own, TODAY, {})), known(rate_of(spec, listed, TODAY, {}))
    assert with_own.input == 1
    assert with_own.context == of_list.context == 200_000
    assert of_list.source == SOURCE
