"""Choose the model of a run and say why: the one that was asked for, else the configured one, else one that is
available.

The settings that the reader of `quire.toml` builds are here too, and a lookup of the local Ollama that uses only the
standard library, so that choosing stays cheap.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from msgspec import Struct, field

from quire.engine.premises import TIMEOUT
from quire.errors import NoModel

if TYPE_CHECKING:
    import datetime

    from quire.values import Value


class ProviderSettings(Struct, frozen=True):
    """An OpenAI-compatible service."""

    base_url: str
    api_key_env: str | None = None
    """The variable that holds the key. Without it the service gets no key at all, even if the environment has one."""
    timeout: float | None = None
    """In seconds; None for the timeout of all models."""


class CallSettings(Struct, frozen=True, omit_defaults=True):
    """Settings of the calls of one agent, or of one tier. See `ModelRequest` for those that a call carries."""

    temperature: float | None = None
    max_tokens: int | None = None
    reasoning: str = ""
    timeout: float | None = None
    """In seconds."""
    at_once: int | None = None
    """How many calls may run side by side in this process; the present value holds, and no run pins it."""

    def as_value(self) -> dict[str, Value]:
        """Return the settings that are set, in the form in which a run pins them."""
        return {name: value for name in PINNED if (value := getattr(self, name)) not in (None, "")}


PINNED = ("temperature", "max_tokens", "reasoning", "timeout")
NO_SETTINGS = CallSettings()


class ProviderLimits(Struct, frozen=True):
    """A table `[models.limits.PROVIDER]`: the most that all runs together may ask of a provider; None for no limit."""

    at_once: int | None = None
    """How many calls may run side by side."""
    calls_per_minute: int | None = None
    tokens_per_minute: int | None = None
    """Tokens that are read and written."""


class Price(Struct, frozen=True):
    """Dollars per million tokens."""

    input: float
    output: float
    source: str = ""
    """Where the user has it from, such as a contract."""
    date: datetime.date | None = None
    """The day on which the user last looked at it."""


class Unpriced(Struct, frozen=True):
    """A model whose price is not known."""

    spec: str
    reason: str
    context: int | None = None
    """The most tokens that a call may read; None if it is not known."""


class ModelSettings(Struct, frozen=True):
    """`[models]`: a tier is a name that may be used in place of the name of a model."""

    default: str | None = None
    tiers: Mapping[str, str] = field(default_factory=dict)
    tier_settings: Mapping[str, CallSettings] = field(default_factory=dict)
    """Of the tiers that are written as tables."""
    providers: Mapping[str, ProviderSettings] = field(default_factory=dict)
    timeout: float = TIMEOUT
    """Seconds that a service may be silent, before a reply and in the middle of one."""
    prices: Mapping[str, Price] = field(default_factory=dict)
    """By the name of a model; only the user's own file sets them."""
    windows: Mapping[str, int] = field(default_factory=dict)
    """The most tokens that a call of a model reads, by its name; of the same tables."""
    limits: Mapping[str, ProviderLimits] = field(default_factory=dict)
    """By the name of a provider, or the host of an address; those of the user's own file."""
    folder: str = ""
    """The workspace whose limits follow."""
    folder_limits: Mapping[str, ProviderLimits] = field(default_factory=dict)
    """Limits that the workspace sets in addition to those of the user."""
    agent_limits: Mapping[str, int] = field(default_factory=dict)
    """How many calls of each agent may run side by side."""
    cache: bool = True

    shared: str = ""
    """The database in which processes share the limits of providers; empty to count in each process alone."""

    @property
    def has_limits(self) -> bool:
        at_once = any(settings.at_once is not None for settings in self.tier_settings.values())
        return bool(self.limits or self.folder_limits or self.agent_limits or at_once)

    @property
    def longest_timeout(self) -> float:
        """Return the longest silence of any service, where an agent sets no other."""
        own = [provider.timeout for provider in self.providers.values()]
        own += [settings.timeout for settings in self.tier_settings.values()]
        return max([self.timeout, *filter(None, own)])

    def settings_of(self, tier: str) -> CallSettings:
        """Return the settings of a tier; none for other names."""
        return self.tier_settings.get(tier, NO_SETTINGS)


_NEXT = " > "


def members_of(spec: str) -> tuple[str, ...]:
    """Return the models of a list (`a > b`) in the order in which they are asked; of another name the name itself."""
    return tuple(member.strip() for member in spec.split(_NEXT))


def as_spec(value: object) -> str | None:
    """Return the model that a setting names, a text or a list of texts; None for any other value."""
    texts = value if isinstance(value, list) else [value]
    are_texts = texts and all(isinstance(text, str) and text.strip() for text in texts)
    return _NEXT.join(map(str, texts)) if are_texts else None


