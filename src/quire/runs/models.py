"""Models that pipelines name for their agents (`agent: {model: …}`).

A document is not signed, so it can name what its user would use anyway: a tier, a model of the run's own provider or
of a configured one, and any hosted model if the user has not chosen one. It names no address and no file. The model
that the user gives with `--model` replaces those of documents.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from quire.errors import CannotStart, Refused
from quire.models.tiers import step_model
from quire.plan.pipeline_work import Agent

if TYPE_CHECKING:
    from quire.models.choose import ModelSettings
    from quire.plan.nodes import Plan
    from quire.workspace.settings import Settings


_ADDRESS = ("http://", "https://")


def named_model(name: str, models: ModelSettings, own: str) -> str:
    """Return the model behind a name, as it is opened: a tier, a model, or empty for the run's own. Raises
    `CannotStart` for a tier that is not known here."""
    if name in models.tiers or ":" in name:
        return name
    found = step_model(name, models, own)
    if found is None:
        raise CannotStart(f"no tier is named {name} here: set [models.tiers] {name} in quire.toml")
    return found


def check_agent_models(plans: Sequence[Plan], settings: Settings, own: str) -> list[str]:
    """Return the models that the agents of these plans ask for, as they are opened.

    Raises `Refused` for those that only the user may choose, and `CannotStart` for unknown tiers.
    """
    found: dict[str, None] = {}
    problems: list[str] = []
    for label, name in _named(plans):
        if problem := _problem(name, settings, own):
            problems.append(f"step {label}: the model {name[:200]} is {problem}")
        else:
            found[named_model(name, settings.models, own)] = None
    if problems:
        raise Refused("\n".join(dict.fromkeys(problems)))
    return [name for name in found if name]


def _named(plans: Sequence[Plan]) -> Iterator[tuple[str, str]]:
    for plan in plans:
        for _, step in plan.steps():
            if isinstance(step.work, Agent) and step.work.settings is not None and step.work.settings.model:
                yield step.label, step.work.settings.model


def _problem(name: str, settings: Settings, own: str) -> str:
    """Return why a document may not choose a model; empty if it may."""
    from quire.workspace.settings import model_file

    models = settings.models
    if name in models.tiers or ":" not in name:
        return ""
    as_tier = "make it a tier ([models.tiers] in quire.toml), and name that"
    if name.startswith(_ADDRESS):
        return f"an address, and a document cannot choose where prompts go: {as_tier}"
    if name.startswith("script:") or model_file(name, settings.workspace.folder) is not None:
        return f"a file, and a document cannot choose which one is loaded: {as_tier}"
    provider, chosen = name.partition(":")[0], models.tiers.get(own, own)
    if models.default is None or provider in (chosen.partition(":")[0], *models.providers):
        return ""
    yours = models.tiers.get(models.default, models.default)
    return f"not one of your providers, and your prompts go to {yours}: {as_tier}"
