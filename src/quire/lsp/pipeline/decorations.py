"""Marks of a pipeline (colours, types and bounds inside of lines, lines above steps), and the order of its keys.

Formatting puts the keys of steps into the order of the format and changes nothing else: no line is broken or joined,
and a comment stays with its key. An edit of a step after which its tree is not the same is not made.
"""

from __future__ import annotations

import itertools
from functools import lru_cache
from typing import TYPE_CHECKING

from quire.diagnostics import Edit
from quire.expr import ExprSyntaxError
from quire.expr.syntax import KEYWORDS, RESERVED
from quire.expr.tokenizer import tokens as expression_tokens
from quire.formats.pipeline.language import ALL_KINDS
from quire.formats.pipeline.parse import parse
from quire.formats.pipeline.prompt_references import references
from quire.formats.pipeline.syntax import AgentBody, FoldBody, ForEachBody, RepeatBody, ToolBody
from quire.formats.pipeline.walks import expressions, inner_expressions, schema_of, targets
from quire.formats.yaml import Entry, Mapping, Node, Sequence
from quire.lsp.answers import Hint, Lens, Token
from quire.lsp.bounds import bound_words, document_lenses, quick_proof
from quire.lsp.desk import uri_of
from quire.lsp.document_tests import count_cases
from quire.lsp.document_text import plain_value, safe_edits
from quire.lsp.pipeline.index import input_fields, placed
from quire.lsp.pipeline.scopes import types_of_results
from quire.lsp.pipeline.tree import YamlPlace, cut_of, file_of, labelled, node_of, place_below, tree_of
from quire.schema import type_words
from quire.source import Source, Span, line_end
from quire.wording import cut_line
from quire.workspace.secrets import shown_model

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quire.analysis.proof import Proof
    from quire.formats.pipeline.syntax import Pipeline, Step, Text
    from quire.lsp.answers import TokenKind
    from quire.lsp.document_view import View


_TARGET = ("pipeline", "pass", "steps")


def format(view: View, span: Span) -> list[Edit]:
    """Return the edits that put keys in order, in the steps that a span touches."""
    if view.reading is None or view.reading.file is None:
        return []
    text = view.source.text
    reported = [finding.span.start for finding in view.reading.diagnostics]
    edits = []
    for part in cut_of(view):
        for item in part.spans:
            touched = item.start <= span.end and span.start < item.end
            if touched and not any(item.start <= start < item.end for start in reported):
                old = item.of(text)
                new = ordered(old, part.column)
                if new != old and plain_value(node_of(new, part.column)) == plain_value(node_of(old, part.column)):
                    edits.append(Edit(item, old, new))
    return safe_edits(text, edits, lambda after: _means_the_same(view, after))


def _means_the_same(view: View, text: str) -> bool:
    """Tell whether a text has the same tree as a document, apart from places."""
    from quire.formats.pipeline.write import pipeline_tree

    after = parse(Source("", text), registered=True)
    return after.file is not None and _plain(pipeline_tree(after)) == _plain(pipeline_tree(view.reading))


def _plain(value: object) -> object:
    """Return a tree in JSON without places, and with sets of keys instead of their order."""
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items() if key not in ("span", "sha256", "source", "line")}
    return [_plain(part) for part in value] if isinstance(value, list) else value


def ordered(text: str, column: int) -> str:
    """Return the text of an item of the list `steps` with the keys of all its steps in order."""
    node = node_of(text, column)
    if node is None:
        return text
    return _Order(text).region(0, len(text), [(node, YamlPlace("step"))])