def price_key(spec: str, settings: ModelSettings) -> str:
    """Return the name under which the price of a model is looked up: the model behind a tier."""
    return settings.tiers.get(spec, spec)


CONTEXT_TOKENS = 8192
"""The window of an embedded model. The runtime lowers it by itself for a model that was trained for less."""
CHARACTERS_A_TOKEN = 3
PICODOLLARS = 10**12
"""Of a dollar. A price per token is a whole number of them if that per million tokens has at most six decimals."""


PORT = 11434


def ollama_url(environ: Mapping[str, str]) -> str:
    """Return the address without a path. `OLLAMA_HOST` may be a bare host, a host and port, or a URL."""
    host = environ.get("OLLAMA_HOST", "").strip()
    if not host:
        return f"http://127.0.0.1:{PORT}"
    parts = urlsplit(host if "://" in host else f"http://{host}")
    try:
        port = parts.port
    except ValueError:
        port = None
    # The server reads the same variable as the address to bind to, so it often holds one that cannot be called.
    name = parts.hostname if parts.hostname not in (None, "", "0.0.0.0", "::") else "127.0.0.1"  # noqa: S104
    shown = f"[{name}]" if name and ":" in name else name
    return f"{parts.scheme}://{shown}:{port or (443 if parts.scheme == 'https' else PORT)}"


def is_ollama_cloud(name: str, environ: Mapping[str, str]) -> bool:
    """Tell whether a model of Ollama runs in Ollama's cloud, which costs money, and not on a machine of the user."""
    host = urlsplit(environ.get("OLLAMA_BASE_URL") or ollama_url(environ)).hostname or ""
    return name.endswith("-cloud") or host == "ollama.com" or host.endswith(".ollama.com")


def ollama_models(environ: Mapping[str, str], timeout: float = 0.3) -> tuple[str, ...]:
    """Return the chat models that Ollama holds, newest first; none if it does not answer in time."""
    import http.client
    import json

    parts = urlsplit(ollama_url(environ))
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "127.0.0.1", parts.port, timeout=timeout)
    try:
        connection.request("GET", "/api/tags")
        response = connection.getresponse()
        data: object = json.loads(response.read(1_000_000)) if response.status == 200 else None
    except (OSError, http.client.HTTPException, ValueError):
        return ()
    finally:
        connection.close()
    listed = data.get("models") if isinstance(data, dict) else None
    names = [item.get("name") for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
    # Cloud models cost money and embedding models do not chat: neither is used unless it is named.
    return tuple(n for n in names if isinstance(n, str) and not n.endswith("-cloud") and "embed" not in n)


class Choice(Struct, frozen=True):
    """A chosen model."""

    spec: str
    reason: str
    """Where the name came from, for people."""
    settings: CallSettings = NO_SETTINGS
    """The settings of the tier that was named."""


MODEL_BY_KEY: Mapping[str, str] = {
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
"""The model that a key in the environment selects, in the order in which keys are looked up."""

WAYS = """no model is configured. Three ways to get one:
  - set a provider's key in the environment, such as ANTHROPIC_API_KEY or OPENAI_API_KEY
  - `quire model pull smollm2` fetches a small model that runs in this process, without a key
  - name one: `--model local:PATH.gguf`, or `NAME:MODEL` with `[models.providers.NAME] base_url` in quire.toml"""


def choose_model(
    option: str | None,
    document: str | None,
    config: ModelSettings,
    environ: Mapping[str, str],
    *,
    offline: bool = False,
) -> Choice:
    """Choose a model.

    Raises `NoModel`. Looks for a local Ollama (0.3 s at most) only if no earlier source names a model, and never
    `offline`.
    """
    for named, reason in ((option, "--model"), (document, "the document"), (config.default, "[models] default")):
        if named and named in config.tiers:
            return Choice(config.tiers[named], f"{reason}, tier {named}", config.settings_of(named))
        if named:
            return Choice(named, reason)
    for variable, spec in MODEL_BY_KEY.items():
        if environ.get(variable):
            return Choice(spec, f"{variable} is set")
    running = () if offline else ollama_models(environ)
    if running:
        return Choice(f"ollama:{running[0]}", f"Ollama answers at {ollama_url(environ)}")
    from quire.models.downloads import preferred_model

    pulled = preferred_model(environ)
    if pulled is not None:
        return Choice(f"local:{pulled.name}", "no API key or Ollama found: using the downloaded model")
    raise NoModel(WAYS)
