"""Texts inside of lines: types of stores, rounds of fans, types of what a callee gets, the model of an agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.formats.pipeline.syntax import AgentBody, FoldBody, ForEachBody, RepeatBody
from quire.formats.pipeline.walks import targets
from quire.lsp.answers import Hint
from quire.lsp.bounds import quick_proof
from quire.lsp.pipeline.bounds import fan_rounds
from quire.lsp.pipeline.flow import types_of_results
from quire.lsp.pipeline.tree import file_of, labelled
from quire.plan.type_words import type_words
from quire.wording import cut_line
from quire.workspace.secrets import shown_model

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quire.formats.pipeline.syntax import Pipeline, Step
    from quire.lsp.views import View
    from quire.source import Span

_LONGEST = 40


def hints(view: View, span: Span) -> list[Hint]:
    found: list[Hint] = []
    proof = quick_proof(view)
    rounds = fan_rounds(proof) if proof is not None else {}
    for pipeline in file_of(view).pipelines:
        steps = [
            (label, step) for label, step in labelled(pipeline) if span.start - 4_000 <= step.span.start <= span.end
        ]
        if not steps:
            continue
        found += _types(view, pipeline, [step for _, step in steps])
        for label, step in steps:
            if label in rounds and isinstance(step.body, ForEachBody | FoldBody | RepeatBody):
                found.append(Hint(step.span.end, f"≤ {rounds[label]}", tooltip="The most rounds of this step."))
            found += _passes(view, step)
            found += _model(view, step)
    return [one for one in found if span.start <= one.offset <= span.end]


def _types(view: View, pipeline: Pipeline, steps: list[Step]) -> Iterator[Hint]:
    stored = [step for step in steps if step.output is not None]
    types = types_of_results(view, pipeline, stored)
    for step in stored:
        type = types.get(id(step))
        if step.output is not None and type is not None:
            whole = type_words(type)
            yield Hint(step.output.span.end, f": {cut_line(whole, _LONGEST)}", tooltip=whole)


def _passes(view: View, step: Step) -> Iterator[Hint]:
    """Yield the types of the inputs of a callee behind the names that are passed to it."""
    from quire.lsp.pipeline.callees import input_fields

    for target in targets(step):
        fields = input_fields(view, target.pipeline.text) if target.passes else {}
        for one in target.passes:
            if one.name.text in fields:
                words = type_words(fields[one.name.text].type)
                yield Hint(one.name.span.end, f": {cut_line(words, _LONGEST)}", "parameter", words)


def _model(view: View, step: Step) -> Iterator[Hint]:
    """Yield the model of the agent that a step names."""
    settings = view.folder.settings
    body = step.body
    if settings is None or not isinstance(body, AgentBody):
        return
    chosen = body.settings.model if body.settings is not None else None
    agent = settings.agents.get(body.identity.text) if body.identity is not None else None
    if chosen is not None:
        tier = settings.models.tiers.get(chosen.text)
        if tier:
            yield Hint(chosen.span.end, f"= {shown_model(tier)}", "parameter", "The model of this tier.")
    elif agent is not None and body.identity is not None and agent.model:
        yield Hint(body.identity.span.end, f"on {shown_model(agent.model)}", "parameter", "The model of this agent.")
