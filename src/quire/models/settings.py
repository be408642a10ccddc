"""What the workspace says about models; the reader of `quire.toml` builds it, everything here reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

TIMEOUT = 120.0
"""Seconds in which a service must send something, where nobody says otherwise."""


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """An OpenAI-compatible service. Without `api_key_env` it gets no key at all, whatever the environment holds.

    `timeout` is its own, in seconds; None is that of all models.
    """

    base_url: str
    api_key_env: str | None = None
    timeout: float | None = None


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars per million tokens."""

    input: float
    output: float


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """`[models]`: a tier is a name that may stand wherever a model is named.

    `timeout` is how many seconds a service may be silent, before a reply and in the middle of one.
    """

    default: str | None = None
    tiers: Mapping[str, str] = field(default_factory=dict)
    providers: Mapping[str, ProviderSettings] = field(default_factory=dict)
    timeout: float = TIMEOUT
    prices: Mapping[str, Price] = field(default_factory=dict)
    """By the name of a model; only the user's own file sets them."""


def price_key(spec: str, settings: ModelSettings) -> str:
    """The name under which the price of a model is looked for: that behind a tier."""
    return settings.tiers.get(spec, spec)
