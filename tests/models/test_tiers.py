from __future__ import annotations

import pytest

from quire.errors import CannotStart, NoModel
from quire.models.choose import MODEL_BY_KEY, CallSettings, ModelSettings, ProviderSettings
from quire.models.tiers import TIER_MODELS, choose, thread_model

NOWHERE = {"OLLAMA_HOST": "127.0.0.1:9", "QUIRE_MODELS": "/nonexistent"}
FOUR = {"fast": "m-fast", "general": "m-general", "high": "m-high", "max": "m-max"}


@pytest.mark.parametrize(
    ("attributes", "providers", "provider", "default", "chosen"),
    [
        ({"tier": "fast"}, {"a": FOUR}, "a", None, "m-fast"),
        ({"tier": "fast", "id": "mine"}, {"a": FOUR}, "a", "d", "mine"),
        ({}, {"a": FOUR}, "a", None, "m-general"),
        ({}, {"a": FOUR}, "a", "d", "d"),
        ({"tier": "low"}, {"a": FOUR}, "a", None, "m-fast"),
        ({"tier": "haiku"}, {"a": FOUR}, "a", "d", "m-fast"),
        ({"tier": "sonnet"}, {"a": FOUR}, "a", "d", "m-general"),
        ({"tier": "orchestrator", "fallback": "general"}, {"a": FOUR}, "a", "d", "m-max"),
        ({"tier": "haiku"}, {"a": {"max": "m-max"}}, "a", "d", "m-max"),
        ({"tier": "orchestrator"}, {"a": {"odd": "m-odd"}}, "a", "d", "m-odd"),
        ({"tier": "opus"}, {"a": {"general": "m-general"}}, "a", "d", "d"),
        ({"tier": "galactic", "fallback": "high"}, {"a": FOUR}, "a", "d", "m-high"),
        ({"tier": "galactic", "fallback": "cosmic"}, {"a": FOUR}, "a", "d", "d"),
        ({"tier": "galactic"}, {"a": FOUR}, "a", None, "m-general"),
        ({"tier": "fast", "fallback": "high"}, {"a": FOUR}, "a", "d", "m-fast"),
        ({"tier": "fast"}, {"a": FOUR, "b": {"fast": "b-fast"}}, "b", None, "b-fast"),
        ({"tier": "fast", "provider": "b"}, {"a": FOUR, "b": {"fast": "b-fast"}}, "a", None, "b-fast"),
        ({"tier": "fast"}, {"a": {"general": "x"}, "b": {"fast": "b-fast"}}, "a", None, "b-fast"),
        ({"tier": "fast"}, {"b": {"fast": "b-fast"}}, None, None, "b-fast"),
    ],
)
def test_the_order_of_a_choice(
    attributes: dict[str, str],
    providers: dict[str, dict[str, str]],
    provider: str | None,
    default: str | None,
    chosen: str,
) -> None:
    assert choose(attributes, providers, provider, default) == chosen


@pytest.mark.parametrize(
    ("attributes", "providers", "error"),
    [
        ({"tier": "fast"}, {"a": FOUR, "b": FOUR}, r"tier fast is ambiguous: several providers have it \(a, b\)"),
        ({"tier": "galactic"}, {}, "tier galactic is unknown, and no default model is set"),
        ({}, {}, "no default model is set"),
    ],
)
def test_no_choice_is_an_error(attributes: dict[str, str], providers: dict[str, dict[str, str]], error: str) -> None:
    with pytest.raises(CannotStart, match=error):
        choose(attributes, providers, None, None)


ANTHROPIC = {"ANTHROPIC_API_KEY": "k"}
OPENAI = {"OPENAI_API_KEY": "k"}
CONFIG = ModelSettings(
    default="mine:big", tiers={"low": "mine:small"}, providers={"mine": ProviderSettings("http://x")}
)
KEYED = ModelSettings(default="d:d", providers={"mine": ProviderSettings("http://x", "MINE_KEY")})
HAIKU = "claude-3-5-haiku-20241022"