class _Order:
    def __init__(self, text: str) -> None:
        self._text = text

    def region(self, start: int, end: int, nodes: list[tuple[Node, YamlPlace]]) -> str:
        """Return a part of the text, with the nodes in it in order."""
        parts, at = [], start
        for node, place in sorted(nodes, key=lambda pair: pair[0].span.start):
            if not at <= node.span.start <= node.span.end <= end:
                return self._text[start:end]  # an alias stands for a node at another place
            parts += [self._text[at : node.span.start], self._node(node, place)]
            at = node.span.end
        return "".join(parts) + self._text[at:end]

    def _node(self, node: Node, place: YamlPlace) -> str:
        span = node.span
        if isinstance(node, Sequence):
            return self.region(span.start, span.end, [(item, place_below(place, "-")) for item in node.items])
        if not isinstance(node, Mapping) or not node.entries:
            return span.of(self._text)
        chunks = self._chunks(node)
        order = _order(place)
        names = [str(entry.key.value) for entry in node.entries]
        inner = [[(entry.value, place_below(place, name))] for entry, name in zip(node.entries, names, strict=True)]
        if chunks is None or not order or any(name not in order for name in names):
            return self.region(span.start, span.end, [pair for several in inner for pair in several])
        numbers = sorted(range(len(names)), key=lambda at: order.index(names[at]))
        texts = [self.region(chunk.start, chunk.end, nodes) for chunk, nodes in zip(chunks, inner, strict=True)]
        parts, at = [], span.start
        for chunk, number in zip(chunks, numbers, strict=True):
            parts += [self._text[at : chunk.start], texts[number]]
            at = chunk.end
        return "".join(parts) + self._text[at : span.end]

    def _chunks(self, node: Mapping) -> list[Span] | None:
        """Return the text that moves with each entry; None if the entries cannot be moved."""
        entries = node.entries
        if self._text[node.span.start : node.span.start + 1] == "{":
            if "\n" in node.span.of(self._text) or "#" in node.span.of(self._text):
                return None
            return [Span(entry.key.span.start, entry.value.span.end) for entry in entries]
        return self._lines(entries)

    def _lines(self, entries: tuple[Entry, ...]) -> list[Span] | None:
        """Return the lines of each entry of a block, with the comments above and behind it. None if the contents of an
        entry are not certain."""
        text = self._text
        chunks: list[Span] = []
        for at, entry in enumerate(entries):
            start, end = entry.key.span.start, max(entry.value.span.end, entry.key.span.end)
            if text[start:end].endswith("\n"):
                if "+" in text[entry.value.span.start : entry.value.span.start + 4]:
                    return None  # the empty lines behind it are a part of the text
                end = start + len(text[start:end].rstrip())
            rest = text[end : line_end(text, end)].rstrip()
            if rest and not rest.lstrip().startswith("#"):
                return None
            before = text[:start].rstrip(" ")
            if at == 0 and before.endswith("\n") and _is_comment(before[:-1].rpartition("\n")[2]):
                return None  # the comment is above the mapping
            if at > 0:
                above = text[chunks[-1].end : start]
                lines = [line.strip() for line in above.split("\n")]
                if len(lines) < 2 or lines[0] or not all(map(_is_comment, lines[1:-1])):
                    return None
                start = start if len(lines) == 2 else chunks[-1].end + above.index("#")
            chunks.append(Span(start, end + len(rest)))
        if chunks[-1].end > max(entries[-1].value.span.end, entries[-1].key.span.end):
            return None  # the comment is behind the mapping
        return chunks


def _is_comment(line: str) -> bool:
    return line.strip().startswith("#")


def _order(place: YamlPlace) -> tuple[str, ...]:
    if place.kind == "body":
        return ALL_KINDS[place.step]
    return _TARGET if place.kind == "target" else ()


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
    lenses: list[Lens] = []
    for number, pipeline in enumerate(tree.file.pipelines):
        if number == 0:
            bound = bound_words(view) if tree.whole and len(view.source.text) <= LARGE else ""
            lenses += document_lenses(view, pipeline.span, cases=count_cases(view), bound=bound)
        if len(tree.file.pipelines) > 1:
            continue  # a prompt is shown of a document that can run by itself
        for label, step in labelled(pipeline):
            if isinstance(step.body, AgentBody):
                lenses.append(Lens(step.span, "Prompt", "quire.showPrompt", (uri, label)))
    return lenses


_LONGEST = 40


def hints(view: View, span: Span) -> list[Hint]:
    hints: list[Hint] = []
    proof = quick_proof(view)
    rounds = fan_rounds(proof) if proof is not None else {}
    for pipeline in file_of(view).pipelines:
        steps = [
            (label, step) for label, step in labelled(pipeline) if span.start - 4_000 <= step.span.start <= span.end
        ]
        if not steps:
            continue
        hints += _type_hints(view, pipeline, [step for _, step in steps])
        for label, step in steps:
            if label in rounds and isinstance(step.body, ForEachBody | FoldBody | RepeatBody):
                hints.append(Hint(step.span.end, f"≤ {rounds[label]}", tooltip="The most rounds of this step."))
            hints += _pass_hints(view, step)
            hints += _model_hint(view, step)
    return [hint for hint in hints if span.holds(hint.offset)]


