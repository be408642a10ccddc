"""Open a model by its name.

    anthropic:NAME, openai:NAME, …     any provider that pydantic-ai knows; its key comes from the environment
    PROVIDER:NAME                      a `[models.providers.PROVIDER]` of quire.toml (OpenAI-compatible)
    https://host/v1#NAME               the same without configuration; such an address never gets a key
    ollama:NAME                        the Ollama of OLLAMA_HOST, or of this machine
    local:PATH.gguf, local:NAME        a file, or a pulled model, in this process
    script:PATH                        replies from a script
    NAME > NAME                        several in their order: see `quire.models.fallback`

A key goes only to the provider that it belongs to: a configured address gets the variable that its `api_key_env` names,
or none.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urldefrag, urlsplit

from quire.engine.premises import BACKOFF, RETRY_WAIT
from quire.errors import CannotStart
from quire.installed import add_extra, add_package
from quire.models.choose import (
    NO_SETTINGS,
    ModelSettings,
    ProviderSettings,
    is_ollama_cloud,
    members_of,
    ollama_url,
    price_key,
)
from quire.wording import did_you_mean, nearest

if TYPE_CHECKING:
    import httpx2
    from pydantic_ai.models import Model as ProviderModel

    from quire.engine.ports import Model

_OWN_CLIENT = ("openai", "openai-chat", "openai-responses", "anthropic", "google")


def open_model(spec: str, config: ModelSettings, environ: Mapping[str, str] = os.environ) -> Model:
    """Open a model, or all models of a list. Raises `CannotStart` for every problem that can be detected before the
    first call."""
    *earlier, last = members_of(price_key(spec, config))
    opened = {name: _open_member(name, config, environ, BACKOFF[:1], BACKOFF[-1]) for name in earlier}
    opened[last] = model = _open_member(last, config, environ, BACKOFF, RETRY_WAIT)
    if earlier:
        from quire.models.fallback import Fallback
        from quire.models.prices import rate_of

        today = datetime.now(UTC).date()
        model = Fallback(opened, config.folder, lambda name: rate_of(name, config, today, environ).context)
    if (settings := config.settings_of(spec)) == NO_SETTINGS:
        return model
    from quire.models.wrappers import with_settings

    return with_settings(model, settings)


def _open_member(
    name: str, config: ModelSettings, environ: Mapping[str, str], backoff: tuple[float, ...], longest: float
) -> Model:
    model = _open(name, config, environ)
    if not name.startswith("script:"):
        if config.has_limits:
            from quire.models.rate_limits import limited

            model = limited(model, name, config)
        if not name.startswith("local:"):
            from quire.models.retry import Retrying

            # Each try is a call that the limits count, and no place is held between two of them.
            model = Retrying(model, backoff=backoff, longest=longest)
    if (price := config.prices.get(name)) is None:
        return model
    from quire.models.prices import own_rate
    from quire.models.wrappers import WithPrice

    return WithPrice(model, own_rate(name, price))


def _open(spec: str, config: ModelSettings, environ: Mapping[str, str]) -> Model:
    provider, _, name = spec.partition(":")
    if spec.startswith(("http://", "https://")):
        url, name = urldefrag(spec)
        if not name or not urlsplit(url).hostname:
            raise CannotStart(f"{spec}: say which model after a #, as in https://host/v1#NAME")
        return _compatible(spec, name, ProviderSettings(url), config, environ)
    if spec in config.tiers:
        raise CannotStart(f"the tier {spec} cannot be part of a list: name its models")
    if not name:
        raise CannotStart(f"{spec!r} is not a model name: a model is PROVIDER:NAME{_nearest(spec, config, environ)}")
    match provider:
        case "script":
            from quire.models.scripted import ScriptedModel

            return ScriptedModel.from_file(Path(name), keep_calls=False)
        case "local":
            return _local(name, environ)
    if provider in config.providers:
        return _compatible(spec, name, config.providers[provider], config, environ)
    if provider == "ollama":
        return _ollama(spec, name, config, environ)
    return _hosted(spec, provider, config, environ)


def _local(name: str, environ: Mapping[str, str]) -> Model:
    from quire.models.downloads import pulled_model, pulled_models
    from quire.models.local import LocalModel

    pulled = pulled_model(name, environ)
    if pulled is not None:
        return LocalModel(pulled.path, name=name)
    path = Path(os.path.expanduser(name))  # noqa: PTH111  # an unknown user is not an exception here
    if path.suffix == ".gguf" or "/" in name or os.path.exists(path):  # noqa: PTH110  # nor is a long name
        return LocalModel(path, name=path.name)
    here = [model.name for model in pulled_models(environ)]
    help_ = did_you_mean(nearest(name, here, 0.4), f"`quire model pull {name}` may fetch it", form="local:{}")
    raise CannotStart(f"no model named {name} is here: {help_}")


def _compatible(
    spec: str, name: str, settings: ProviderSettings, config: ModelSettings, environ: Mapping[str, str]
) -> Model:
    parts = urlsplit(settings.base_url)
    if parts.username or parts.password or parts.query:
        raise CannotStart(
            f"{parts.hostname}: an address holds no password and no query; a key is named by api_key_env in quire.toml"
        )
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise CannotStart(f"{spec}: base_url {settings.base_url!r} is not an http or https address")
    key = environ.get(settings.api_key_env, "") if settings.api_key_env else ""
    if settings.api_key_env and not key:
        raise CannotStart(f"{spec} needs a key: set {settings.api_key_env} in the environment")
    timeout = config.timeout if settings.timeout is None else settings.timeout
    provider = spec.partition(":")[0]
    no_key = f"name its variable as api_key_env under [models.providers.{provider}] in quire.toml"
    if provider not in config.providers:
        no_key = "an address alone gets no key, a [models.providers.NAME] in quire.toml may have one (api_key_env)"
    return _openai_client_model(spec, name, settings.base_url, key, free=False, timeout=timeout, no_key=no_key)


def _ollama(spec: str, name: str, config: ModelSettings, environ: Mapping[str, str]) -> Model:
    base = environ.get("OLLAMA_BASE_URL") or f"{ollama_url(environ)}/v1"
    key = environ.get("OLLAMA_API_KEY", "")
    return _openai_client_model(
        spec,
        name,
        base,
        key,
        free=not is_ollama_cloud(name, environ),
        timeout=config.timeout,
        no_key="set OLLAMA_API_KEY in the environment",
        absent="; is Ollama running there? (`ollama serve` starts it, OLLAMA_HOST says where it is)",
    )


def _openai_client_model(
    spec: str, name: str, base_url: str, key: str, *, free: bool, timeout: float, no_key: str, absent: str = ""
) -> Model:
    try:
        from quire.models.providers import compatible_model
    except ImportError:
        raise CannotStart(_no_library()) from None
    return compatible_model(spec, name, base_url, key, free=free, timeout=timeout, no_key=no_key, absent=absent)


def _hosted(spec: str, provider: str, config: ModelSettings, environ: Mapping[str, str]) -> Model:
    try:
        from pydantic_ai.exceptions import UserError
        from pydantic_ai.models import infer_model
        from pydantic_ai.providers import Provider, infer_provider, infer_provider_class

        from quire.models.providers import HostedModel
    except ImportError:
        raise CannotStart(_no_library()) from None
    try:
        provider_class = infer_provider_class(provider)
    except ValueError:
        raise CannotStart(f"no provider is named {provider!r}{_nearest(spec, config, environ)}") from None
    except ImportError as error:
        raise CannotStart(_missing_package(spec, error)) from None

    def build(client: httpx2.AsyncClient) -> ProviderModel:
        def make(name: str) -> Provider[object]:
            if name not in _OWN_CLIENT and not _takes_client(provider_class):
                return infer_provider(name)
            made: Provider[object] = provider_class(http_client=client)  # type: ignore[call-arg]
            return made

        return infer_model(spec, make)

    try:
        return HostedModel(spec, build, price="listed", read_seconds=config.timeout, caches=config.cache)
    except ImportError as error:
        raise CannotStart(_missing_package(spec, error)) from None
    except UserError as error:
        if variable := re.search(r"`([A-Z][A-Z0-9_]+)` environment variable", error.message):
            raise CannotStart(f"{spec} needs a key: set {variable[1]} in the environment") from None
        raise CannotStart(f"{spec} cannot be used: {error.message.splitlines()[0][:200]}") from None


def _takes_client(provider: type[object]) -> bool:
    """Tell whether the provider uses the library of OpenAI, which accepts our client with its limits."""
    client = inspect.signature(provider.__init__).parameters.get("http_client")
    return client is not None and "_OpenAIHTTPClient" in str(client.annotation)


def _no_library() -> str:
    return f'a hosted model needs the extra "llm": {add_extra("llm")}'


def _missing_package(spec: str, error: ImportError) -> str:
    extra = re.search(r'"(pydantic-ai-slim\[[a-z-]+\])"', str(error))
    return f"{spec} needs another package: {add_package(extra[1] if extra else 'pydantic-ai-slim')}"


def _nearest(spec: str, config: ModelSettings, environ: Mapping[str, str]) -> str:
    from quire.models.downloads import pulled_models

    names = [f"local:{model.name}" for model in pulled_models(environ)]
    names += list(config.tiers) + [f"{provider}:" for provider in config.providers]
    try:
        from pydantic_ai.models import known_model_names
    except ImportError:
        pass
    else:
        names += [name for name in known_model_names() if not name.startswith("gateway/")]
    if ":" in spec:
        close = nearest(spec, names, 0.6)
    else:
        # A name without its provider: use the first provider that has it, in the order of the list.
        bare = {name.partition(":")[2] or name: name for name in reversed(names)}
        close = bare.get(nearest(spec, bare, 0.6) or "")
    return did_you_mean(close, lead=" (")