@pytest.mark.parametrize(
    ("attributes", "models", "environ", "spec", "reason"),
    [
        ({"tier": "haiku", "id": HAIKU}, CONFIG, ANTHROPIC, f"anthropic:{HAIKU}", f"the directive's model id {HAIKU}"),
        (
            {"tier": "haiku", "id": HAIKU},
            CONFIG,
            {},
            "mine:small",
            f"model {HAIKU} needs ANTHROPIC_API_KEY; the directive's tier haiku: [models.tiers] low",
        ),
        ({"id": "gpt-6.1-sol"}, CONFIG, OPENAI, "openai:gpt-6.1-sol", "the directive's model id gpt-6.1-sol"),
        ({"id": "mine:x"}, CONFIG, {}, "mine:x", "the directive's model id mine:x"),
        ({"id": "x", "provider": "mine"}, CONFIG, {}, "mine:x", "the directive's model id x"),
        ({"id": "mine:x"}, KEYED, {}, "d:d", "model mine:x needs MINE_KEY; [models] default"),
        ({"id": "mine:x"}, KEYED, {"MINE_KEY": "k"}, "mine:x", "the directive's model id mine:x"),
        ({"id": "ollama:qwen3:4b"}, CONFIG, {}, "ollama:qwen3:4b", "the directive's model id ollama:qwen3:4b"),
        ({"id": "???"}, CONFIG, {}, "mine:big", "no provider is known to have the model ???; [models] default"),
        (
            {"id": "https://evil.example/v1#m"},
            CONFIG,
            ANTHROPIC,
            "mine:big",
            "no provider https is configured for https://evil.example/v1#m; [models] default",
        ),
        (
            {"id": "script:/etc/passwd"},
            CONFIG,
            {},
            "mine:big",
            "no provider script is configured for script:/etc/passwd; [models] default",
        ),
        ({"tier": "low"}, CONFIG, ANTHROPIC, "mine:small", "the directive's tier low: [models.tiers] low"),
        ({"tier": "orchestrator"}, CONFIG, {}, "mine:big", "the directive's tier orchestrator: [models] default"),
        (
            {"tier": "low"},
            ModelSettings(),
            ANTHROPIC,
            "anthropic:claude-haiku-5-5",
            "the directive's tier low: ANTHROPIC_API_KEY is set",
        ),
        (
            {"tier": "orchestrator"},
            ModelSettings(),
            ANTHROPIC,
            "anthropic:claude-opus-5-5",
            "the directive's tier orchestrator: ANTHROPIC_API_KEY is set",
        ),
        (
            {"tier": "sonnet"},
            ModelSettings(),
            OPENAI,
            MODEL_BY_KEY["OPENAI_API_KEY"],
            "the directive's tier sonnet: OPENAI_API_KEY is set",
        ),
        (
            {"tier": "low"},
            ModelSettings(default="anthropic:claude-opus-5-5"),
            OPENAI,
            "anthropic:claude-haiku-5-5",
            "the directive's tier low: [models] default",
        ),
        (
            {"tier": "galactic", "fallback": "low"},
            CONFIG,
            {},
            "mine:small",
            "tier galactic has no model here; the directive's fallback low: [models.tiers] low",
        ),
        ({"tier": "galactic"}, CONFIG, {}, "mine:big", "tier galactic has no model here; [models] default"),
        (
            {"tier": "galactic"},
            ModelSettings(tiers={"galactic": "mine:huge"}),
            {},
            "mine:huge",
            "the directive's tier galactic: [models.tiers] galactic",
        ),
        ({}, CONFIG, {}, "mine:big", "[models] default"),
    ],
)
def test_a_directives_model_in_this_workspace(
    attributes: dict[str, str], models: ModelSettings, environ: dict[str, str], spec: str, reason: str
) -> None:
    choice = thread_model(attributes, models, {**NOWHERE, **environ})
    assert (choice.spec, choice.reason) == (spec, reason)


def test_nothing_at_all_is_no_model() -> None:
    with pytest.raises(NoModel):
        thread_model({"tier": "low"}, ModelSettings(), NOWHERE)


def test_every_model_of_the_table_exists() -> None:
    models = pytest.importorskip("pydantic_ai.models")
    known = set(models.known_model_names())
    assert {f"{provider}:{name}" for provider, sizes in TIER_MODELS.items() for name in sizes.values()} <= known


def test_the_settings_of_a_tier_come_with_it() -> None:
    cool = CallSettings(temperature=0.0)
    models = ModelSettings(default="low", tiers={"low": "mine:small"}, tier_settings={"low": cool})
    for attributes in ({"tier": "low"}, {"tier": "haiku"}, {"fallback": "low"}, {"tier": "sonnet"}, {}):
        assert thread_model(attributes, models, {}).settings == cool
    assert thread_model({"id": "ollama:x"}, models, {}).settings == CallSettings()
