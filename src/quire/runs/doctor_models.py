"""Findings of the doctor, and those about models: what the settings say of them, and what is on this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

if TYPE_CHECKING:
    from quire.models.choose import CallSettings, ProviderLimits
    from quire.values import Value
    from quire.workspace.settings import AgentSettings, Settings

State = Literal["ok", "missing", "problem"]


class Finding(Struct, frozen=True):
    """One line of the report."""

    what: str
    state: State
    """`missing` is something that a run may do without; `problem` is something to repair."""
    detail: str

    def data(self) -> dict[str, Value]:
        """Return the line as JSON."""
        return {"what": self.what, "state": self.state, "detail": self.detail}


def configured_models(settings: Settings) -> Iterator[Finding]:
    """Yield the providers, tiers, agents, limits and prices of the settings."""
    models = settings.models
    for name, provider in sorted(models.providers.items()):
        if provider.api_key_env and not os.environ.get(provider.api_key_env):
            yield Finding(f"provider {name}", "missing", f"{provider.api_key_env} is not set")
        else:
            yield Finding(f"provider {name}", "ok", provider.base_url)
    for name, spec in sorted(models.tiers.items()):
        yield Finding(f"tier {name}", "ok", ", ".join([spec, *_call(models.settings_of(name))]))
    for name, agent in sorted(settings.agents.items()):
        yield Finding(f"agent {name}", "ok", ", ".join(_agent(agent)) or "as the run")
    for whose, limits in (("", models.limits), (" (of the workspace)", models.folder_limits)):
        for name, one in sorted(limits.items()):
            yield Finding(f"limits of {name}{whose}", "ok", ", ".join(_limits(one)) or "none")
    for name, price in sorted(models.prices.items()):
        since = ", ".join(str(one) for one in (price.source, price.date) if one)
        known = f"${price.input:g} in, ${price.output:g} out per million tokens{f' ({since})' if since else ''}"
        yield Finding(f"price of {name}", "ok", known)


def _agent(agent: AgentSettings) -> Iterator[str]:
    yield from [agent.model] if agent.model else []
    yield from _call(agent.call)
    yield from [f"{agent.turns} turns"] if agent.turns else []
    yield from [f"tools {' '.join(agent.tools)}"] if agent.tools else []


def _call(call: CallSettings) -> Iterator[str]:
    if call.temperature is not None:
        yield f"temperature {call.temperature:g}"
    if call.max_tokens is not None:
        yield f"replies of at most {call.max_tokens:,} tokens"
    if call.reasoning:
        yield f"reasoning {call.reasoning}"
    if call.timeout is not None:
        yield f"timeout {call.timeout:g} s"
    if call.at_once is not None:
        yield f"{call.at_once} at once"


def _limits(limits: ProviderLimits) -> Iterator[str]:
    for most, words in (
        (limits.at_once, "calls at once"),
        (limits.calls_per_minute, "calls a minute"),
        (limits.tokens_per_minute, "tokens a minute"),
    ):
        if most is not None:
            yield f"{most:,} {words}"


def models_here() -> Iterator[Finding]:
    """Yield the keys in the environment and the models that were pulled."""
    from quire.models.choose import MODEL_BY_KEY
    from quire.models.downloads import models_folder, pulled_models

    # Names only: a value of the environment is never printed.
    present = [name for name in MODEL_BY_KEY if os.environ.get(name)]
    yield Finding("provider keys", "ok" if present else "missing", ", ".join(present) or "none in the environment")
    pulled = [one.name for one in pulled_models()]
    if pulled:
        yield Finding("embedded models", "ok", ", ".join(pulled))
    else:
        yield Finding("embedded models", "missing", f"none in {models_folder()}: quire model pull smollm2")
