"""Read the tables `[models]` and `[agents]`, and combine those of the user with those of a workspace.

A workspace may set the temperature of a tier or an agent that the user has too. Of its limits (the longest reply, the
turns, the calls side by side, how much a model thinks) the smaller counts, whichever file it is in.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from quire.engine.premises import TIMEOUT, smallest
from quire.models.choose import NO_SETTINGS, CallSettings, ModelSettings, Price, ProviderLimits, ProviderSettings
from quire.plan.vocabulary import REASONING
from quire.workspace.settings import AgentSettings
from quire.workspace.tables import Table, whole_table

HOTTEST = 2
"""The highest temperature that services take."""


@whole_table
def read_models(table: Table) -> ModelSettings:
    default = table.model("default")
    tiers, settings = _tiers(table.table("tiers"))
    providers: dict[str, ProviderSettings] = {}
    for name, provider in table.tables("providers").items():
        url = provider.text("base_url")
        if url is None and "base_url" not in provider.data:
            provider.wrong("needs a base_url")
        providers[name] = ProviderSettings(url or "", provider.text("api_key_env"), provider.duration("timeout"))
        provider.end()
    timeout = table.duration("timeout") or TIMEOUT
    prices, windows = _prices(table.tables("prices"))
    limits = {name: _limits(provider) for name, provider in table.tables("limits").items()}
    cache = table.flag("cache", True)
    return ModelSettings(default, tiers, settings, providers, timeout, prices, windows, limits, cache=cache)


def _tiers(table: Table) -> tuple[dict[str, str], dict[str, CallSettings]]:
    """Return the models of the tiers, and the settings of those that are tables."""
    models: dict[str, str] = {}
    settings: dict[str, CallSettings] = {}
    for name, value in table.data.items():
        if isinstance(value, Mapping):
            tier = table.table(name)
            model = tier.model("model")
            if "model" not in value:
                tier.wrong("needs a model")
            settings[name] = _call_settings(tier)
            tier.end()
        else:
            model = table.model(name, "text, a list of texts or a table")
        if model is not None:
            models[name] = model
    return models, settings


def _call_settings(table: Table) -> CallSettings:
    return CallSettings(
        temperature=table.number("temperature", HOTTEST),
        max_tokens=table.positive("max_tokens"),
        reasoning=table.choice("reasoning", REASONING) or "",
        timeout=table.duration("timeout"),
        at_once=table.positive("at_once"),
    )


@whole_table
def _limits(table: Table) -> ProviderLimits:
    return ProviderLimits(
        table.positive("at_once"), table.positive("calls_per_minute"), table.positive("tokens_per_minute")
    )


def _prices(tables: Mapping[str, Table]) -> tuple[dict[str, Price], dict[str, int]]:
    """Return the prices of models, and their windows: a table may have the window alone."""
    prices: dict[str, Price] = {}
    windows: dict[str, int] = {}
    for name, table in tables.items():
        read, written = table.amount("input"), table.amount("output")
        source, date = table.text("from") or "", table.date("date")
        if window := table.positive("window"):
            windows[name] = window
        if not {"input", "output"} <= table.data.keys() and table.data.keys() != {"window"}:
            table.wrong("needs input and output, in dollars per million tokens")
        table.end()
        if read is not None and written is not None:
            prices[name] = Price(read, written, source, date)
    return prices, windows


@whole_table
def read_agent(table: Table) -> AgentSettings:
    return AgentSettings(
        table.text("model"),
        table.text("system") or "",
        table.texts("tools"),
        table.positive("turns"),
        _call_settings(table),
    )


def combined_models(
    merged: ModelSettings, own: ModelSettings, theirs: ModelSettings, agents: Mapping[str, AgentSettings], folder: str
) -> ModelSettings:
    """Return the settings of both files, with the limits of each: those of the user hold for all workspaces."""
    at_once = {name: agent.call.at_once for name, agent in agents.items()}
    default = merged.default
    if own.default and default and own.tiers.get(own.default, own.default) == merged.tiers.get(default, default):
        default = own.default  # the same model: it keeps the settings of the user's tier
    return replace(
        merged,
        default=default,
        tier_settings={
            name: limited(settings, own.tier_settings.get(name, NO_SETTINGS))
            for name, settings in {**dict.fromkeys(merged.tiers, NO_SETTINGS), **merged.tier_settings}.items()
        },
        limits=own.limits,
        folder=folder,
        folder_limits=theirs.limits,
        agent_limits={name: most for name, most in at_once.items() if most is not None},
    )


def combined_agents(
    merged: Mapping[str, AgentSettings], own: Mapping[str, AgentSettings]
) -> Mapping[str, AgentSettings]:
    """Return the agents of both files: of one that both define, no limit is above the user's."""
    return {
        name: replace(agent, turns=smallest(agent.turns, own[name].turns), call=limited(agent.call, own[name].call))
        if name in own
        else agent
        for name, agent in merged.items()
    }


def limited(settings: CallSettings, own: CallSettings) -> CallSettings:
    """Return the settings with no limit above the user's own."""
    efforts = [effort for effort in (settings.reasoning, own.reasoning) if effort]
    return replace(
        settings,
        max_tokens=smallest(settings.max_tokens, own.max_tokens),
        at_once=smallest(settings.at_once, own.at_once),
        reasoning=min(efforts, key=REASONING.index, default=""),
    )
