"""Marks of a pipeline: colours, types and bounds inside of lines, and lines above it and its steps."""

from __future__ import annotations

import itertools
from functools import lru_cache
from typing import TYPE_CHECKING

from quire.expr import ExprSyntaxError
from quire.expr.syntax import KEYWORDS, RESERVED
from quire.expr.tokens import tokens as expression_tokens
from quire.formats.pipeline.prompts import references
from quire.formats.pipeline.syntax import AgentBody, FoldBody, ForEachBody, RepeatBody, ToolBody
from quire.formats.pipeline.walks import expressions, inner_expressions, schema_of, targets
from quire.lsp.answers import Hint, Lens, Token
from quire.lsp.bounds import bound_words, document_lenses, quick_proof
from quire.lsp.desk import uri_of
from quire.lsp.document_tests import count_cases
from quire.lsp.pipeline.flow import types_of_results
from quire.lsp.pipeline.index import placed
from quire.lsp.pipeline.tree import file_of, labelled, tree_of
from quire.plan.type_words import type_words
from quire.source import Span
from quire.wording import cut_line
from quire.workspace.secrets import shown_model

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quire.analysis.proof import Proof
    from quire.formats.pipeline.syntax import ExpressionText, Name, Pipeline, Step, Text
    from quire.lsp.answers import TokenKind
    from quire.lsp.views import View


def step_bound(view: View, label: str) -> str:
    """Return how often a step runs or asks a model at most; empty if nothing is known, or if it is just once."""
    proof = quick_proof(view)
    if proof is None:
        return ""
    from quire.analysis.amounts import number as amount_of

    for model in proof.model_calls:
        if model.place.step.label == label and not model.place.document:
            calls = str(model.often.times(amount_of(model.calls)))
            return f"{calls} model {'call' if calls == '1' else 'calls'}"
    return next((f"{rounds} rounds" for at, rounds in fan_rounds(proof).items() if at == label), "")


def fan_rounds(proof: Proof) -> dict[str, str]:
    """Return how many rounds the fans and loops of the document itself have at most, by label."""
    return {fan.place.step.label: str(fan.rounds) for fan in proof.fans if not fan.place.document}


LARGE = 60_000
"""Characters of a document above which its bound is not computed for a lens."""


def lenses(view: View) -> list[Lens]:
    tree, uri = tree_of(view), uri_of(view.path)
    found: list[Lens] = []
    for number, pipeline in enumerate(tree.file.pipelines):
        if number == 0:
            bound = bound_words(view) if tree.whole and len(view.source.text) <= LARGE else ""
            found += document_lenses(view, pipeline.span, cases=count_cases(view), bound=bound)
        if len(tree.file.pipelines) > 1:
            continue  # a prompt is shown of a document that can run by itself
        for label, step in labelled(pipeline):
            if isinstance(step.body, AgentBody):
                found.append(Lens(step.span, "Prompt", "quire.showPrompt", (uri, label)))
    return found


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
        found += _type_hints(view, pipeline, [step for _, step in steps])
        for label, step in steps:
            if label in rounds and isinstance(step.body, ForEachBody | FoldBody | RepeatBody):
                found.append(Hint(step.span.end, f"≤ {rounds[label]}", tooltip="The most rounds of this step."))
            found += _pass_hints(view, step)
            found += _model_hint(view, step)
    return [one for one in found if span.start <= one.offset <= span.end]


def _type_hints(view: View, pipeline: Pipeline, steps: list[Step]) -> Iterator[Hint]:
    stored = [step for step in steps if step.output is not None]
    types = types_of_results(view, pipeline, stored)
    for step in stored:
        type = types.get(id(step))
        if step.output is not None and type is not None:
            whole = type_words(type)
            yield Hint(step.output.span.end, f": {cut_line(whole, _LONGEST)}", tooltip=whole)


def _pass_hints(view: View, step: Step) -> Iterator[Hint]:
    """Yield the types of the inputs of a callee behind the names that are passed to it."""
    from quire.lsp.pipeline.callees import input_fields

    for target in targets(step):
        fields = input_fields(view, target.pipeline.text) if target.passes else {}
        for one in target.passes:
            if one.name.text in fields:
                words = type_words(fields[one.name.text].type)
                yield Hint(one.name.span.end, f": {cut_line(words, _LONGEST)}", "parameter", words)


