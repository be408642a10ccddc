"""JSON of models: the one that a run would use, those of the settings, and those on this machine. No key is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from quire.errors import QuireError
from quire.models.choose import MODEL_BY_KEY
from quire.models.downloads import KNOWN, preferred_model, pulled_models

if TYPE_CHECKING:
    from collections.abc import Mapping

    from quire.runs.runtime import Runtime
    from quire.values import Value


def models_data(runtime: Runtime) -> dict[str, Value]:
    """Return what is known of models. Of the environment only the names of variables are told."""
    settings, environ = runtime.settings, runtime.environ
    try:
        choice = runtime.choose_model(None)
        default: Value = {"model": choice.spec, "reason": choice.reason}
        problem = None
    except QuireError as error:
        default, problem = None, str(error)
    return {
        "default": default,
        "problem": problem,
        "tiers": dict(settings.models.tiers),
        "providers": [
            {
                "name": name,
                "host": urlsplit(provider.base_url).hostname,
                "key": provider.api_key_env,
                "has_key": not provider.api_key_env or bool(environ.get(provider.api_key_env)),
            }
            for name, provider in sorted(settings.models.providers.items())
        ],
        "keys": [name for name in MODEL_BY_KEY if environ.get(name)],
        "local": _local(environ),
        "can_pull": list(KNOWN),
    }


def _local(environ: Mapping[str, str]) -> list[Value]:
    first = preferred_model(environ)
    return [
        {"name": one.name, "size": one.size, "model": f"local:{one.name}", "preferred": one == first}
        for one in pulled_models(environ)
    ]
