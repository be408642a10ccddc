"""Marks of a playbook: colours, notes inside of lines, lines above steps, and fences that can be folded.

None of the lines above costs anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from quire.formats.markdown import signature_line
from quire.formats.playbook.names import family
from quire.formats.playbook.scan import CONDITION, MARKER, OPERATOR, SECTION, VALUE, VARIABLE
from quire.formats.playbook.sections import section_kind
from quire.lsp.answers import Fold, Hint, Lens, Token, TokenKind, TokenMark
from quire.lsp.bounds import bound_words, document_lenses
from quire.lsp.desk import uri_of
from quire.lsp.document_tests import count_cases
from quire.lsp.playbook.index import KnownNames, comments, tree_of
from quire.lsp.playbook.layout import HOW_WORDS, Layout, directives_of, layout_of, steps_of
from quire.lsp.prompts import model_of_step
from quire.patterns import late_pattern
from quire.source import PLACEHOLDER, Span, line_end
from quire.wording import cut_line

if TYPE_CHECKING:
    from re import Match

    from quire.formats.playbook.syntax import Playbook, Step
    from quire.lsp.document_view import View


def folds(view: View) -> list[Fold]:
    """Return the code fences."""
    source = view.source
    return [
        Fold(source.position(start).line, source.position(max(start, end - 1)).line)
        for start, end in layout_of(view).scan.blocks
    ]


def lenses(view: View) -> list[Lens]:
    """Return the lenses of a document, those of the title first."""
    tree = tree_of(view)
    if tree is None:
        return []
    uri = uri_of(view.path)
    sign = "Sign again" if signature_line(view.source.text) else "Sign"
    title = Span(tree.title_start, tree.title_end)
    lenses = [*document_lenses(view, title, cases=count_cases(view), bound=bound_words(view), sign=sign)]
    parts = {part.heading.start: part for part in layout_of(view).parts}
    for step in steps_of(tree):
        part = parts.get(step.start)
        if part is not None and not step.tool and (step.has_text or step.prompt):
            lenses.append(Lens(part.heading, "Prompt", "quire.showPrompt", (uri, step.label)))
    return lenses


LONGEST = 40


def hints(view: View, span: Span) -> list[Hint]:
    """Return the notes of a part of the document."""
    tree = tree_of(view)
    if tree is None:
        return []
    hints: list[Hint] = []
    layout = layout_of(view)
    title = layout.scan.title
    if title is not None and tree.title and span.holds(tree.title_end) and (bound := bound_words(view)):
        hints.append(Hint(tree.title_end, bound, tooltip="The most that a run asks of models and people."))
    for capture in layout.captures:
        if span.holds(capture.span.end) and not capture.name.startswith("__") and not capture.type:
            tooltip = f"Step {capture.label} keeps {HOW_WORDS[capture.how]}."
            hints.append(Hint(capture.span.end, f": {cut_line(capture.type_words, LONGEST)}", tooltip=tooltip))
    ends = {marker.step.start: marker.span.end for marker in layout.markers if marker.word == "endif"}
    for parent in tree.steps:
        if parent.start > span.end:
            break
        for step in family(parent):
            hints += _model_hint(view, step, span)
        hints += _arm_hints(view, parent, ends.get(parent.start))
    return sorted((hint for hint in hints if span.holds(hint.offset)), key=lambda hint: hint.offset)


def _model_hint(view: View, step: Step, span: Span) -> Iterator[Hint]:
    """Yield the model that a `@model` means here."""
    if step.model and span.holds(step.model.end):
        model = model_of_step(view, step.label, step.model.name)
        if model and model != step.model.name:
            yield Hint(step.model.end, f"→ {cut_line(model, LONGEST)}", tooltip="The model that does this step.")


def _arm_hints(view: View, step: Step, end: int | None) -> Iterator[Hint]:
    """Yield the target of each branch, and that without a true condition; `end` is the end of the last marker."""
    text = view.source.text
    for arm in step.arms:
        labels = ", ".join(inner.label for inner in arm.steps) or "nothing"
        yield Hint(line_end(text, arm.end), f"→ {cut_line(labels, LONGEST)}")
    if step.arms and end is not None and all(arm.condition for arm in step.arms):
        yield Hint(end, "otherwise no branch", tooltip="No condition holds: no sub-step runs.")


_WORD = late_pattern(r"@[a-z]++")
_PART = late_pattern(
    r'"(?:[^"\\\n]|\\.)*"|(?P<key>extract|default)(?=:)|(?P<scheme>library|file|mcp)(?=:)|(?P<number>-?[0-9]++(?![A-Za-z_0-9]))'
    r"|(?P<name>[A-Za-z0-9_][A-Za-z0-9_.-]*+)"
)
_TYPE = late_pattern(r"\(([A-Za-z]++)")


def tokens(view: View) -> list[Token]:
    """Return the tokens of a document."""
    tree = tree_of(view)
    layout = layout_of(view)
    tokens = [*_headings(layout)]
    if tree is not None:
        names = KnownNames(tree)
        tokens += [*_markers(layout, names), *_document_tokens(view.source.text, tree, names)]
        text = view.source.text
        closed = (
            comment for comment in comments(text, tree.title_start) if text.endswith("-->", comment.start, comment.end)
        )
        tokens += [Token(span, "comment") for span in closed]
    return tokens


def _headings(layout: Layout) -> Iterator[Token]:
    for part in layout.parts:
        at = part.line[0].index("STEP") + part.line.start() - 1
        yield Token(Span(at, at + len("STEP")), "keyword")
        yield Token(part.label_span, "number", ("declaration",))
    for section in layout.sections:
        if section_kind(section.name):
            at = section.line.start(SECTION) - 1
            yield Token(Span(at, at + len(section.name)), "keyword")


def _markers(layout: Layout, names: KnownNames) -> Iterator[Token]:
    """Yield the words of branch markers and the parts of conditions."""
    for marker in layout.markers:
        line = marker.line
        yield Token(_group(line, MARKER), "keyword")
        if line.lastindex == CONDITION:
            yield Token(_group(line, VARIABLE), _value(line[VARIABLE], names))
            yield Token(_group(line, OPERATOR), "operator")
            value = _group(line, VALUE)
            yield Token(Span(value.start - 1, value.end + 1), "string")


def _group(line: Match[str], group: int) -> Span:
    """Return the place of a group in the text. The scan runs on the text with a line end before it."""
    return Span(line.start(group) - 1, line.end(group) - 1)


def _document_tokens(text: str, tree: Playbook, names: KnownNames) -> Iterator[Token]:
    for declared in tree.inputs:
        yield Token(declared.name_span, "parameter", ("declaration",))
        if match := _TYPE.search(text, declared.name_span.end, declared.end):
            yield Token(Span(*match.span(1)), "type")
    for step in steps_of(tree):
        yield from _step_tokens(text, step, names)
    artifact = tree.artifact
    if artifact and artifact.end > artifact.start:
        if match := PLACEHOLDER.fullmatch(text, artifact.start, artifact.end):
            yield from _placeholder(match, names)
        elif artifact.type:
            yield Token(artifact.span, "enumMember")
    if artifact and artifact.source:
        yield Token(artifact.source_span, _value(artifact.source, names))


def _step_tokens(text: str, step: Step, names: KnownNames) -> Iterator[Token]:
    for start, end in step.pieces:
        for match in PLACEHOLDER.finditer(text, start, end):
            yield from _placeholder(match, names)
    for directive in directives_of(step):
        yield from _directive_tokens(text, directive.start, directive.end, names)


def _directive_tokens(text: str, start: int, end: int, names: KnownNames) -> Iterator[Token]:
    word = _WORD.match(text, start, end)
    if not word:
        return
    yield Token(Span(*word.span()), "decorator")
    kind, first, at = word[0][1:], True, word.end()
    while at < end:
        if match := PLACEHOLDER.match(text, at, end):
            yield from _placeholder(match, names)
            at = match.end()
        elif part := _PART.match(text, at, end):
            yield from _argument(text, part, kind, names, first=first)
            first, at = False, part.end()
        else:
            at += 1


def _argument(text: str, part: Match[str], kind: str, names: KnownNames, *, first: bool) -> Iterator[Token]:
    """Yield the tokens of one part between the parentheses."""
    span = Span(*part.span())
    if part["key"]:
        yield Token(span, "property")
    elif part["scheme"] and kind == "prompt":
        yield Token(span, "keyword")
    elif part[0][0] == '"':
        yield from _quoted(text, span, names)
    elif kind == "output":
        yield Token(span, "variable", ("declaration",)) if first else Token(span, "type")
    elif kind == "elicit":
        yield Token(span, "enumMember" if first else "string")
    elif kind == "tool":
        yield Token(span, "namespace" if first else "number" if part["number"] else "function")
    elif kind == "context":
        yield Token(span, "keyword" if part[0] == "none" else _value(part[0], names))
    elif kind == "model":
        yield Token(span, "type")
    elif kind == "prompt":
        yield Token(span, "string")


def _quoted(text: str, span: Span, names: KnownNames) -> Iterator[Token]:
    """Yield a quoted text in pieces, with the placeholders in it."""
    at = span.start
    for match in PLACEHOLDER.finditer(text, span.start, span.end):
        yield Token(Span(at, match.start()), "string")
        yield from _placeholder(match, names)
        at = match.end()
    yield Token(Span(at, span.end), "string")


def _placeholder(match: Match[str], names: KnownNames) -> Iterator[Token]:
    """Yield the name of a placeholder and its type. One that has a default is never unresolved."""
    name = Span(*match.span(1))
    is_known = match[3] is not None or names.is_known(match[1])
    marks: tuple[TokenMark, ...] = ("readonly",) if is_known and match[1] in names.inputs else ()
    yield Token(
        name, _value(match[1], names) if names.is_known(match[1]) else "variable" if is_known else "unresolved", marks
    )
    if match[2]:
        yield Token(Span(*match.span(2)), "type")


def _value(name: str, names: KnownNames) -> TokenKind:
    if name in names.inputs:
        return "parameter"
    if name in names.outputs or names.is_known(name):
        return "variable"
    return "number" if name in names.labels else "unresolved"
