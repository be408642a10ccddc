"""Resolve a directive's `<model tier id fallback>` to a model, and say why.

A tier is a size of model, not a model: `[models.tiers]` of quire.toml says what it means in a workspace; if it does
not, the provider whose key is set has a model of that size. An `id` takes precedence over the tier if its provider can
be reached; a directive can never name an address or a script instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from quire.errors import CannotStart
from quire.models.choose import MODEL_BY_KEY, NO_SETTINGS, Choice, ModelSettings, choose_model, members_of

_LOW = ("low", "haiku", "fast", "cheap", "small", "mini")
_GENERAL = ("general", "sonnet", "medium", "balanced", "standard")
_HIGH = ("high", "opus", "max", "orchestrator")
FAMILIES = (_LOW, _GENERAL, _HIGH)
"""Tiers that mean the same size, each with its alternative names, the likeliest first."""

_ALWAYS = ("low", "haiku", "sonnet", "general", "orchestrator")
_INSTEAD: Mapping[tuple[str, ...], tuple[str, ...]] = {
    _LOW: (*_LOW, *_GENERAL, *_HIGH),
    _GENERAL: (*_GENERAL, *_HIGH, *_LOW),
    _HIGH: (*reversed(_HIGH), *_GENERAL, *_LOW),
}

TIER_MODELS: Mapping[str, Mapping[str, str]] = {
    "anthropic": {"low": "claude-haiku-5-5", "high": "claude-opus-5-5"},
    "openai": {"low": "gpt-5.4-mini", "high": "gpt-6.1-sol"},
    "google": {"low": "gemini-flash-lite-latest"},
    "deepseek": {"low": "deepseek-v4-flash"},
    "groq": {"low": "openai/gpt-oss-20b"},
    "mistral": {"low": "mistral-small-latest"},
    "xai": {"low": "grok-4-1-fast"},
}
"""A provider's models in the sizes that its default model does not cover."""

_MAKERS = {
    "claude": "anthropic",
    "gpt-": "openai",
    "o1": "openai",
    "o3": "openai",
    "o4": "openai",
    "chatgpt": "openai",
    "gemini": "google",
    "deepseek": "deepseek",
    "kimi": "moonshotai",
    "moonshot": "moonshotai",
    "mistral": "mistral",
    "codestral": "mistral",
    "grok": "xai",
}
_HERE = ("ollama", "local")


def choose(
    attributes: Mapping[str, str],
    providers: Mapping[str, Mapping[str, str]],
    default_provider: str | None,
    default_model: str | None,
) -> str:
    """Return the model's id from the tiers of several providers: by `id`, `tier`, `fallback`, or the default.

    Raises `CannotStart` if none of these gives a model, or if several providers have the tier and it is not clear which
    is meant.
    """
    if attributes.get("id", "").strip():
        return attributes["id"].strip()
    provider = attributes.get("provider", "").strip() or default_provider
    tiers = [name for key in ("tier", "fallback") if (name := attributes.get(key, "").strip())]
    for tier in tiers:
        model = _at_providers(tier, providers, provider)
        if model is not None:
            return model
    if default_model:
        return default_model
    general = _at_providers("general", providers, provider)
    if general is None:
        named = f"tier {tiers[0]} is unknown, and no default model is set" if tiers else "no default model is set"
        raise CannotStart(f"{named}: set `[models] default` or `[models.tiers] general` in quire.toml")
    return general


def _at_providers(tier: str, providers: Mapping[str, Mapping[str, str]], own: str | None) -> str | None:
    if own is not None and own in providers:
        name = _stand_in(tier, providers[own])
        if name is not None:
            return providers[own][name]
    having = {provider: name for provider, tiers in providers.items() if (name := _stand_in(tier, tiers)) is not None}
    if len(having) > 1:
        raise CannotStart(
            f"tier {tier} is ambiguous: several providers have it ({', '.join(having)}); say which is meant"
        )
    return next((providers[provider][name] for provider, name in having.items()), None)


def _stand_in(tier: str, tiers: Iterable[str]) -> str | None:
    """Return the tier itself, one of the same size, or, for a tier that every directive may rely on, the next best."""
    names = list(tiers)
    if tier in names:
        return tier
    family = _family(tier)
    if family is None:
        return None
    accepted = _INSTEAD[family] if tier in _ALWAYS else _INSTEAD[family][: len(family)]
    other = next((name for name in accepted if name in names), None)
    return other or (names[0] if names and tier in _ALWAYS else None)