def _model_hint(view: View, step: Step) -> Iterator[Hint]:
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


_OPERATORS = frozenset({"->", "==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/"})
_BOUND = RESERVED | {"errors", "round"}


def tokens(view: View) -> list[Token]:
    file = file_of(view)
    found: list[Token] = [Token(schema.span, "type", ("declaration",)) for schema in file.schemas]
    for pipeline in file.pipelines:
        if pipeline.name.text:
            found.append(Token(pipeline.name.span, "namespace", ("declaration",)))
        found += [Token(one.span, "parameter", ("declaration",)) for one in pipeline.input_names]
        for _, step in labelled(pipeline):
            found += _step_tokens(view, step)
    text = view.source.text
    return [one for one in found if one.span.end <= len(text) and "\n" not in text[one.span.start : one.span.end]]


def _step_tokens(view: View, step: Step) -> Iterator[Token]:
    yield Token(step.span, "keyword")
    if step.output is not None:
        yield Token(step.output.span, "variable", ("declaration",))
    if (schema := schema_of(step)) is not None:
        yield Token(schema.span, "type")
    for expression in (*expressions(step), *inner_expressions(step)):
        yield from _tag_token(expression)
        yield from _expression_tokens(view, expression)
    body = step.body
    if isinstance(body, ToolBody):
        yield Token(body.name.span, "function")
        yield from (Token(name.span, "property") for name, _ in body.args)
    elif isinstance(body, AgentBody):
        yield from (Token(one.span, "function") for one in body.tools or ())
        yield from _tag_token(body.prompt)
        if not body.is_file:
            yield from _prompt_tokens(view, body.prompt)
    for target in targets(step):
        yield Token(target.pipeline.span, "namespace")
        yield from (Token(one.name.span, "parameter") for one in target.passes if not _is_quoted(view, one.name))


def _is_quoted(view: View, name: Name) -> bool:
    return view.source.text[name.span.start : name.span.start + 1] in ("'", '"')


def _tag_token(text: Text) -> Iterator[Token]:
    scalar = text.scalar
    if scalar is not None and scalar.tag:
        yield Token(Span(scalar.span.start, scalar.span.start + len(scalar.tag)), "macro")


def _prompt_tokens(view: View, prompt: Text) -> Iterator[Token]:
    if "{" not in prompt.text:
        return
    for found in references(prompt.text):
        at = found.span.start + 1
        for number, segment in enumerate(found.path):
            kind: TokenKind = "variable" if number == 0 or (number == 1 and found.path[0] == "ctx") else "property"
            yield Token(placed(view, prompt, Span(at, at + len(segment))), kind)
            at += len(segment) + 1


def _expression_tokens(view: View, expression: ExpressionText) -> Iterator[Token]:
    for start, end, kind in expression_kinds(expression.text):
        yield Token(placed(view, expression, Span(start, end)), kind)


@lru_cache(maxsize=4_000)
def expression_kinds(text: str) -> tuple[tuple[int, int, TokenKind], ...]:
    """Return the parts of an expression with their kinds, counted from its start; none for one that is not right."""
    try:
        read = expression_tokens(text)
    except ExprSyntaxError:
        return ()
    parameters = {one.text for one, after in itertools.pairwise(read) if after.text == "->"}
    found: list[tuple[int, int, TokenKind]] = []
    for at, one in enumerate(read):
        kind: TokenKind | None = None
        if one.kind == "number":
            kind = "number"
        elif one.kind == "text":
            kind = "string"
        elif one.kind == "mark":
            kind = "operator" if one.text in _OPERATORS else None
        elif one.kind == "name":
            after = read[at + 1].text if at + 1 < len(read) else ""
            before = read[at - 1].text if at else ""
            if before == ".":
                rooted = at > 1 and read[at - 2].text == "ctx" and (at < 3 or read[at - 3].text != ".")
                kind = "variable" if rooted else "property"
            elif one.text in KEYWORDS:
                kind = "keyword"
            elif after == "(":
                kind = "function"
            elif after == ":":
                kind = "property"
            else:
                kind = "parameter" if one.text in parameters or one.text in _BOUND else "variable"
        if kind is not None:
            found.append((one.start, one.end, kind))
    return tuple(found)
