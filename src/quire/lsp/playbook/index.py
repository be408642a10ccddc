"""The names and parts of a playbook: inputs, captures, placeholders, conditions and steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from quire.formats.playbook.names import family
from quire.lsp.answers import Index, Link, Name, NameKind, Role
from quire.lsp.playbook.layout import ASKED, layout_of
from quire.lsp.playbook.outline import outline
from quire.lsp.playbook.references import references
from quire.patterns import late_pattern
from quire.source import PLACEHOLDER, Span

if TYPE_CHECKING:
    from quire.formats.playbook.syntax import Arm, Playbook, Step
    from quire.lsp.views import View

_WORD = late_pattern(r"[A-Za-z0-9_]++")
_COMMENT = late_pattern(r"<!--[ \t]*+quire:")
_IN_STEP = late_pattern(r"\bin[ \t]++step[ \t]++([0-9]++[a-z]?+)(?![0-9A-Za-z])")


def index(view: View) -> Index:
    """Return the names, parts and links of a playbook, as far as it can be read."""
    tree = tree_of(view)
    if tree is None:
        return Index()
    names = [*own_names(view, tree)]
    links: list[Link] = []
    for parent in tree.steps:
        for step in family(parent):
            if step.tool or step.prompt or step.model:
                references(view, step, names, links)
    names.sort(key=lambda name: (name.span.start, name.span.end))
    return Index(tuple(names), outline(view, tree), tuple(links))


def tree_of(view: View) -> Playbook | None:
    """Return the tree of a playbook as far as it can be read; None for a text that is empty or too large."""
    tree: Playbook | None = view.reading.partial if view.format == "playbook" else None
    return tree


class KnownNames:
    """The kind of thing that a name means in one playbook."""

    def __init__(self, tree: Playbook) -> None:
        self.inputs = {one.name for one in tree.inputs}
        self.outputs = {step.output.name for parent in tree.steps for step in family(parent) if step.output}
        self.labels = {step.label for parent in tree.steps for step in family(parent)}

    def kind(self, name: str) -> NameKind:
        """Return the kind of a value. An input wins over an output; a name of nothing counts as an input, because that
        is what an author would add."""
        if name not in self.inputs and (name in self.outputs or name.startswith(ASKED)):
            return "output"
        return "input"

    def is_known(self, name: str) -> bool:
        if name.startswith(ASKED):
            return name.removeprefix(ASKED) in self.labels
        return name in self.inputs or name in self.outputs


def own_names(view: View, tree: Playbook) -> Iterator[Name]:
    """Yield the names of things of the document itself."""
    known, source = KnownNames(tree), view.source
    for declared in tree.inputs:
        yield Name("input", declared.name, declared.name_span, "declares")
    starts = {step.start for parent in tree.steps for step in family(parent)}
    for part in layout_of(view).parts:
        if part.heading.start in starts:
            yield Name("step", part.label, part.label_span, "declares")
    for parent in tree.steps:
        for step in family(parent):
            yield from _step(step, known)
        yield from _conditions(parent.arms, known)
    if tree.artifact:
        for found in PLACEHOLDER.finditer(source.text, tree.artifact.start, tree.artifact.end):
            yield from value(found[1], found.start(1), known)
        if tree.artifact.source:
            yield _result(tree.artifact.source, tree.artifact.source_span, known)
    for comment in comments(source.text, tree.title_start):
        if named := _IN_STEP.search(source.text, comment.start, comment.end):
            yield Name("step", named[1], Span(*named.span(1)), "reads")


def comments(text: str, end: int) -> Iterator[Span]:
    """Yield the comments before an offset that begin with `quire:`. One without its end goes to the end of its line."""
    at = stop = 0
    while opening := _COMMENT.search(text, at, end):
        if stop < opening.end():
            stop = text.find("\n", opening.end(), end)
            stop = end if stop < 0 else stop
        close = text.find("-->", opening.end(), stop)
        at = stop if close < 0 else close + len("-->")
        yield Span(opening.start(), at)


def _step(step: Step, known: KnownNames) -> Iterator[Name]:
    for place in step.placeholders:
        yield from value(place.name, place.start + 2, known)
    if step.output:
        yield Name("output", step.output.name, step.output.name_span, "writes")
    if step.elicitation:
        at = step.elicitation.start + 1
        for label in dict.fromkeys((step.label, str(step.number))):
            yield Name("output", ASKED + label, Span(at, at + len("elicit")), "writes", renames=False)
    if step.context:
        for word in _WORD.finditer(step.document, step.context.start + len("@context("), step.context.end - 1):
            if step.context.names:
                yield _result(word[0], Span(*word.span()), known)


def _conditions(arms: tuple[Arm, ...], known: KnownNames) -> Iterator[Name]:
    for arm in arms:
        if arm.condition:
            yield from value(arm.condition.variable, arm.condition.variable_start, known)


def value(name: str, start: int, known: KnownNames, role: Role = "reads") -> Iterator[Name]:
    """Yield the name of a value that is read. In the name of an answer, the label of the step is a name too."""
    span = Span(start, start + len(name))
    is_answer = name.startswith(ASKED) and name not in known.inputs and name not in known.outputs
    yield Name(known.kind(name), name, span, role, renames=not is_answer)
    label = name.removeprefix(ASKED)
    if is_answer and label in known.labels:
        yield Name("step", label, Span(span.end - len(label), span.end), "reads")


def _result(name: str, span: Span, known: KnownNames) -> Name:
    """Return the name of an earlier result: an output, or the label of a step."""
    if name in known.outputs or name.startswith(ASKED):
        return Name("output", name, span, "reads", renames=not name.startswith(ASKED))
    return Name("step", name, span, "reads")
