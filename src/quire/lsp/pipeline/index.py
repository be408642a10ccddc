"""The names and parts of a pipeline file, with their places."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from quire.formats.pipeline.syntax import AgentBody, ToolBody
from quire.formats.pipeline.walks import schema_of, targets
from quire.lsp.answers import Index, Link, Name
from quire.lsp.pipeline.callees import callee_of
from quire.lsp.pipeline.outline import symbols_of
from quire.lsp.pipeline.store_names import StoreNames
from quire.lsp.pipeline.tree import file_of, labelled
from quire.lsp.views import SETTINGS_FILE
from quire.schema import refs
from quire.source import Span

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quire.formats.pipeline.syntax import Name as TreeName
    from quire.formats.pipeline.syntax import Step, Target
    from quire.lsp.views import View
    from quire.schema import Schema


def index(view: View) -> Index:
    file = file_of(view)
    names: list[Name] = []
    links: list[Link] = []
    for schema in file.schemas:
        names += _schema_names(schema)
    several = len(file.pipelines) > 1
    for pipeline in file.pipelines:
        declared = pipeline.name.text
        scope = declared if several else ""
        if declared:
            names.append(Name("pipeline", declared, _bare(view, pipeline.name), "declares", declared, view.path))
        names += StoreNames(view, pipeline, scope).all()
        for label, step in labelled(pipeline):
            names.append(Name("step", label, step.span, "declares", scope, renames=False))
            names += _step_names(view, step)
            links += _prompt_links(view, step)
    for field in (one for pipeline in file.pipelines for one in pipeline.input or ()):
        from quire.schema import Schema

        names += [Name("schema", ref.schema, ref.span, "reads") for ref in refs(Schema("", (field,))) if ref.span.end]
    return Index(tuple(names), symbols_of(view), tuple(links))


def _schema_names(schema: Schema) -> Iterator[Name]:
    yield Name("schema", schema.name, schema.span, "declares")
    for ref in refs(schema):
        yield Name("schema", ref.schema, ref.span, "reads")


def _bare(view: View, name: TreeName) -> Span:
    """Return the place of a name without quotes."""
    text = view.source.text[name.span.start : name.span.end]
    if text[:1] in ("'", '"') and text[1:-1] == name.text:
        return Span(name.span.start + 1, name.span.end - 1)
    return name.span


def _step_names(view: View, step: Step) -> Iterator[Name]:
    schema, settings = schema_of(step), str(view.folder.path / SETTINGS_FILE)
    if schema is not None:
        yield Name("schema", schema.text, _bare(view, schema), "reads")
    match step.body:
        case ToolBody(name=name):
            yield Name("tool", name.text, _bare(view, name), "reads", renames=False)
        case AgentBody(identity=identity, tools=tools, settings=own):
            if identity is not None:
                yield Name("agent", identity.text, _bare(view, identity), "reads", document=settings)
            for tool in tools or ():
                yield Name("tool", tool.text, _bare(view, tool), "reads", renames=False)
            if own is not None and own.model is not None:
                yield Name("model", own.model.text, _bare(view, own.model), "reads", document=settings, renames=False)
            if step.body.is_file:
                path = _beside(view, step.body.prompt.text)
                yield Name("prompt", step.body.prompt.text, step.body.prompt.span, "reads", "", path, renames=False)
    for target in targets(step):
        yield from _target_names(view, target)


def _target_names(view: View, target: Target) -> Iterator[Name]:
    called = target.pipeline.text
    callee = callee_of(view, called)
    place = _bare(view, target.pipeline)
    if callee is None:
        yield Name("pipeline", called, place, "reads", renames=False)
        return
    if callee.format != "pipeline":
        kind = "directive" if callee.format == "directive" else "document"
        yield Name(kind, called, place, "reads", "", callee.path, renames=False)  # type: ignore[arg-type]
    else:
        dot = called.rfind(".")
        if dot >= 0:
            key = Span(place.start, place.start + dot)
            yield Name("pipeline", called[:dot], key, "reads", "", callee.path, renames=False)
            place = Span(place.start + dot + 1, place.end)
        yield Name("pipeline", callee.declared, place, "reads", callee.declared, callee.path)
    for one in target.passes:
        document = callee.path if callee.path != view.path else ""
        yield Name("input", one.name.text, _bare(view, one.name), "reads", callee.scope, document)


def _prompt_links(view: View, step: Step) -> Iterator[Link]:
    if isinstance(step.body, AgentBody) and step.body.is_file:
        yield Link(step.body.prompt.span, _beside(view, step.body.prompt.text), "Open the prompt")


def _beside(view: View, name: str) -> str:
    return os.path.normpath(Path(view.path).parent / name)
