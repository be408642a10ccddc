"""The prompt of a step as a model would get it, and the model that would get it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from quire.errors import QuireError
from quire.workspace.secrets import shown_model

if TYPE_CHECKING:
    from quire.lsp.document_view import View
    from quire.values import Value
    from quire.workspace.settings import Settings

RUN_MODEL = "the model of the run"


class ComposedPrompt(Struct, frozen=True):
    """The messages of a step, or why there are none."""

    text: str = ""
    notes: tuple[str, ...] = ()
    problem: str = ""


def composed_prompt(view: View, label: str) -> ComposedPrompt:
    """Return what a model would get at a step. Inputs without a value have a stand-in; where that cannot be, the first
    option of an enum is taken."""
    from quire.display.transcript import prompt_text
    from quire.runs.prompts import prompt_of_document

    document, settings = view.document, view.folder.settings
    if document is None or document.plan is None:
        return ComposedPrompt(problem="the document has errors, so it has no prompts yet")
    if settings is None:
        return ComposedPrompt(problem="the settings of the workspace cannot be read")
    problem = ""
    options: dict[str, Value] = {input.name: input.options[0] for input in document.plan.inputs if input.options}
    for inputs in ({}, options):
        try:
            preview = prompt_of_document(document, label, inputs, settings)
        except QuireError as error:
            problem = problem or str(error)
            continue
        notes = (*preview.notes, *(f"with {name} = {value}" for name, value in inputs.items()))
        return ComposedPrompt(prompt_text(preview.request), notes)
    return ComposedPrompt(problem=problem)


def model_of_step(view: View, label: str, named: str) -> str:
    """Return the model of a step in words. `asked` is the name in its `@model`; empty without one."""
    settings = view.folder.settings
    if settings is None:
        return ""
    from quire.library.step_models import playbook_settings

    chosen = playbook_settings(view.path, settings)[1]
    for name in (chosen.steps.get(label, ""), named, chosen.model):
        model = resolved_model(settings, name) if name else ""
        if model:
            return model
    agent = settings.agents.get(chosen.agent)
    return shown_model((agent.model if agent and agent.model else settings.models.default) or RUN_MODEL)


def resolved_model(settings: Settings, name: str) -> str:
    """Return the model that a name means, as it may be shown: a profile, a tier, or, in the settings, a model itself;
    empty for a name that the settings do not have."""
    return shown_model(_meant_model(settings, name))


def _meant_model(settings: Settings, name: str) -> str:
    from quire.models.tiers import step_model

    own = settings.models.default or ""
    own_words = settings.models.tiers.get(own, own) or RUN_MODEL
    if name in settings.agents:
        model = settings.agents[name].model
        return settings.models.tiers.get(model, model) if model else own_words
    if ":" in name:
        return name
    tier = step_model(name, settings.models, own)
    if tier is None:
        return ""
    return settings.models.tiers.get(tier, tier) or own_words
