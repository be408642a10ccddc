"""Which model a run uses, and why: the first of what was asked for, what is configured, what is there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from quire.errors import NoModel
from quire.models.files import preferred_model
from quire.models.ollama import ollama_models, ollama_url
from quire.models.settings import ModelSettings


@dataclass(frozen=True, slots=True)
class Choice:
    """`reason` is for people: where the name came from."""

    spec: str
    reason: str


DEFAULTS: Mapping[str, str] = {
    "ANTHROPIC_API_KEY": "anthropic:claude-sonnet-5-5",
    "OPENAI_API_KEY": "openai:gpt-6.1-terra",
    "GOOGLE_API_KEY": "google:gemini-flash-latest",
    "GEMINI_API_KEY": "google:gemini-flash-latest",
    "DEEPSEEK_API_KEY": "deepseek:deepseek-v4-pro",
    "MOONSHOTAI_API_KEY": "moonshotai:kimi-k3.1-pro",
    "CEREBRAS_API_KEY": "cerebras:gpt-oss-120b",
    "GROQ_API_KEY": "groq:openai/gpt-oss-120b",
    "MISTRAL_API_KEY": "mistral:mistral-large-latest",
    "XAI_API_KEY": "xai:grok-4.7",
}
"""What a key in the environment stands for, in the order in which keys are looked at."""

WAYS = """no model is configured. Three ways to get one:
  - set a provider's key in the environment, such as ANTHROPIC_API_KEY or OPENAI_API_KEY
  - `quire model pull smollm2` fetches a small model that runs in this process, without a key
  - name one: `--model local:PATH.gguf`, or `NAME:MODEL` with `[models.providers.NAME] base_url` in quire.toml"""


def choose_model(asked: str | None, document: str | None, config: ModelSettings, environ: Mapping[str, str]) -> Choice:
    """Raises `NoModel`. Looks for a local Ollama (0.3 s at most) only when nothing before it answers."""
    for named, reason in ((asked, "--model"), (document, "the document"), (config.default, "[models] default")):
        if named:
            return _resolved(named, reason, config)
    for variable, spec in DEFAULTS.items():
        if environ.get(variable):
            return Choice(spec, f"{variable} is set")
    running = ollama_models(environ)
    if running:
        return Choice(f"ollama:{running[0]}", f"Ollama answers at {ollama_url(environ)}")
    pulled = preferred_model(environ)
    if pulled is not None:
        return Choice(f"local:{pulled.name}", "the embedded model is here and nothing else is")
    raise NoModel(WAYS)


def _resolved(named: str, reason: str, config: ModelSettings) -> Choice:
    if named in config.tiers:
        return Choice(config.tiers[named], f"{reason}, tier {named}")
    return Choice(named, reason)
