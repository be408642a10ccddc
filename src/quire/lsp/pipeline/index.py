"""The names and parts of a pipeline file, with their places, and the documents that it calls."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from quire.errors import QuireError
from quire.formats.pipeline.inputs import further_inputs, needed_inputs, uses
from quire.formats.pipeline.syntax import AgentBody, CallBody, ForEachBody, ParallelBody, ToolBody
from quire.formats.pipeline.walks import parts, schema_of, targets
from quire.formats.resolver import DocumentInterface
from quire.lsp.answers import Index, Link, Name, Symbol
from quire.lsp.name_targets import CalledDocument, called_document
from quire.lsp.pipeline.tree import cut_of, extent_of, file_of, item_at, labelled
from quire.schema import Schema, refs, type_words
from quire.source import Span, line_end
from quire.wording import cut_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from quire.formats.pipeline.inputs import Use
    from quire.formats.pipeline.syntax import Name as TreeName
    from quire.formats.pipeline.syntax import Pipeline, Step, Target, Text
    from quire.lsp.answers import NameKind, Role
    from quire.lsp.document_view import View
    from quire.lsp.pipeline.tree import Part
    from quire.schema import Field


class StoreNames:
    """Collects the names of one pipeline.

    An input and a store of the same name are one thing, because both are read as `ctx.NAME`: it counts as the input.
    """

    def __init__(self, view: View, pipeline: Pipeline, scope: str) -> None:
        self._view = view
        self._source = view.source
        self._pipeline = pipeline
        self._scope = scope
        self._found: list[Name] = []
        self._reading: list[Use] = []
        self._inputs: set[str] = set()
        self._known: set[str] = set()

    def all(self) -> list[Name]:
        pipeline = self._pipeline
        steps = list(labelled(pipeline))
        outputs = [step.output for _, step in steps if step.output is not None]
        written = {name.text for name in outputs}
        reading = self._reading = list(uses(pipeline))
        declared = [name.text for name in pipeline.input_names]
        inputs = set(declared)
        if pipeline.input is None:
            inputs = {use.store for use in reading if use.store and not use.written(use.store) and _certain(use)}
        self._inputs, self._known = inputs, inputs | written
        for name in pipeline.input_names:
            self._add(name.text, self._bare(name.span, name.text), "declares")
        for output in outputs:
            self._add(output.text, self._bare(output.span, output.text), "writes")
        first = set(declared)
        for use in reading:
            self._read(use, first)
        self._branches(steps)
        return self._found

    def _add(self, text: str, span: Span, role: Role) -> None:
        kind: NameKind = "input" if text in self._inputs else "store"
        if kind == "store" and role == "writes":
            role = "declares"
        self._found.append(Name(kind, text, span, role, self._scope))

    def _bare(self, span: Span, text: str) -> Span:
        return without_quotes(self._source.text, span, text)

    def _read(self, use: Use, first: set[str]) -> None:
        name = use.store
        if name is None and use.path[0] == "errors" and len(use.path) > 1 and use.path[1] in self._known:
            name = use.path[1]
        if name is None or name not in self._known:
            return
        if use.text is None:
            span: Span | None = self._bare(use.span, name)
        else:
            at = 1 if use.path[0] in ("ctx", "errors") else 0
            span = self._segment(use, at)
        if span is None:
            return
        role: Role = "reads"
        if name in self._inputs and name not in first and not use.written(name):
            first.add(name)
            role = "declares"  # an input that is not declared begins to exist where it is first read
        self._add(name, span, role)

    def _segment(self, use: Use, at: int) -> Span | None:
        """Return the place of a segment of a path, or of the key that a `get` names."""
        text = use.text
        if text is None:
            return None
        written = use.span.of(text.text)
        if use.in_prompt:
            start = use.span.start + 1 + sum(len(segment) + 1 for segment in use.path[:at])
            return self._place(text, Span(start, start + len(use.path[at])))
        if written.replace(" ", "") == ".".join(use.path) and not use.optional:
            starts = [match.start() for match in re.finditer(r"[A-Za-z_][A-Za-z0-9_]*", written)]
            start = use.span.start + starts[at]
            return self._place(text, Span(start, start + len(use.path[at])))
        quoted = re.search(rf"""['"]{re.escape(use.path[at])}(?=[.'"])""", written)
        if quoted is None:
            return None
        start = use.span.start + quoted.start() + 1
        return self._place(text, Span(start, start + len(use.path[at])))

    def _place(self, text: Text, part: Span) -> Span:
        return placed(self._view, text, part)

    def _branches(self, steps: Sequence[tuple[str, Step]]) -> None:
        """Add the branches of each `parallel`, and the places in its `collect` that read them."""
        collects: dict[int, tuple[str, frozenset[str]]] = {}
        for label, step in steps:
            if not isinstance(step.body, ParallelBody):
                continue
            scope = f"{self._scope}/{label}"
            collects[id(step.body.collect)] = scope, frozenset(name.text for name, _ in step.body.branches)
            for name, _ in step.body.branches:
                self._found.append(Name("branch", name.text, self._bare(name.span, name.text), "declares", scope))
        for use in self._reading if collects else ():
            scope, names = collects.get(id(use.step), ("", frozenset()))
            if use.path[0] in names and use.text is not None and (span := self._segment(use, 0)) is not None:
                self._found.append(Name("branch", use.path[0], span, "reads", scope))