def _type_hints(view: View, pipeline: Pipeline, steps: list[Step]) -> Iterator[Hint]:
    stored = [step for step in steps if step.output is not None]
    types = types_of_results(view, pipeline, stored)
    for step in stored:
        type = types.get(id(step))
        if step.output is not None and type is not None:
            whole = type_words(type)
            yield Hint(step.output.span.end, f": {cut_line(whole, _LONGEST)}", tooltip=whole)


def _pass_hints(view: View, step: Step) -> Iterator[Hint]:
    """Yield the types of the inputs of a called document behind the names that are passed to it."""
    for target in targets(step):
        fields = input_fields(view, target.pipeline.text) if target.passes else {}
        for passed in target.passes:
            if passed.name.text in fields:
                words = type_words(fields[passed.name.text].type)
                yield Hint(passed.name.span.end, f": {cut_line(words, _LONGEST)}", "parameter", words)


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
    tokens: list[Token] = [Token(schema.span, "type", ("declaration",)) for schema in file.schemas]
    for pipeline in file.pipelines:
        if pipeline.name.text:
            tokens.append(Token(pipeline.name.span, "namespace", ("declaration",)))
        tokens += [Token(name.span, "parameter", ("declaration",)) for name in pipeline.input_names]
        for _, step in labelled(pipeline):
            tokens += _step_tokens(view, step)
    text = view.source.text
    return [token for token in tokens if token.span.end <= len(text) and "\n" not in token.span.of(text)]


def _step_tokens(view: View, step: Step) -> Iterator[Token]:
    yield Token(step.span, "keyword")
    if step.output is not None:
        yield Token(step.output.span, "variable", ("declaration",))
    if (schema := schema_of(step)) is not None:
        yield Token(schema.span, "type")
    for expression in (*expressions(step), *inner_expressions(step)):
        yield from _tag_token(expression)
        for start, end, kind in expression_kinds(expression.text):
            yield Token(placed(view, expression, Span(start, end)), kind)
    body = step.body
    if isinstance(body, ToolBody):
        yield Token(body.name.span, "function")
        yield from (Token(name.span, "property") for name, _ in body.args)
    elif isinstance(body, AgentBody):
        yield from (Token(tool.span, "function") for tool in body.tools or ())
        yield from _tag_token(body.prompt)
        if not body.is_file:
            yield from _prompt_tokens(view, body.prompt)
    for target in targets(step):
        yield Token(target.pipeline.span, "namespace")
        names = [passed.name.span for passed in target.passes]
        yield from (Token(name, "parameter") for name in names if view.source.text[name.start] not in "'\"")


def _tag_token(text: Text) -> Iterator[Token]:
    scalar = text.scalar
    if scalar is not None and scalar.tag:
        yield Token(Span(scalar.span.start, scalar.span.start + len(scalar.tag)), "macro")


def _prompt_tokens(view: View, prompt: Text) -> Iterator[Token]:
    if "{" not in prompt.text:
        return
    for reference in references(prompt.text):
        at = reference.span.start + 1
        for number, segment in enumerate(reference.path):
            kind: TokenKind = "variable" if number == 0 or (number == 1 and reference.path[0] == "ctx") else "property"
            yield Token(placed(view, prompt, Span(at, at + len(segment))), kind)
            at += len(segment) + 1


@lru_cache(maxsize=4_000)
def expression_kinds(text: str) -> tuple[tuple[int, int, TokenKind], ...]:
    """Return the parts of an expression with their kinds, counted from its start; none for one that is not right."""
    try:
        read = expression_tokens(text)
    except ExprSyntaxError:
        return ()
    parameters = {token.text for token, after in itertools.pairwise(read) if after.text == "->"}
    parts: list[tuple[int, int, TokenKind]] = []
    for at, token in enumerate(read):
        kind: TokenKind | None = None
        if token.kind == "number":
            kind = "number"
        elif token.kind == "text":
            kind = "string"
        elif token.kind == "mark":
            kind = "operator" if token.text in _OPERATORS else None
        elif token.kind == "name":
            after = read[at + 1].text if at + 1 < len(read) else ""
            before = read[at - 1].text if at else ""
            if before == ".":
                rooted = at > 1 and read[at - 2].text == "ctx" and (at < 3 or read[at - 3].text != ".")
                kind = "variable" if rooted else "property"
            elif token.text in KEYWORDS:
                kind = "keyword"
            elif after == "(":
                kind = "function"
            elif after == ":":
                kind = "property"
            else:
                kind = "parameter" if token.text in parameters or token.text in _BOUND else "variable"
        if kind is not None:
            parts.append((token.start, token.end, kind))
    return tuple(parts)
