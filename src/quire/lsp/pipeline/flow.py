"""Types of the stores and bindings at a place of a pipeline, for hovers and completions.

The types flow through the steps as in the checks (`quire.formats.pipeline.check_types`), without reporting anything.
Every few steps the types are kept, so that after a change only the steps since then are walked through again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.formats.pipeline.check_types import TypeWalker
from quire.formats.pipeline.fields import Fields
from quire.formats.pipeline.known_types import KnownTypes, Shapes
from quire.lsp.pipeline.tree import file_of

if TYPE_CHECKING:
    from quire.formats.pipeline.syntax import ExpressionText, MatchBody, Pipeline, Step, Target, Text
    from quire.formats.resolver import DocumentResolver
    from quire.lsp.pipeline.tree import Way
    from quire.lsp.views import View
    from quire.schema import Field, FieldType, Schema

_EVERY = 32
_MOST_KEPT = 64


class _Kept(Struct):
    """The types between the steps of the last version of a pipeline."""

    steps: tuple[Step, ...]
    schemas: tuple[Schema, ...]
    inputs: tuple[Field, ...] | None
    marks: list[KnownTypes]
    """Before step 1, before step 33, and so on."""


_KEPT: dict[tuple[str, str], _Kept] = {}


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
    types = _marks(view, pipeline, number, walker)
    return Scope(types, walker.shapes)


def scope_at(view: View, way: Way) -> Scope:
    """Return the types that a step can read, and that of its result."""
    wanted = id(way.step)
    walker = QuietWalker(view, frozenset({wanted}))
    top = way.steps[0][1]
    number = next(at for at, one in enumerate(way.pipeline.steps) if one is top)
    types = _marks(view, way.pipeline, number, walker)
    walker.step(top, types)
    return Scope(walker.before.get(wanted, types), walker.shapes, walker.results.get(wanted))


def types_of_results(view: View, pipeline: Pipeline, steps: list[Step]) -> dict[int, FieldType | None]:
    """Return the types of what some steps give, by the identity of the step. Only the steps of the list around them are
    walked through."""
    from bisect import bisect_right

    if not steps:
        return {}
    walker = QuietWalker(view, frozenset(map(id, steps)))
    starts = [one.span.start for one in pipeline.steps]
    first = max(bisect_right(starts, min(one.span.start for one in steps)) - 1, 0)
    last = bisect_right(starts, max(one.span.start for one in steps))
    types = _marks(view, pipeline, first, QuietWalker(view))
    _through(walker, pipeline.steps[first:last], types)
    return walker.results


def _marks(view: View, pipeline: Pipeline, number: int, walker: QuietWalker) -> KnownTypes:
    """Return the types before a step. Marks of the last version are used as far as the steps are the same."""
    key = (view.path, pipeline.name.text)
    schemas, steps = file_of(view).schemas, pipeline.steps
    kept = _KEPT.pop(key, None)
    if kept is None or kept.schemas != schemas or kept.inputs != pipeline.input:
        first = KnownTypes({one.name: one.type for one in pipeline.input or ()}, None, {})
        kept = _Kept(steps, schemas, pipeline.input, [first])
    else:
        same = next((at for at, (old, new) in enumerate(zip(kept.steps, steps, strict=False)) if old is not new), None)
        same = min(len(kept.steps), len(steps)) if same is None else same
        del kept.marks[same // _EVERY + 1 :]
        kept.steps = steps
    _KEPT[key] = kept
    while len(_KEPT) > _MOST_KEPT:
        del _KEPT[next(iter(_KEPT))]
    while (len(kept.marks) - 1) < number // _EVERY:
        begin = (len(kept.marks) - 1) * _EVERY
        kept.marks.append(_through(walker, steps[begin : begin + _EVERY], kept.marks[-1]))
    begin = number // _EVERY * _EVERY
    return _through(walker, steps[begin:number], kept.marks[number // _EVERY])


def _through(walker: QuietWalker, steps: tuple[Step, ...], types: KnownTypes) -> KnownTypes:
    """Return the types after some steps; those before them stay as they are."""
    stores, pipe = dict(types.stores), types.pipe
    for step in steps:
        pipe = walker.step(step, KnownTypes(stores, pipe, types.names))
    return KnownTypes(stores, pipe, types.names)
