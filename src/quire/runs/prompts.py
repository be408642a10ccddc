"""Show the messages that a model gets at a step, before a document runs and in a run, and mark the values in a sent
prompt: which part of the text came from which value, and who wrote that.

A sent prompt is plain text. The template of its step says where values were inserted, so the text is aligned with the
template. A text that does not fit, because the document or a hook changed it further, stays unmarked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.engine.progress import place_in_plan
from quire.formats.pipeline.prompt_references import template
from quire.plan.nodes import Reference, Template, Think
from quire.plan.pipeline_work import Agent
from quire.values import as_texts

if TYPE_CHECKING:
    from quire.engine.interpreter.preview import LoadText, Preview
    from quire.engine.requests import ModelRequest
    from quire.library.document import Document
    from quire.library.library import Library
    from quire.plan.nodes import Plan
    from quire.runs.outcome import RunView
    from quire.runs.why import ValueSource
    from quire.values import Value
    from quire.workspace.settings import Settings


def prompt_of_document(document: Document, named: str, given: Mapping[str, Value], settings: Settings) -> Preview:
    from msgspec.structs import replace

    from quire.engine.interpreter.preview import find_step, preview, stand_in_inputs
    from quire.runs.adapters import CONTEXT_CHARACTERS

    plan = document.runnable()
    path, _ = find_step(plan, named)
    if plan.format == "pipeline":
        return _prompt_of_pipeline(document, path, given, settings)
    inputs, missing = stand_in_inputs(plan, given)
    budget = settings.runs.context_budget
    budget = CONTEXT_CHARACTERS if budget is None else budget
    plan, chosen = _with_step_models(plan, document, path, settings)
    shown = preview(plan, inputs, path, texts_of(settings, Path(document.name).parent), context_budget=budget)
    notes = [f"no value for {name}: {{{{{name}}}}} stands for it (-i {name}=…)" for name in missing]
    return replace(shown, notes=(*notes, *chosen, *shown.notes))


def _with_step_models(plan: Plan, document: Document, path: str, settings: Settings) -> tuple[Plan, list[str]]:
    """Return the plan with the models that the settings give its steps, and what they give the step at a path."""
    from quire.library.step_models import choose_step_models, with_step_models

    models = choose_step_models(plan, document.name, settings)
    cast = models.steps.get(path)
    own = f"step {dict(plan.steps())[path].label}:"
    notes = [warning for warning in models.warnings if warning.startswith(own)]
    if cast is not None and cast.model:
        notes.append(f"its model is {cast.model}, unless --model names another")
    if cast is not None and cast.tools:
        notes.append(f"its model may use the tools {', '.join(cast.tools)}, as far as they only read and are granted")
    return with_step_models(plan, models.steps), notes


def _prompt_of_pipeline(document: Document, path: str, given: Mapping[str, Value], settings: Settings) -> Preview:
    from msgspec.structs import replace

    from quire.engine.declared_inputs import defaults_of
    from quire.engine.interpreter.callees import Environment, Profile
    from quire.engine.interpreter.preview import preview_agent
    from quire.formats.pipeline.inputs import needed_inputs
    from quire.library.lookup import tree_of
    from quire.library.texts import read_prompt_files
    from quire.runs.pins import pinned_profiles, read_profiles

    plan, given = document.runnable(), {**defaults_of(document.runnable()), **given}
    profiles = read_profiles(pinned_profiles(settings.agents))
    files = read_prompt_files((plan,), Path(document.name).parent)
    preview = preview_agent(plan, path, given, Environment(profiles={"default": Profile(), **profiles}), files)
    missing = [name for name in needed_inputs(tree_of(document)) if name not in given]
    return replace(preview, notes=(*_bracketed(missing), *preview.notes))


def _bracketed(names: Iterable[str]) -> list[str]:
    return [f"no value for {name}: its name in brackets stands for it (-i {name}=…)" for name in names]


def prompt_of_directive(
    library: Library, environ: Mapping[str, str], document: Document, given: Mapping[str, Value]
) -> Preview:
    """Return the first request of a directive. Raises `CannotStart` for one that cannot be composed."""
    from quire.engine.conversation import Message
    from quire.engine.interpreter.preview import Preview
    from quire.engine.requests import ModelRequest
    from quire.library.survey import survey

    surveyed = survey(library, environ, document, given)
    composed = surveyed.composed
    messages = (Message("user", composed.message),)
    request = ModelRequest("thread/turn[1]/model", "turn 1", composed.system, messages)
    return Preview(request, (*_bracketed(surveyed.missing), *composed.warnings))


def prompt_of_run(view: RunView, named: str, settings: Settings) -> Preview:
    """Return the request that was sent; if the run has not reached the step, the one that follows from its journal and
    stand-ins."""
    from msgspec.structs import replace

    from quire.engine.interpreter.preview import Preview, find_step, preview
    from quire.engine.requests import ModelRequest

    plan = view.document.runnable()
    if plan.format == "pipeline":
        return _prompt_of_pipeline_run(view, named)
    if plan.thread:
        return _prompt_of_turn(view, named)
    path, step = find_step(plan, named)
    request = view.replay.asked.get(f"{path}/model")
    if isinstance(request, ModelRequest):
        return Preview(request)
    folder = Path(view.pins.folder) if view.pins.folder else None
    shown = preview(
        plan,
        as_texts(view.pins.inputs),
        path,
        texts_of(settings, folder),
        records=view.effects,
        context_budget=view.pins.context_budget,
    )
    note = f"step {step.label} has not asked its model in this run: unrecorded values have a stand-in in brackets"
    return replace(shown, notes=(note, *shown.notes))


def _prompt_of_turn(view: RunView, named: str) -> Preview:
    """Return the request of a turn, named by its number, its label or its path."""
    from quire.engine.interpreter.preview import Preview
    from quire.engine.thread_progress import turn_of
    from quire.errors import CannotStart
    from quire.plan.vocabulary import last_label, typed_way

    requests = _model_requests(view)
    number = named.strip().removeprefix("turn ")
    for path, request in reversed(requests.items()):
        names = (path, request.label, last_label(request.label), turn_of(path))
        if typed_way(named) in names or turn_of(path) == f"thread/turn[{number}]":
            return Preview(request)
    turns = ", ".join(dict.fromkeys(request.label for request in requests.values())) or "none"
    raise CannotStart(f"turn {named} does not exist in this run: it has {turns}")


def _model_requests(view: RunView) -> dict[str, ModelRequest]:
    from quire.engine.requests import ModelRequest

    return {path: request for path, request in view.replay.asked.items() if isinstance(request, ModelRequest)}


def _prompt_of_pipeline_run(view: RunView, named: str) -> Preview:
    """Return the request of an agent step. A step may ask many times (for each item of a list, again after a failure):
    the first request is shown."""
    from msgspec.structs import replace

    from quire.engine.interpreter.callees import Environment
    from quire.engine.interpreter.preview import Preview, find_step, preview_agent
    from quire.plan.vocabulary import JOINT, typed_way
    from quire.runs.pins import read_profiles

    requests = _model_requests(view)
    below = next(
        (request for request in requests.values() if JOINT in request.label and request.label == typed_way(named)), None
    )
    exact = requests.get(named) or requests.get(f"{named}/model") or below
    if exact is not None:
        return Preview(exact)
    plan = view.document.runnable()
    path, step = find_step(plan, named)
    fitting = [at for at in requests if place_in_plan(at) == f"{path}/model"]
    if fitting:
        others = ", ".join(fitting[1:6]) + (" …" if len(fitting) > 6 else "")
        note = f"step {step.label} has asked {len(fitting)} times: this is {fitting[0]}; others by their path: {others}"
        return Preview(requests[fitting[0]], (note,) if others else ())
    profiles = read_profiles(view.pins.profiles)
    preview = preview_agent(
        plan, path, view.stores, Environment(identity=view.pins.identity, profiles=profiles), view.pins.files
    )
    note = f"step {step.label} has not asked its model in this run: unrecorded values have their names in brackets"
    return replace(preview, notes=(note, *preview.notes))


def texts_of(settings: Settings, folder: Path | None) -> LoadText:
    """Return a function that loads library and file prompts. They never wait, so no event loop (and no socket) is
    needed."""
    from quire.library.texts import PromptLoader
    from quire.runs.stored import run_without_loop

    loader = PromptLoader(settings, folder)
    return lambda request: run_without_loop(loader.load(request))


_ITEM = ("item", "acc")


class Piece(Struct, frozen=True):
    """A part of a prompt. `name` is empty for the text of the document itself."""

    text: str
    name: str = ""
    source: str = ""
    """The writer of the value, in words."""
    path: str = ""
    """The step that wrote it, if a step did."""


def template_of(view: RunView, path: str) -> Template | None:
    """Return the template of the prompt that the request at a path was made from; None if it is not known."""
    steps = dict(view.document.runnable().steps())
    place = place_in_plan(path)
    while place:
        if (step := steps.get(place)) is not None:
            if isinstance(step.work, Agent) and step.work.file:
                text = view.pins.files.get(step.work.file)
                return None if text is None else template(text)
            return step.work.prompt if isinstance(step.work, Think | Agent) else None
        place = place.rpartition("/")[0]
    return None


def marked(text: str, template: Template | None, values: Sequence[ValueSource]) -> list[Piece]:
    """Return the pieces of a sent text. The pieces joined are the text."""
    if template is None or not any(template.references()):
        return [Piece(text)]
    sources = {value.name: value for value in values}
    spans = _align(text, [_Part.of(part, sources) for part in template.parts])
    if spans is None:
        return [Piece(text)]
    pieces: list[Piece] = []
    end = 0
    for start, stop, part in spans:
        if start > end:
            pieces.append(Piece(text[end:start]))
        pieces.append(Piece(text[start:stop], part.name, part.source, part.path))
        end = stop
    return [*pieces, Piece(text[end:])] if end < len(text) else pieces


class _Part(Struct, frozen=True):
    """A part of a template: its text, or None if the text of a value is not known."""

    text: str | None
    name: str = ""
    source: str = ""
    path: str = ""

    @classmethod
    def of(cls, part: str | Reference, sources: Mapping[str, ValueSource]) -> _Part:
        if isinstance(part, str):
            return cls(part)
        names = part.name.split(".")
        if names[0] in _ITEM:
            return cls(None, part.name, "the item" if names[0] == "item" else "the result so far")
        root, rest = (names[1], names[2:]) if names[0] == "ctx" and len(names) > 1 else (names[0], names[1:])
        origin = sources.get(part.name) or sources.get(root)
        if origin is None:
            return cls(None, part.name)
        text = _text(origin.value, () if origin.name == part.name else rest)
        return cls(text, part.name, origin.source, origin.path)


def _text(value: Value, path: Sequence[str]) -> str | None:
    """Return the text of a part of a value; None if it is not a text, because JSON may be written in several ways."""
    for name in path:
        if not isinstance(value, Mapping) or name not in value:
            return None
        value = value[name]
    return value if isinstance(value, str) else None


def _align(text: str, parts: Sequence[_Part]) -> list[tuple[int, int, _Part]] | None:
    """Return the places of the values in a text. A value that is not known reaches to the next part that is."""
    position = text.find(_known_run(parts, 0))
    if position < 0:
        return None
    spans: list[tuple[int, int, _Part]] = []
    for at, part in enumerate(parts):
        if part.text is not None:
            if not text.startswith(part.text, position):
                return None
            end = position + len(part.text)
        else:
            following = _known_run(parts, at + 1)
            end = text.find(following, position) if following else len(text)
            if end < 0:
                return None
        if part.name and end > position:
            spans.append((position, end, part))
        position = end
    return spans


def _known_run(parts: Sequence[_Part], first: int) -> str:
    run: list[str] = []
    for part in parts[first:]:
        if part.text is None:
            break
        run.append(part.text)
    return "".join(run)
