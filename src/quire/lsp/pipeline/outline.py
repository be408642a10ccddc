"""The outline of a pipeline file: its schemas and inputs, and its steps with their parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.formats.pipeline.syntax import AgentBody, CallBody, ForEachBody, ParallelBody, ToolBody
from quire.formats.pipeline.walks import parts
from quire.lsp.answers import Symbol
from quire.lsp.pipeline.tree import cut_of, extent_of, file_of, item_at
from quire.plan.type_words import type_words
from quire.source import Span
from quire.wording import cut_line

if TYPE_CHECKING:
    from quire.formats.pipeline.syntax import Pipeline, Step
    from quire.lsp.pipeline.step_texts import Part
    from quire.lsp.views import View

_SHOWN = 60


def symbols_of(view: View) -> tuple[Symbol, ...]:
    file = file_of(view)
    found: list[Symbol] = []
    for part in cut_of(view):
        span = _trimmed(view, Span(part.start, part.end))
        for schema in file.schemas:
            if part.start <= schema.span.start < part.end:
                fields = ", ".join(one.name for one in schema.fields)
                found.append(Symbol(schema.name, "schema", span, schema.span, cut_line(fields, _SHOWN)))
        for pipeline in file.pipelines:
            if part.start <= pipeline.span.start < part.end:
                found.append(_pipeline(view, part, pipeline, span))
    return tuple(found)


def _pipeline(view: View, part: Part, pipeline: Pipeline, span: Span) -> Symbol:
    types = {one.name: type_words(one.type) for one in pipeline.input or ()}
    children = [
        Symbol(one.text, "input", _line(view, one.span), one.span, types.get(one.text, ""))
        for one in pipeline.input_names
    ]
    for number, step in enumerate(pipeline.steps, 1):
        item = item_at(part, step.span.start)
        whole = _trimmed(view, item) if item is not None else extent_of(view, step)
        children.append(_step(view, str(number), step, whole))
    description = cut_line(pipeline.description, _SHOWN)
    return Symbol(pipeline.name.text or "pipeline", "pipeline", span, pipeline.name.span, description, tuple(children))


def _step(view: View, name: str, step: Step, span: Span) -> Symbol:
    fan = isinstance(step.body, ParallelBody)
    children = []
    for part, one in parts(step):
        inside = extent_of(view, one)
        children.append(_step(view, part, one, Span(max(inside.start, span.start), min(inside.end, span.end))))
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


def _line(view: View, span: Span) -> Span:
    end = view.source.text.find("\n", span.end)
    return Span(span.start, end if end >= 0 else len(view.source.text))
