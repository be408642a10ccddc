"""Types of the stores and bindings at a place of a pipeline, for hovers and completions.

The types flow through the steps as in the checks (`quire.formats.pipeline.check_types`), without reporting anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.formats.pipeline.check_types import TypeWalker
from quire.formats.pipeline.fields import Fields
from quire.formats.pipeline.known_types import KnownTypes, Shapes
from quire.lsp.pipeline.tree import count_until, file_of

if TYPE_CHECKING:
    from quire.formats.pipeline.syntax import ExpressionText, MatchBody, Pipeline, Step, Target, Text
    from quire.formats.resolver import DocumentResolver
    from quire.lsp.pipeline.tree import Way
    from quire.lsp.views import View
    from quire.schema import FieldType


class _Results(Mapping[str, "FieldType"]):
    """The types that documents of other formats give, looked up when they are asked for."""

    def __init__(self, resolver: DocumentResolver | None) -> None:
        self._resolver = resolver

    def __getitem__(self, name: str) -> FieldType:
        from quire.errors import QuireError

        try:
            found = self._resolver.document(name) if self._resolver else None
        except QuireError:
            found = None
        if found is None or found.gives is None:
            raise KeyError(name)
        return found.gives

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


class QuietWalker(TypeWalker):
    """Infers types and reports nothing. `before` has the types before each of the steps that were asked for, `results`
    the types of what they give."""

    def __init__(self, view: View, wanted: frozenset[int] = frozenset()) -> None:
        self.shapes = Shapes({schema.name: schema for schema in file_of(view).schemas})
        super().__init__(self.shapes, Fields(view.source), _Results(view.folder.snapshot), {}, None)
        self._wanted = wanted
        self.before: dict[int, KnownTypes] = {}
        self.results: dict[int, FieldType | None] = {}

    def step(self, step: Step, scope: KnownTypes) -> FieldType | None:
        if id(step) in self._wanted:
            self.before[id(step)] = KnownTypes(dict(scope.stores), scope.pipe, scope.names)
        type = super().step(step, scope)
        if id(step) in self._wanted:
            self.results[id(step)] = type
        return type

    def _examine(self, node: object, scope: KnownTypes, text: Text, guarded: bool = False) -> None: ...
    def _passes(self, target: Target, scope: KnownTypes) -> None: ...
    def _other_format(self, target: Target, scope: KnownTypes) -> None: ...
    def _arguments(self, step: Step, scope: KnownTypes) -> None: ...
    def _default(self, default: ExpressionText, step: Step) -> None: ...
    def _prompt(self, prompt: Text, scope: KnownTypes) -> None: ...
    def _cases(self, body: MatchBody, scope: KnownTypes) -> None: ...


class Scope(Struct, frozen=True):
    """The types that are known at a place."""

    types: KnownTypes
    shapes: Shapes
    result: FieldType | None = None
    """The type of what the step at the place gives."""


def scope_before(view: View, pipeline: Pipeline, number: int) -> Scope:
    """Return the types before the step of the list with a number, counted from 0."""
    walker = QuietWalker(view)
    return Scope(_before(pipeline, number, walker), walker.shapes)


def scope_at(view: View, way: Way) -> Scope:
    """Return the types that a step can read, and that of its result."""
    wanted = id(way.step)
    walker = QuietWalker(view, frozenset({wanted}))
    types = _before(way.pipeline, way.number, walker)
    walker.step(way.steps[0][1], types)
    return Scope(walker.before.get(wanted, types), walker.shapes, walker.results.get(wanted))


def types_of_results(view: View, pipeline: Pipeline, steps: list[Step]) -> dict[int, FieldType | None]:
    """Return the types of what some steps of a pipeline give, by the identity of the step."""
    if not steps:
        return {}
    walker = QuietWalker(view, frozenset(map(id, steps)))
    _before(pipeline, count_until(pipeline, max(step.span.start for step in steps)), walker)
    return walker.results


def _before(pipeline: Pipeline, number: int, walker: QuietWalker) -> KnownTypes:
    """Walk through the first steps of a pipeline. Return the types after them."""
    stores: dict[str, FieldType | None] = {field.name: field.type for field in pipeline.input or ()}
    pipe: FieldType | None = None
    for step in pipeline.steps[:number]:
        pipe = walker.step(step, KnownTypes(stores, pipe, {}))
    return KnownTypes(stores, pipe, {})
