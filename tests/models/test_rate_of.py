"""Prices that are found without opening a model: the order of the sources, bounds, ages, and sums never too low."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.models.choose import ModelSettings, Price, ProviderSettings
from quire.models.prices import (
    PICODOLLARS,
    ModelRate,
    PriceTier,
    Unpriced,
    dollars,
    own_rate,
    picodollars,
    rate_of,
    rounded_dollars,
)

TODAY = date(2026, 11, 17)
OWN = Price(3.0, 15.0, "contract", date(2026, 10, 1))


@pytest.mark.parametrize("spec", ["local:smollm2", "local:/models/x.gguf", "ollama:llama4"])
def test_models_of_this_machine_are_free(spec: str) -> None:
    rate = rate_of(spec, ModelSettings(), TODAY, {})
    assert isinstance(rate, ModelRate)
    assert (rate.free, rate.source, rate.cost(10**9, 10**9)) == (True, "your machine", 0)


@pytest.mark.parametrize(
    ("spec", "environ", "reason"),
    [
        ("https://host/v1#small", {}, "an address"),
        ("house:small", {}, "a service of quire.toml"),
        ("script:x.json", {}, "a script"),
        ("nonsense", {}, "PROVIDER:NAME"),
        ("ollama:large-cloud", {}, "cloud of Ollama"),
        ("ollama:large", {"OLLAMA_HOST": "https://ollama.com"}, "cloud of Ollama"),
        ("ollama:large", {"OLLAMA_BASE_URL": "https://api.ollama.com/v1"}, "cloud of Ollama"),
    ],
)
def test_a_model_without_a_price_is_unpriced_and_never_free(spec: str, environ: dict[str, str], reason: str) -> None:
    settings = ModelSettings(providers={"house": ProviderSettings("http://127.0.0.1:1/v1")})
    rate = rate_of(spec, settings, TODAY, environ)
    assert isinstance(rate, Unpriced)
    assert reason in rate.reason
    assert f'[models.prices."{spec}"]' in rate.reason


@pytest.mark.parametrize("spec", ["house:small", "https://host/v1#small", "local:smollm2", "script:x.json"])
def test_an_own_price_comes_first(spec: str) -> None:
    settings = ModelSettings(tiers={"cheap": spec}, prices={spec: OWN})
    for name in (spec, "cheap"):
        rate = rate_of(name, settings, TODAY, {})
        assert isinstance(rate, ModelRate)
        assert (rate.spec, rate.input, rate.output, rate.free) == (spec, Decimal(3), Decimal(15), False)
        assert (rate.source, rate.age(TODAY)) == ("contract", 47)


@pytest.mark.parametrize(
    ("day", "age", "old"),
    [
        (date(2026, 7, 20), 120, False),
        (date(2026, 7, 19), 121, True),
        (date(2027, 1, 1), 0, False),
        (None, None, False),
    ],
)
def test_a_price_is_old_after_120_days(day: date | None, age: int | None, old: bool) -> None:
    rate = own_rate("house:small", Price(1.0, 1.0, "", day))
    assert (rate.age(TODAY), rate.is_old(TODAY)) == (age, old)


TIERED = ModelRate("a:b", Decimal(3), Decimal(15), (PriceTier(200_000, Decimal(6), Decimal("22.5")),))


@pytest.mark.parametrize(
    ("context", "tokens", "read"),
    [
        (None, 200_000, 3),
        (None, 200_001, 6),
        (None, None, 6),  # the size of the call is not known, so it may be the most expensive
        (200_000, None, 3),  # no call is long enough for the tier
        (1_000_000, None, 6),
        (1_000_000, 5, 3),
        (200_000, 300_000, 6),  # a call that was made proves the list wrong
    ],
)
def test_the_dearest_tier_that_a_call_can_reach_counts(context: int | None, tokens: int | None, read: int) -> None:
    rate = ModelRate(TIERED.spec, TIERED.input, TIERED.output, TIERED.tiers, context=context)
    assert rate.at(tokens)[0] == read
    assert rate.picodollars(tokens)[0] == read * 1_000_000


def test_a_tier_that_is_cheaper_does_not_make_a_bound_lower() -> None:
    rate = ModelRate("a:b", Decimal(6), Decimal(6), (PriceTier(10, Decimal(1), Decimal(9)),))
    assert rate.at(100) == (Decimal(6), Decimal(9))


def test_a_call_may_have_a_price_of_its_own() -> None:
    rate = ModelRate("a:b", Decimal(1), Decimal(2), call=Decimal("0.012"))
    assert dollars(rate.cost(1_000_000, 1_000_000)) == 3.012


@given(
    st.decimals(0, 10**6, allow_nan=False, places=9),
    st.integers(0, 10**8),
    st.integers(0, 10**6),
    st.integers(0, 6),
)
def test_sums_are_never_low(price: Decimal, read: int, written: int, decimals: int) -> None:
    rate = ModelRate("a:b", price, price)
    exact = Fraction(price) * (read + written) / 1_000_000
    cost = rate.cost(read, written)
    assert Fraction(cost, PICODOLLARS) >= exact
    assert Fraction(cost, PICODOLLARS) - exact < Fraction(read + written + 1, PICODOLLARS)
    shown = rounded_dollars(cost, decimals)
    assert Fraction(shown) >= exact
    assert Fraction(shown) - Fraction(cost, PICODOLLARS) < Fraction(1, 10**decimals)


@pytest.mark.parametrize(
    ("amount", "decimals", "shown"), [(0, 2, "0.00"), (1, 2, "0.01"), (10**12, 2, "1.00"), (1_230_000_001, 4, "0.0013")]
)
def test_amounts_are_rounded_up(amount: int, decimals: int, shown: str) -> None:
    assert str(rounded_dollars(amount, decimals)) == shown


def test_a_sum_is_the_float_that_people_write() -> None:
    """Otherwise a budget of 0.60 would not be enough for a cost of 0.60."""
    assert dollars(own_rate("a:b", Price(100.0, 1000.0)).cost(1000, 500)) == 0.6
    assert picodollars(Decimal("0.1")) == 10**11


def test_the_price_list_is_loaded_only_for_a_model_that_it_may_have() -> None:
    script = (
        "import sys, datetime; from quire.models.prices import rate_of; from quire.models.choose import *\n"
        "own = {'house:x': Price(1, 1), 'openai:z': Price(1, 1)}\n"
        "settings = ModelSettings(\n"
        "    prices=own, providers={'house': ProviderSettings('http://h')}, windows={'openai:z': 8}\n"
        ")\n"
        "for spec in ('local:a', 'ollama:b', 'script:c', 'house:x', 'house:y', 'https://h/v1#x', 'openai:z'):\n"
        "    rate_of(spec, settings, datetime.date(2026, 1, 1), {})\n"
        "print('genai_prices' in sys.modules, 'pydantic' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


LISTED = """
import sys, datetime
from quire.models.choose import ModelSettings
from quire.models.prices import rate_of
rate = rate_of("anthropic:claude-sonnet-4-5", ModelSettings(), datetime.date.fromisoformat(sys.argv[1]), {})
print(rate.input > 0, "genai_prices" in sys.modules)
"""


def test_a_listed_price_is_kept_for_the_day(tmp_path: Path) -> None:
    def look_up(day: str) -> list[str]:
        environ = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
        command = [sys.executable, "-c", LISTED, day]
        return subprocess.run(command, capture_output=True, text=True, check=True, env=environ).stdout.split()

    assert look_up("2026-11-17") == ["True", "True"]
    assert look_up("2026-11-17") == ["True", "False"]
    assert look_up("2026-11-18") == ["True", "True"], "another day may have another price"
    file = tmp_path / "quire" / "prices.json"
    file.write_text(file.read_text().replace("genai_prices", "other_prices"))
    assert look_up("2026-11-18") == ["True", "True"], "another list was installed"
    file.write_bytes(b"\xff{")
    assert look_up("2026-11-18") == ["True", "True"]
    file.unlink()
    file.mkdir()
    assert look_up("2026-11-18") == ["True", "True"], "a cache that cannot be written is not needed"