def _certain(use: Use) -> bool:
    """Tell whether a place certainly reads: a bare name in a prompt may be plain text."""
    return not use.in_prompt or use.path[0] == "ctx"


def without_quotes(text: str, span: Span, name: str) -> Span:
    """Return the place of a name without quotes."""
    if text[span.start : span.start + 1] in ("'", '"') and text[span.start + 1 : span.end - 1] == name:
        return Span(span.start + 1, span.end - 1)
    return span


def placed(view: View, text: Text, part: Span) -> Span:
    """Return where a part of a text stands in the file. Most texts stand there as they are."""
    scalar = text.scalar
    if scalar is not None:
        start = scalar.body.start + (1 if scalar.style.value in ("'", '"') else 0)
        if view.source.text.startswith(text.text, start):
            return Span(start + part.start, start + part.end)
    return text.place(view.source, part)


_SHOWN = 60


def symbols_of(view: View) -> tuple[Symbol, ...]:
    file = file_of(view)
    symbols: list[Symbol] = []
    for part in cut_of(view):
        span = _trimmed(view, Span(part.start, part.end))
        for schema in file.schemas:
            if part.start <= schema.span.start < part.end:
                fields = ", ".join(field.name for field in schema.fields)
                symbols.append(Symbol(schema.name, "schema", span, schema.span, cut_line(fields, _SHOWN)))
        for pipeline in file.pipelines:
            if part.start <= pipeline.span.start < part.end:
                symbols.append(_pipeline_symbol(view, part, pipeline, span))
    return tuple(symbols)


def _pipeline_symbol(view: View, part: Part, pipeline: Pipeline, span: Span) -> Symbol:
    types = {field.name: type_words(field.type) for field in pipeline.input or ()}
    children = []
    for name in pipeline.input_names:
        place = Span(name.span.start, line_end(view.source.text, name.span.end))
        children.append(Symbol(name.text, "input", place, name.span, types.get(name.text, "")))
    for number, step in enumerate(pipeline.steps, 1):
        item = item_at(part, step.span.start)
        whole = _trimmed(view, item) if item is not None else extent_of(view, step)
        children.append(_step_symbol(view, str(number), step, whole))
    description = cut_line(pipeline.description, _SHOWN)
    return Symbol(pipeline.name.text or "pipeline", "pipeline", span, pipeline.name.span, description, tuple(children))


def _step_symbol(view: View, name: str, step: Step, span: Span) -> Symbol:
    fan = isinstance(step.body, ParallelBody)
    children = []
    for part, inner in parts(step):
        inside = extent_of(view, inner)
        children.append(_step_symbol(view, part, inner, Span(max(inside.start, span.start), min(inside.end, span.end))))
        if fan and part != "collect":
            last = children[-1]
            children[-1] = Symbol(last.name, "branch", last.span, last.selection, last.detail, last.children)
    return Symbol(f"{name} {step.kind}", "step", span, step.span, step_detail(step), tuple(children))


