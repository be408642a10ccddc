"""Read prices from genai-prices, the list that is installed with the library for hosted models.

Importing this module imports the list, which takes a third of a second: only code that needs a listed price does it.
The list does not say when it was made (`DataSnapshot.timestamp` is the moment of its import). Comments of models say
when their price was last looked at; for other models the date is the last one that the list mentions anywhere, and the
list is at least that new.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from typing import TypeAlias

import genai_prices
from genai_prices.data_snapshot import get_snapshot
from genai_prices.types import ConditionalPrice, ModelInfo, ModelPrice, StartDateConstraint, TieredPrices

from quire.models.prices import ModelRate, PriceTier, Unpriced

SOURCE = f"genai-prices {genai_prices.__version__}"
LONGEST_COMMENT = 600

_DAY = r"(20\d\d-\d\d-\d\d)"
_CHECKED = re.compile(rf"(?:verified|checked|confirmed|as of|last updated)\b(?: on| at)?:? {_DAY}", re.IGNORECASE)
_ANY_DAY = re.compile(_DAY)

_CACHES_IF_ASKED = frozenset(("anthropic", "aws", "google"))
"""Providers that cache input only for calls that ask for it: Quire asks Anthropic. Elsewhere a call may be charged for
writing the cache, which can be dearer than reading without one."""

_BY_NAME = frozenset(("openai-decisions",))
"""Providers that share an address with another one."""

Listed: TypeAlias = "Decimal | TieredPrices | None"


@lru_cache(maxsize=256)
def listed_rate(
    spec: str, model: str, provider: str, address: str, today: datetime.date, caches: bool = False
) -> ModelRate | Unpriced:
    """Return the listed price of a model of a provider.

    The address comes first, and then the name of the provider, as where the library counts the cost of a reply."""
    there = _find(model, None, address) if address and provider not in _BY_NAME else None
    entry = there or _find(model, provider, None)
    if entry is None:
        return Unpriced(spec, f"{SOURCE} has no price of {model} by {provider}")
    owner, info = entry
    prices, changes = _prices_of(info, today)
    writes_cache = owner not in _CACHES_IF_ASKED or (caches and owner == "anthropic")
    levels = [_level(prices, above, writes_cache) for above in _levels(prices)]
    for price, direction in ((levels[0][1], "reads"), (levels[0][2], "writes")):
        if price is None:
            why = f"{SOURCE} has no price of the tokens that {model} {direction}"
            return Unpriced(spec, why, info.context_window)
    tiers = tuple(PriceTier(above, read or Decimal(0), written or Decimal(0)) for above, read, written in levels)
    checked = _last(_CHECKED, info.price_comments or "", today)
    return ModelRate(
        spec,
        tiers[0].input,
        tiers[0].output,
        tiers[1:],
        max(_dearest_tier(_get(price_then, "requests_kcount")) or Decimal(0) for price_then in prices) / 1000,
        info.context_window,
        SOURCE,
        checked or list_date(today),
        is_list_date=checked is None,
        changes=changes,
        premises=tuple(_premises(info, prices, "" if there else address)),
        comment=" ".join((info.price_comments or "").split())[:LONGEST_COMMENT],
    )


@lru_cache(maxsize=8)
def list_date(today: datetime.date) -> datetime.date | None:
    """Return the last day, up to today, that the list mentions anywhere; the list was made then or later."""
    days = []
    for provider in get_snapshot().providers:
        days.append(_last(_ANY_DAY, provider.price_comments or "", today))
        for model in provider.models:
            days.append(_last(_ANY_DAY, model.price_comments or "", today))
            days += [start for start in _starts(model) if start <= today]
    return max((day for day in days if day is not None), default=None)


def _find(model: str, provider: str | None, address: str | None) -> tuple[str, ModelInfo] | None:
    """Return the id of a provider in the list, and its model."""
    try:
        owner, info = get_snapshot().find_provider_model(model, None, provider, address)
    except LookupError:
        return None
    return owner.id, info


def _prices_of(info: ModelInfo, today: datetime.date) -> tuple[list[ModelPrice], datetime.date | None]:
    """Return the prices that may hold at some hour of the day, and the day of the next change."""
    if isinstance(info.prices, ModelPrice):
        return [info.prices], None
    changes = min((start for start in _starts(info) if start > today), default=None)
    prices: list[ModelPrice] = []
    for price in reversed(info.prices):  # the last one that holds is taken
        if isinstance(price.constraint, StartDateConstraint) and price.constraint.start_date > today:
            continue
        prices.append(price.prices)
        if price.constraint is None or isinstance(price.constraint, StartDateConstraint):
            return prices, changes
    return [*prices, info.prices[0].prices], changes


def _starts(info: ModelInfo) -> Iterator[datetime.date]:
    conditional: list[ConditionalPrice] = [] if isinstance(info.prices, ModelPrice) else info.prices
    for price in conditional:
        if isinstance(price.constraint, StartDateConstraint):
            yield price.constraint.start_date


_READ = ("input_mtok",)
_CACHE = ("cache_write_mtok",)
_WRITTEN = ("output_mtok", "output_reasoning_mtok")


def _levels(prices: list[ModelPrice]) -> list[int]:
    """Return 0, and the numbers of tokens above which another price holds, in ascending order."""
    tiered = [_get(price, key) for price in prices for key in (*_READ, *_CACHE, *_WRITTEN)]
    return sorted({0, *(tier.start for price in tiered if isinstance(price, TieredPrices) for tier in price.tiers)})


def _level(prices: list[ModelPrice], above: int, writes_cache: bool) -> tuple[int, Decimal | None, Decimal | None]:
    """Return the highest prices per million tokens, read and written, of calls that read more than `above`."""
    read = (*_READ, *_CACHE) if writes_cache else _READ
    return above, _dearest(prices, read, above), _dearest(prices, _WRITTEN, above)


def _dearest(prices: list[ModelPrice], keys: tuple[str, ...], above: int) -> Decimal | None:
    """Return None if one of the prices lacks the first key."""
    if any(_get(price, keys[0]) is None for price in prices):
        return None
    reached = (_above(_get(price, key), above) for price in prices for key in keys)
    return max(price for price in reached if price is not None)


def _above(price: Listed, above: int) -> Decimal | None:
    if not isinstance(price, TieredPrices):
        return price
    reached = [tier.price for tier in price.tiers if tier.start <= above]
    return reached[-1] if reached else price.base


def _get(price: ModelPrice, key: str) -> Listed:
    listed: Listed = vars(price).get(key)
    return listed


def _premises(info: ModelInfo, prices: list[ModelPrice], unknown_address: str) -> Iterator[str]:
    if unknown_address:
        yield f"{unknown_address} asks the prices of the provider itself"
    dearer = [
        " ".join(f"{key} {value}" for key, value in variant.when.items())
        for variant in info.price_variants or ()
        if any(_costs_more(variant.prices, prices, key) for key in (*_READ, *_WRITTEN, "requests_kcount"))
    ]
    if dearer:
        yield f"calls are not served at a dearer rate ({', '.join(dict.fromkeys(dearer))})"
    if "search" in info.id or "sonar" in info.id:
        yield "searches that the model makes by itself are not counted"


def _costs_more(variant: ModelPrice, prices: list[ModelPrice], key: str) -> bool:
    most = _dearest_tier(_get(variant, key))
    return most is not None and most > max(_dearest_tier(_get(price, key)) or Decimal(0) for price in prices)


def _dearest_tier(price: Listed) -> Decimal | None:
    return max([price.base, *(tier.price for tier in price.tiers)]) if isinstance(price, TieredPrices) else price


def _last(pattern: re.Pattern[str], text: str, today: datetime.date) -> datetime.date | None:
    days = []
    for written in pattern.findall(text):
        try:
            day = datetime.date.fromisoformat(written)
        except ValueError:
            continue
        if day <= today:
            days.append(day)
    return max(days, default=None)
