"""Colours inside of pipelines: the parts of expressions, the references of prompts, kinds of step, names and tags."""

from __future__ import annotations

import itertools
from functools import lru_cache
from typing import TYPE_CHECKING

from quire.expr import ExprSyntaxError
from quire.expr.syntax import KEYWORDS, RESERVED
from quire.expr.tokens import tokens as expression_tokens
from quire.formats.pipeline.prompts import references
from quire.formats.pipeline.syntax import AgentBody, ToolBody
from quire.formats.pipeline.walks import expressions, inner_expressions, schema_of, targets
from quire.lsp.answers import Token
from quire.lsp.pipeline.store_names import placed
from quire.lsp.pipeline.tree import file_of, labelled
from quire.source import Span

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quire.formats.pipeline.syntax import ExpressionText, Name, Step, Text
    from quire.lsp.answers import TokenKind
    from quire.lsp.views import View

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
            found += _step(view, step)
    text = view.source.text
    return [one for one in found if one.span.end <= len(text) and "\n" not in text[one.span.start : one.span.end]]


def _step(view: View, step: Step) -> Iterator[Token]:
    yield Token(step.span, "keyword")
    if step.output is not None:
        yield Token(step.output.span, "variable", ("declaration",))
    if (schema := schema_of(step)) is not None:
        yield Token(schema.span, "type")
    for expression in (*expressions(step), *inner_expressions(step)):
        yield from _tag(expression)
        yield from _expression(view, expression)
    body = step.body
    if isinstance(body, ToolBody):
        yield Token(body.name.span, "function")
        yield from (Token(name.span, "property") for name, _ in body.args)
    elif isinstance(body, AgentBody):
        yield from (Token(one.span, "function") for one in body.tools or ())
        yield from _tag(body.prompt)
        if not body.is_file:
            yield from _prompt(view, body.prompt)
    for target in targets(step):
        yield Token(target.pipeline.span, "namespace")
        yield from (Token(one.name.span, "parameter") for one in target.passes if not _is_quoted(view, one.name))


def _is_quoted(view: View, name: Name) -> bool:
    return view.source.text[name.span.start : name.span.start + 1] in ("'", '"')


def _tag(text: Text) -> Iterator[Token]:
    scalar = text.scalar
    if scalar is not None and scalar.tag:
        yield Token(Span(scalar.span.start, scalar.span.start + len(scalar.tag)), "macro")


def _prompt(view: View, prompt: Text) -> Iterator[Token]:
    if "{" not in prompt.text:
        return
    for found in references(prompt.text):
        at = found.span.start + 1
        for number, segment in enumerate(found.path):
            kind: TokenKind = "variable" if number == 0 or (number == 1 and found.path[0] == "ctx") else "property"
            yield Token(placed(view, prompt, Span(at, at + len(segment))), kind)
            at += len(segment) + 1


def _expression(view: View, expression: ExpressionText) -> Iterator[Token]:
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