def step_detail(step: Step) -> str:
    """Name the input and the target of a step in a few words."""
    match step.body:
        case ToolBody(name=name):
            what = name.text
        case CallBody(target=target):
            what = target.pipeline.text
        case AgentBody(prompt=prompt):
            what = cut_line(" ".join(prompt.text.split()), _SHOWN)
        case ForEachBody(source=source):
            what = getattr(source, "text", "")
        case _:
            what = ""
    return " ".join(word for word in (what, f"→ {step.output.text}" if step.output else "") if word)


def _trimmed(view: View, span: Span) -> Span:
    text = view.source.text
    end = span.end
    while end > span.start and text[end - 1].isspace():
        end -= 1
    start = span.start
    while start < end and text[start] in " \n":
        start += 1
    return Span(start, max(end, start))


def index(view: View) -> Index:
    file = file_of(view)
    names: list[Name] = []
    links: list[Link] = []
    for schema in file.schemas:
        names.append(Name("schema", schema.name, schema.span, "declares"))
        names += [Name("schema", ref.schema, ref.span, "reads") for ref in refs(schema)]
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
            if isinstance(step.body, AgentBody) and step.body.is_file:
                links.append(Link(step.body.prompt.span, _beside(view, step.body.prompt.text), "Open the prompt"))
    for field in (field for pipeline in file.pipelines for field in pipeline.input or ()):
        names += [Name("schema", ref.schema, ref.span, "reads") for ref in refs(Schema("", (field,))) if ref.span.end]
    return Index(tuple(names), symbols_of(view), tuple(links))


def _bare(view: View, name: TreeName) -> Span:
    return without_quotes(view.source.text, name.span, name.text)


def _step_names(view: View, step: Step) -> Iterator[Name]:
    schema, settings = schema_of(step), view.folder.settings_file
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
    if callee.kind != "pipeline":
        yield Name(callee.kind, called, place, "reads", "", callee.path, renames=False)
    else:
        dot = called.rfind(".")
        if dot >= 0:
            key = Span(place.start, place.start + dot)
            yield Name("pipeline", called[:dot], key, "reads", "", callee.path, renames=False)
            place = Span(place.start + dot + 1, place.end)
        yield Name("pipeline", callee.declared, place, "reads", callee.declared, callee.path)
    for passed in target.passes:
        document = callee.path if callee.path != view.path else ""
        yield Name("input", passed.name.text, _bare(view, passed.name), "reads", callee.scope, document)


def _beside(view: View, name: str) -> str:
    return os.path.normpath(Path(view.path).parent / name)


def callee_of(view: View, name: str) -> CalledDocument | None:
    """Return the document that a target means in a file; None if there is none."""
    file = file_of(view)
    own = next((pipeline for pipeline in file.pipelines if pipeline.name.text == name), None)
    if own is not None:
        return CalledDocument("pipeline", view.path, name, len(file.pipelines) > 1, own)
    return called_document(view.folder, name, os.path.realpath)


def interface_of(view: View, name: str) -> DocumentInterface | None:
    """Return the inputs and the result of a called document; None if it is not known."""
    callee = callee_of(view, name)
    if callee is not None and callee.tree is not None:
        needed = needed_inputs(callee.tree)
        return DocumentInterface("pipeline", callee.tree.name.text, needed, (*needed, *further_inputs(callee.tree)))
    snapshot = view.folder.snapshot
    try:
        return snapshot.document(name) if snapshot is not None else None
    except QuireError:
        return None


def input_fields(view: View, name: str) -> dict[str, Field]:
    """Return the inputs that a called pipeline declares, by name."""
    callee = callee_of(view, name)
    if callee is None or callee.tree is None or callee.tree.input is None:
        return {}
    return {field.name: field for field in callee.tree.input}