def _family(tier: str) -> tuple[str, ...] | None:
    return next((family for family in FAMILIES if tier in family), None)


def thread_model(
    attributes: Mapping[str, str], models: ModelSettings, environ: Mapping[str, str], *, offline: bool = False
) -> Choice:
    """Choose the model of a thread.

    Raises `NoModel`. Contacts a service only if no other source names a model (see `choose_model`).
    """
    passed: list[str] = []
    named = attributes.get("id", "").strip()
    if named:
        spec, problem = _by_id(named, attributes.get("provider", "").strip(), models, environ)
        if spec:
            return Choice(spec, f"the directive's model id {named}")
        passed.append(problem)
    for key in ("tier", "fallback"):
        tier = attributes.get(key, "").strip()
        if not tier:
            continue
        choice = _by_tier(tier, models, environ)
        if choice is not None:
            what = f"the directive's {key} {tier}"
            return Choice(choice.spec, _because(passed, f"{what}: {choice.reason}"), choice.settings)
        passed.append(f"{key} {tier} has no model here")
    default = choose_model(None, None, models, environ, offline=offline)
    return Choice(default.spec, _because(passed, default.reason), default.settings)


def _by_id(named: str, provider: str, models: ModelSettings, environ: Mapping[str, str]) -> tuple[str, str]:
    """Return the name to open and an empty text, or an empty name and why the model is not available."""
    head, colon, _ = named.partition(":")
    if len(members_of(named)) > 1:
        return "", f"{named} is a list, and only settings have lists"
    maker = head if colon else provider or next((of for start, of in _MAKERS.items() if named.startswith(start)), "")
    spec = named if colon else f"{maker}:{named}"
    if not maker:
        return "", f"no provider is known to have the model {named}"
    if maker in models.providers:
        variable = models.providers[maker].api_key_env
        reached = not variable or bool(environ.get(variable))
        return (spec, "") if reached else ("", f"model {named} needs {variable}")
    if maker in _HERE:
        return spec, ""
    keys = [variable for variable, default in MODEL_BY_KEY.items() if default.partition(":")[0] == maker]
    if any(environ.get(variable) for variable in keys):
        return spec, ""
    return "", f"model {named} needs {' or '.join(keys)}" if keys else f"no provider {maker} is configured for {named}"


def _by_tier(tier: str, models: ModelSettings, environ: Mapping[str, str]) -> Choice | None:
    """Look up a tier: first in the workspace's settings, then by its default model's provider, then by the first key
    set."""
    family = _family(tier)
    same = [tier, *(name for name in _INSTEAD[family][: len(family)] if name != tier)] if family else [tier]
    for name in same:
        if name in models.tiers:
            return Choice(models.tiers[name], f"[models.tiers] {name}", models.settings_of(name))
    if family is None:
        return None
    if models.default is not None:
        spec = models.tiers.get(models.default, models.default)
        sized = _sized(spec, family, models)
        settings = models.settings_of(models.default) if sized == spec else NO_SETTINGS
        return Choice(sized, "[models] default", settings)
    for variable, spec in MODEL_BY_KEY.items():
        if environ.get(variable):
            return Choice(_sized(spec, family, models), f"{variable} is set")
    return None


def _sized(spec: str, family: tuple[str, ...], models: ModelSettings) -> str:
    """Return the provider's model of that size if it is known; otherwise the model itself."""
    provider = spec.partition(":")[0]
    if family == _GENERAL or provider in models.providers:
        return spec
    name = TIER_MODELS.get(provider, {}).get(family[0])
    return f"{provider}:{name}" if name else spec


def step_models(models: ModelSettings) -> tuple[str, ...]:
    """Return all names of tiers that a step of a playbook can ask for."""
    return (*models.tiers, *(name for family in FAMILIES for name in family))


def step_model(name: str, models: ModelSettings, own: str) -> str | None:
    """Return the model of a step whose playbook, which is not signed, asks for a tier; None if the tier is not known
    here. `own` is the run's model, and an empty text stands for it.

    Only the settings can make a step more expensive, or send it elsewhere: without them a small tier is a smaller model
    of the provider that the run uses anyway, and a large one is not known.
    """
    family = _family(name)
    for tier in (name, *(family or ())):
        if tier in models.tiers:
            return tier
    if family is _LOW:
        small = _sized(models.tiers.get(own, own), family, models)
        return "" if small == own else small
    return "" if family is _GENERAL else None


def _because(passed: list[str], reason: str) -> str:
    return "; ".join([*passed, reason])
