"""What the workspace says about models; the reader of `quire.toml` builds it, everything here reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """An OpenAI-compatible service. Without `api_key_env` it gets no key at all, whatever the environment holds."""

    base_url: str
    api_key_env: str | None = None


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """`[models]`: a tier is a name that may stand wherever a model is named."""

    default: str | None = None
    tiers: Mapping[str, str] = field(default_factory=dict)
    providers: Mapping[str, ProviderSettings] = field(default_factory=dict)
