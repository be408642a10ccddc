"""The names and parts of a pipeline file, with their places.

The documents that a pipeline calls: where they are, what they take and what they give.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.errors import QuireError
from quire.formats.pipeline.inputs import uses
from quire.formats.pipeline.syntax import AgentBody, CallBody, ForEachBody, ParallelBody, ToolBody
from quire.formats.pipeline.walks import parts, schema_of, targets
from quire.lsp.answers import Index, Link, Name, Symbol
from quire.lsp.document_view import SETTINGS_FILE
from quire.lsp.pipeline.tree import cut_of, extent_of, file_of, item_at, labelled
from quire.schema import refs, type_words
from quire.source import Span, real_path
from quire.wording import cut_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from quire.formats.pipeline.inputs import Use
    from quire.formats.pipeline.syntax import Name as TreeName
    from quire.formats.pipeline.syntax import Pipeline, Step, Target, Text
    from quire.formats.resolver import DocumentInterface
    from quire.library.registered import Registered
    from quire.lsp.answers import NameKind, Role
    from quire.lsp.document_view import View
    from quire.lsp.pipeline.step_texts import Part
    from quire.schema import Field, Schema


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
        written = {one.text for one in outputs}
        reading = self._reading = list(uses(pipeline))
        declared = [one.text for one in pipeline.input_names]
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
        written = text.text[use.span.start : use.span.end]
        if use.in_prompt:
            start = use.span.start + 1 + sum(len(one) + 1 for one in use.path[:at])
            return self._place(text, Span(start, start + len(use.path[at])))
        if written.replace(" ", "") == ".".join(use.path) and not use.optional:
            starts = [match.start() for match in re.finditer(r"[A-Za-z_][A-Za-z0-9_]*", written)]
            start = use.span.start + starts[at]
            return self._place(text, Span(start, start + len(use.path[at])))
        found = re.search(rf"""['"]{re.escape(use.path[at])}(?=[.'"])""", written)
        if found is None:
            return None
        start = use.span.start + found.start() + 1
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
    children = [
        Symbol(name.text, "input", _rest_of_line(view, name.span), name.span, types.get(name.text, ""))
        for name in pipeline.input_names
    ]
    for number, step in enumerate(pipeline.steps, 1):
        item = item_at(part, step.span.start)
        whole = _trimmed(view, item) if item is not None else extent_of(view, step)
        children.append(_step_symbol(view, str(number), step, whole))
    description = cut_line(pipeline.description, _SHOWN)
    return Symbol(pipeline.name.text or "pipeline", "pipeline", span, pipeline.name.span, description, tuple(children))


def _step_symbol(view: View, name: str, step: Step, span: Span) -> Symbol:
    fan = isinstance(step.body, ParallelBody)
    children = []
    for part, one in parts(step):
        inside = extent_of(view, one)
        children.append(_step_symbol(view, part, one, Span(max(inside.start, span.start), min(inside.end, span.end))))
        if fan and part != "collect":
            last = children[-1]
            children[-1] = Symbol(last.name, "branch", last.span, last.selection, last.detail, last.children)
    return Symbol(f"{name} {step.kind}", "step", span, step.span, step_detail(step), tuple(children))


def step_detail(step: Step) -> str:
    """Say in a few words what a step works on and where its result goes."""
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
    return " ".join(one for one in (what, f"→ {step.output.text}" if step.output else "") if one)


def _trimmed(view: View, span: Span) -> Span:
    text = view.source.text
    end = span.end
    while end > span.start and text[end - 1].isspace():
        end -= 1
    start = span.start
    while start < end and text[start] in " \n":
        start += 1
    return Span(start, max(end, start))


def _rest_of_line(view: View, span: Span) -> Span:
    end = view.source.text.find("\n", span.end)
    return Span(span.start, end if end >= 0 else len(view.source.text))


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
    return without_quotes(view.source.text, name.span, name.text)


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


class CalledDocument(Struct, frozen=True):
    """A document that a name means."""

    name: str
    format: str
    path: str
    declared: str = ""
    """The name of a pipeline in its file."""
    several: bool = False
    """True for a pipeline in a file of several."""
    tree: Pipeline | None = None

    @property
    def scope(self) -> str:
        """Tells its inputs and stores apart from those of other pipelines of the file."""
        return self.declared if self.several else ""


def callee_of(view: View, name: str) -> CalledDocument | None:
    """Return the document that a target means in a file; None if there is none."""
    file = file_of(view)
    own = next((pipeline for pipeline in file.pipelines if pipeline.name.text == name), None)
    if own is not None:
        return CalledDocument(name, "pipeline", view.path, name, len(file.pipelines) > 1, own)
    snapshot = view.folder.snapshot
    if snapshot is None:
        return None
    try:
        registered = snapshot.registry().pipelines.get(name)
        if registered is not None:
            return _registered(registered)
        if (playbook := snapshot.playbooks().find(name)) is not None:
            return CalledDocument(name, "playbook", str(real_path(playbook[1])))
        item = snapshot.named_directive(name)
    except QuireError:
        return None
    return CalledDocument(name, "directive", str(item.path)) if item is not None else None


def _registered(one: Registered) -> CalledDocument:

    several = one.name != one.declared
    return CalledDocument(one.name, "pipeline", str(Path(one.source.name).resolve()), one.declared, several, one.tree)


def interface_of(view: View, name: str) -> DocumentInterface | None:
    """Return what a callee takes and gives; None if it is not known."""
    callee = callee_of(view, name)
    if callee is not None and callee.tree is not None:
        return _interface(callee.tree)
    snapshot = view.folder.snapshot
    try:
        return snapshot.document(name) if snapshot is not None else None
    except QuireError:
        return None


def _interface(tree: Pipeline) -> DocumentInterface:
    from quire.formats.pipeline.inputs import further_inputs, needed_inputs
    from quire.formats.resolver import DocumentInterface

    needed = needed_inputs(tree)
    return DocumentInterface("pipeline", tree.name.text, needed, (*needed, *further_inputs(tree)))


def input_fields(view: View, name: str) -> dict[str, Field]:
    """Return the inputs that a called pipeline declares, by name."""
    callee = callee_of(view, name)
    if callee is None or callee.tree is None or callee.tree.input is None:
        return {}
    return {field.name: field for field in callee.tree.input}
