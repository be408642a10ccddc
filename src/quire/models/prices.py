"""Find the price of a model offline: the user's own, none for a model of this machine, else that of the price list.

Money is counted in picodollars, whole numbers, and every division rounds up: a bound on money is never low. A price is
an upper bound of the price today: the most expensive tier that a call can reach, the most expensive hour of the day,
and no discount for input that a service may have cached. A model without a price is `Unpriced`, never free.

The price list takes a third of a second to load: only `rate_of` loads it, and only for a model whose price or window
is not known otherwise. The user's cache keeps listed prices for the rest of the day, so the next command is quick.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TypeAlias

from msgspec import MsgspecError, Struct, json
from msgspec.structs import replace

from quire.installed import add_extra
from quire.models.choose import CONTEXT_TOKENS, ModelSettings, Price, is_ollama_cloud, members_of, price_key
from quire.models.choose import PICODOLLARS as PICODOLLARS
from quire.models.choose import Unpriced as Unpriced  # a document without a known model needs no other price
from quire.source import written_beside

OLD_DAYS = 120
"""A price that was last looked at longer ago is old."""
YOUR_MACHINE = "your machine"
OWN = "[models.prices]"
_ADDRESSES = {
    "openai": "OPENAI_BASE_URL",
    "openai-chat": "OPENAI_BASE_URL",
    "openai-responses": "OPENAI_BASE_URL",
    "anthropic": "ANTHROPIC_BASE_URL",
    "google": "GOOGLE_GEMINI_BASE_URL",
    "google-cloud": "GOOGLE_VERTEX_BASE_URL",
    "groq": "GROQ_BASE_URL",
    "moonshotai": "MOONSHOTAI_BASE_URL",
    "cohere": "CO_BASE_URL",
}
"""Variables that send the calls of a provider to another address."""


class PriceTier(Struct, frozen=True):
    """Dollars per million tokens of all tokens of a call that reads more than `above` tokens."""

    above: int
    input: Decimal
    output: Decimal


class ModelRate(Struct, frozen=True):
    """The price of a model on a day."""

    spec: str
    """The model itself, not a tier."""
    input: Decimal = Decimal(0)
    """Dollars per million tokens that it reads, in a call below all tiers."""
    output: Decimal = Decimal(0)
    """The same for those that it writes."""
    tiers: tuple[PriceTier, ...] = ()
    """In ascending order."""
    call: Decimal = Decimal(0)
    """Dollars of each call in addition."""
    context: int | None = None
    """The most tokens that a call may read; None if it is not known."""
    source: str = ""
    """Where the price is from: `genai-prices 0.2.1`, `contract`, `your machine`."""
    date: datetime.date | None = None
    """The day on which the price was last looked at; None if it is not known."""
    is_list_date: bool = False
    """True if the date is that of the whole list, because the model has none of its own."""
    free: bool = False
    """True for a model of the user's own machine; a listed price may be 0 as well."""
    changes: datetime.date | None = None
    """The day on which the list has another price of the model next."""
    premises: tuple[str, ...] = ()
    """Conditions under which the price is an upper bound and that the engine does not enforce."""
    comment: str = ""
    """The comment of the list."""

    def at(self, tokens: int | None = None) -> tuple[Decimal, Decimal]:
        """Return the most that a million tokens cost, read and written, in a call that reads at most `tokens`.

        None stands for as many as the model can read by the list. A number is believed, even a larger one."""
        most = self.context if tokens is None else tokens
        reached = [tier for tier in self.tiers if most is None or most > tier.above]
        return (
            max([self.input, *(tier.input for tier in reached)]),
            max([self.output, *(tier.output for tier in reached)]),
        )

    def picodollars(self, tokens: int | None = None) -> tuple[int, int]:
        """Return the most that one token costs, read and written, as `at` has it."""
        read, written = self.at(tokens)
        return picodollars(read, 1_000_000), picodollars(written, 1_000_000)

    @property
    def call_picodollars(self) -> int:
        return picodollars(self.call)

    def cost(self, read: int, written: int) -> int:
        """Return the most that a call costs, in picodollars, that reads and writes at most this many tokens."""
        each_read, each_written = self.picodollars(read)
        return read * each_read + written * each_written + self.call_picodollars

    def age(self, today: datetime.date) -> int | None:
        """Return for how many days the price has not been looked at; None if that is not known."""
        return None if self.date is None else max(0, (today - self.date).days)

    def is_old(self, today: datetime.date) -> bool:
        """Tell whether the price is known to be older than `OLD_DAYS`."""
        age = self.age(today)
        return age is not None and age > OLD_DAYS


Rate: TypeAlias = ModelRate | Unpriced


def rate_of(spec: str, settings: ModelSettings, today: datetime.date, environ: Mapping[str, str] = os.environ) -> Rate:
    """Return the price of a model or tier on a day. Nothing is opened, and no key is needed."""
    spec = price_key(spec, settings)
    if len(members := members_of(spec)) > 1:
        return _dearest(spec, [rate_of(member, settings, today, environ) for member in members])
    own, window = settings.prices.get(spec), settings.windows.get(spec)
    if own is not None and window is not None:
        return replace(own_rate(spec, own), context=window)
    rate = _rate_without_settings(spec, settings, today, environ)
    context = rate.context if window is None else window
    if own is not None:
        return replace(own_rate(spec, own), context=context)
    if isinstance(rate, Unpriced):
        reason = f'{rate.reason}; [models.prices."{spec}"] in the quire.toml of your user folder sets it'
        return Unpriced(spec, reason, context)
    return replace(rate, context=context)


