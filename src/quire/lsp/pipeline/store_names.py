"""The places at which a pipeline writes and reads its stores, its inputs and its branches."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from quire.formats.pipeline.inputs import uses
from quire.formats.pipeline.syntax import ParallelBody
from quire.lsp.answers import Name
from quire.lsp.pipeline.tree import labelled
from quire.source import Span

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quire.formats.pipeline.inputs import Use
    from quire.formats.pipeline.syntax import Pipeline, Step, Text
    from quire.lsp.answers import NameKind, Role
    from quire.lsp.views import View


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
        return _without_quotes(self._source.text, span, text)

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
            starts = [found.start() for found in re.finditer(r"[A-Za-z_][A-Za-z0-9_]*", written)]
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


def _without_quotes(text: str, span: Span, name: str) -> Span:
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
