"""The prompt of a step as a model would get it, with the texts of the editor, and the files that prompts are made of.

A prompt file is not a document: `{{x}}` or `{x}` in it means a value of the document that uses it, and several
documents may use one file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from quire.errors import CannotStart, QuireError
from quire.lsp.answers import Name
from quire.patterns import late_pattern
from quire.source import PLACEHOLDER, Span, real_path
from quire.workspace.secrets import shown_model

if TYPE_CHECKING:
    from quire.engine.interpreter.preview import Preview
    from quire.lsp.answers import Completion
    from quire.lsp.desk import Folder
    from quire.lsp.document_view import View
    from quire.values import Value
    from quire.workspace.settings import Settings


def preview_of(view: View, step: str) -> Preview:
    """Return what a model would get: at a step of a playbook or a pipeline, or first of all in a directive. Values that
    only a run can know have a stand-in. Raises `QuireError` for a document or a step that has no prompt."""
    from quire.runs.prompts import prompt_of_directive, prompt_of_document

    document, settings, library = view.document, view.folder.settings, view.folder.library
    if document is None or document.plan is None:
        raise CannotStart("the document has errors, so it has no prompts yet")
    if settings is None or library is None:
        raise CannotStart("the settings of the workspace cannot be read")
    if document.plan.thread:
        return prompt_of_directive(library, os.environ, document, {})
    return prompt_of_document(document, step, {}, settings)


def prompt_text_of(view: View, step: str) -> str:
    """Return the messages that a model would get at a step, as text. Raises `QuireError` as `preview_of`."""
    from quire.display.transcript import prompt_text

    return prompt_text(preview_of(view, step).request)


VALUES = ("input", "output", "store")
_NAMING = ("prompt", "file")
_PLACEHOLDER = late_pattern(r"\{\{([A-Za-z0-9_]*+)$")
_PLACEHOLDER_TYPE = late_pattern(r"\{\{[A-Za-z0-9_]++:([A-Za-z0-9_]*+)$")


def files_of(owner: View) -> list[str]:
    """Return the prompt files that a document uses, as far as they are known before a run."""
    named = dict.fromkeys(name.document for name in owner.index.names if name.kind in _NAMING and name.document)
    return [path for path in named if path != owner.path and _may_be_read(owner.folder, path)]


def owners_of(folder: Folder, path: str) -> list[View]:
    """Return the documents of a workspace that use a file as a prompt."""
    word = Path(path).name.partition(".")[0]
    return [view for view in folder.holding(word) if view.path != path and path in files_of(view)]


def names_in(prompt: View, owner: View) -> Iterator[Name]:
    """Yield the places in a prompt file that name a value of a document."""
    if owner.format in _NAMES:
        yield from _NAMES[owner.format](prompt, owner)


def all_names(owner: View) -> Iterator[tuple[View, Name]]:
    """Yield the places in all prompt files of a document that name a value of it."""
    for path in files_of(owner):
        if (prompt := owner.folder.view(path)) is not None:
            yield from ((prompt, name) for name in names_in(prompt, owner))


def names_at(prompt: View, offset: int) -> list[Name]:
    """Return the values that a place of a prompt file names: one for each document that uses the file."""
    owners = owners_of(prompt.folder, prompt.path)
    named = (name for owner in owners for name in names_in(prompt, owner))
    return [name for name in named if name.span.holds(offset)]


def complete(prompt: View, offset: int) -> list[Completion]:
    """Return the values that can be named in a prompt file: those that can be read where documents use it."""
    before = prompt.line_before(offset)
    if "{" not in before:
        return []  # most of what is typed, in files that may be anything
    completions: dict[str, Completion] = {}
    for owner in owners_of(prompt.folder, prompt.path):
        for use in _uses(owner, prompt) if owner.format in _COMPLETE else ():
            for completion in _COMPLETE[owner.format](prompt, offset, before, owner, use.span.start):
                completions.setdefault(completion.label, completion)
    return list(completions.values())


def sharing_problem(owner: View, prompt: View, name: Name) -> str:
    """Return why a value of a document cannot be renamed in a prompt file; an empty text if it can."""
    folder = owner.folder
    shown = folder.shown(prompt.path)
    if not real_path(Path(prompt.path)).is_relative_to(real_path(folder.path)):
        return f"{shown} names {name.text} too, and is outside of this workspace: rename it there first"
    others = [folder.shown(view.path) for view in owners_of(folder, prompt.path) if view.path != owner.path]
    if not others:
        return ""
    return f"{shown} names {name.text} too, and is also a prompt of {', '.join(others[:3])}: rename it there by hand"


def _uses(owner: View, prompt: View) -> list[Name]:
    """Return the places of a document that name a prompt file."""
    return [name for name in owner.index.names if name.kind in _NAMING and name.document == prompt.path]


def _complete_playbook(prompt: View, offset: int, before: str, owner: View, use: int) -> list[Completion]:
    from quire.lsp.playbook.complete_directives import placeholder_names, placeholder_types

    if typed := _PLACEHOLDER.search(before):
        return placeholder_names(prompt, offset - len(typed[1]), offset, (owner, use))
    typed = _PLACEHOLDER_TYPE.search(before)
    return placeholder_types(offset - len(typed[1]), offset) if typed else []


def _complete_pipeline(prompt: View, offset: int, before: str, owner: View, use: int) -> list[Completion]:
    from quire.lsp.pipeline.completion import REFERENCE, complete_reference
    from quire.lsp.pipeline.tree import cursor_place

    typed = REFERENCE.search(before)
    if typed is None:
        return []
    span = Span(offset - len(typed[2] or ""), offset)
    closing = "" if prompt.source.text[offset : offset + 1] == "}" else "}"
    completions = complete_reference(owner, use, replace(cursor_place(owner, use), text=typed[0]))
    return [
        replace(completion, span=span, insert=completion.label + ("" if completion.label == "ctx" else closing))
        for completion in completions
    ]


def _of_playbook(prompt: View, owner: View) -> Iterator[Name]:
    from quire.lsp.playbook.index import KnownNames, tree_of
    from quire.lsp.playbook.layout import ASKED

    tree = tree_of(owner)
    if tree is None:
        return
    names = KnownNames(tree)
    for match in PLACEHOLDER.finditer(prompt.source.text):
        name = match[1]
        if names.is_known(name):
            answer = name.startswith(ASKED)
            yield Name(names.kind(name), name, Span(*match.span(1)), "reads", "", owner.path, not answer)


def _of_pipeline(prompt: View, owner: View) -> Iterator[Name]:
    from quire.formats.pipeline.prompt_references import references
    from quire.lsp.pipeline.tree import file_of, pipeline_at

    several = len(file_of(owner).pipelines) > 1
    around = [pipeline_at(owner, use.span.start) for use in _uses(owner, prompt)]
    scopes = dict.fromkeys(pipeline.name.text if several else "" for pipeline in around if pipeline is not None)
    for scope in scopes:
        own = (name for name in owner.index.names if name.scope == scope and not name.document)
        kinds = {name.text: name.kind for name in own if name.kind in VALUES}
        for reference in references(prompt.source.text):
            at = 1 if reference.path[0] == "ctx" else 0
            name = reference.path[at] if len(reference.path) > at else ""
            if name in kinds:
                start = reference.span.start + 1 + at * len("ctx.")
                yield Name(kinds[name], name, Span(start, start + len(name)), "reads", scope, owner.path)


def _may_be_read(folder: Folder, path: str) -> bool:
    """Tell whether a file is in the workspace or in the user's own library of prompts, behind all links."""
    real = real_path(Path(path))
    settings = folder.settings
    own = [folder.path, *([settings.user / "prompts", *settings.prompt_folders] if settings is not None else [])]
    return any(real.is_relative_to(real_path(folder)) for folder in own)


_NAMES = {"playbook": _of_playbook, "pipeline": _of_pipeline}
_COMPLETE = {"playbook": _complete_playbook, "pipeline": _complete_pipeline}


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