def _dearest(spec: str, rates: Sequence[Rate]) -> Rate:
    """Return a price that no model of a list exceeds, under the name of the most expensive one."""
    windows = [rate.context for rate in rates]
    context = None if None in windows else max(filter(None, windows))
    for rate in rates:
        if isinstance(rate, Unpriced):
            return Unpriced(spec, f"{rate.spec}: {rate.reason}", context)
    priced = [rate for rate in rates if isinstance(rate, ModelRate)]
    top = max(priced, key=lambda rate: rate.at()[::-1])
    return replace(
        top,
        input=max(rate.input for rate in priced),
        output=max(rate.output for rate in priced),
        tiers=tuple(tier for rate in priced for tier in rate.tiers),
        call=max(rate.call for rate in priced),
        context=context,
        source=f"{top.source}, the most expensive of {spec}",
        premises=tuple(dict.fromkeys(premise for rate in priced for premise in rate.premises)),
    )


def _rate_without_settings(
    spec: str, settings: ModelSettings, today: datetime.date, environ: Mapping[str, str]
) -> Rate:
    provider, _, name = spec.partition(":")
    if problem := _without_list(spec, provider, name, settings, environ):
        return Unpriced(spec, problem)
    if provider in ("local", "ollama"):
        window = CONTEXT_TOKENS if provider == "local" else None
        return ModelRate(spec, source=YOUR_MACHINE, free=True, context=window)
    address = environ.get(_ADDRESSES.get(provider, ""), "")
    kept = _RateCache(today)
    if rate := kept.rates.get(f"{spec} {address} {settings.cache}"):
        return rate
    try:
        from quire.models.price_list import listed_rate
    except ImportError:
        return Unpriced(spec, f"the price list is not installed: {add_extra('llm')}")
    listed = listed_rate(spec, name, provider, address, today, settings.cache)
    if isinstance(listed, ModelRate):
        kept.keep(f"{spec} {address} {settings.cache}", listed)
    return listed


class _RateCache:
    """The prices of one day and one version of the list, in a file of the user's cache.

    A file that cannot be read or written is a cache without prices."""

    def __init__(self, today: datetime.date) -> None:
        import platformdirs

        self._file = platformdirs.user_cache_path("quire", appauthor=False) / "prices.json"
        self._today = today
        self._list = _list_identity()
        self.rates: dict[str, ModelRate] = {}
        try:
            kept = json.decode(self._file.read_bytes(), type=_KeptRates)
        except (OSError, MsgspecError):
            return
        if (kept.list, kept.day) == (self._list, today):
            self.rates = kept.rates

    def keep(self, key: str, rate: ModelRate) -> None:
        data = json.encode(_KeptRates(self._list, self._today, {**self.rates, key: rate}))
        with suppress(OSError):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with written_beside(self._file, data) as new:
                new.replace(self._file)


class _KeptRates(Struct, frozen=True):
    list: str
    day: datetime.date
    rates: dict[str, ModelRate]


@cache
def _list_identity() -> str:
    """Return values that change with the installed list, without loading it. Empty if there is none."""
    spec = find_spec("genai_prices")
    if spec is None or spec.origin is None:
        return ""
    status = Path(spec.origin).stat()  # an installation writes all files of the list anew
    return f"{spec.origin} {status.st_size} {status.st_mtime_ns}"


def _without_list(
    spec: str, provider: str, name: str, settings: ModelSettings, environ: Mapping[str, str]
) -> str | None:
    """Return why no list can have the price of a model; None if one may have it, or it is free."""
    if spec.startswith(("http://", "https://")):
        return "an address has no list of prices"
    if not name:
        return "the name of a model is PROVIDER:NAME"
    if provider == "script":
        return "a script says what its replies cost"
    if provider in settings.providers and provider != "local":
        return "a service of quire.toml has no list of prices"
    if provider == "ollama" and is_ollama_cloud(name, environ):
        return "the cloud of Ollama has no list of prices"
    return None


def own_rate(spec: str, price: Price) -> ModelRate:
    """Return a price of the user's own file. Numbers are taken as they are written there."""
    read, written = Decimal(repr(price.input)), Decimal(repr(price.output))
    return ModelRate(spec, read, written, source=price.source or OWN, date=price.date)


def picodollars(dollars: Decimal, parts: int = 1) -> int:
    """Return the picodollars of one of `parts` equal parts of an amount, rounded up."""
    over, under = dollars.as_integer_ratio()
    return -(-over * PICODOLLARS // (under * parts))


def dollars(amount: int) -> float:
    """Return picodollars as the nearest float of dollars: a cost of 60 cents is not above a budget of 0.60."""
    return amount / PICODOLLARS


def rounded_dollars(amount: int, decimals: int = 2) -> Decimal:
    """Return picodollars as dollars with this many decimals, rounded up: a bound that is shown stays one."""
    step = 10 ** (12 - decimals)
    return Decimal(-(-amount // step)).scaleb(-decimals)
