"""Types of the stores and bindings at a place of a pipeline, for hovers and completions.

The types flow through the steps as in the checks (`quire.formats.pipeline.check_types`), without reporting anything.
For every few steps it is kept which types they write, so that after a change only the steps since then are walked
through again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.formats.pipeline.check_types import TypeWalker
from quire.formats.pipeline.fields import Fields
from quire.formats.pipeline.known_types import KnownTypes, Shapes
from quire.lsp.pipeline.tree import file_of, outer_of, step_lists

if TYPE_CHECKING:
    from quire.formats.pipeline.syntax import ExpressionText, MatchBody, Pipeline, Step, Target, Text
    from quire.formats.resolver import DocumentResolver
    from quire.lsp.pipeline.tree import StepList, Way
    from quire.lsp.views import View
    from quire.schema import Field, FieldType, Schema

_EVERY = 32
_MOST_KEPT = 64


class _Group(Struct, frozen=True):
    """The types that a few steps leave behind."""

    written: dict[str, FieldType | None]
    pipe: FieldType | None


class _Kept(Struct):
    """The types that flow through the last version of a pipeline."""

    texts: Sequence[object]
    """As in `StepList`."""
    schemas: tuple[Schema, ...]
    inputs: tuple[Field, ...] | None
    groups: list[_Group]
    """For the first steps of the list, then for the next ones, and so on."""


class _Recorded(dict[str, "FieldType | None"]):
    """Stores that note which of them are written."""

    def __init__(self, stores: Mapping[str, FieldType | None]) -> None:
        super().__init__(stores)
        self.written: dict[str, FieldType | None] = {}

    def __setitem__(self, name: str, type: FieldType | None) -> None:
        super().__setitem__(name, type)
        self.written[name] = type


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
        self.shapes = Shapes({schema.name: schema for schema in outer_of(view).schemas})
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


def scope_before(view: View, steps: StepList, number: int) -> Scope:
    """Return the types before the step of the list with a number, counted from 0."""
    walker = QuietWalker(view)
    return Scope(_before(view, steps, number, walker), walker.shapes)


def scope_at(view: View, way: Way) -> Scope:
    """Return the types that a step can read, and that of its result."""
    wanted = id(way.step)
    walker = QuietWalker(view, frozenset({wanted}))
    types = _before(view, way.all, way.number, walker)
    walker.step(way.steps[0][1], types)
    return Scope(walker.before.get(wanted, types), walker.shapes, walker.results.get(wanted))


def types_of_results(view: View, pipeline: Pipeline, steps: list[Step]) -> dict[int, FieldType | None]:
    """Return the types of what some steps of a pipeline of `file_of` give, by the identity of the step. Only the steps
    of the list around them are walked through."""
    from bisect import bisect_right

    if not steps:
        return {}
    walker = QuietWalker(view, frozenset(map(id, steps)))
    starts = [one.span.start for one in pipeline.steps]
    first = max(bisect_right(starts, min(one.span.start for one in steps)) - 1, 0)
    last = bisect_right(starts, max(one.span.start for one in steps))
    number = next(at for at, one in enumerate(file_of(view).pipelines) if one is pipeline)
    types = _before(view, step_lists(view)[number], first, QuietWalker(view))
    _through(walker, pipeline.steps[first:last], types.stores, types.pipe)
    return walker.results


def _before(view: View, steps: StepList, number: int, walker: QuietWalker) -> KnownTypes:
    """Return the types before a step. Those of the last version are used as far as the texts of steps are the same."""
    pipeline, inputs = steps.pipeline, steps.pipeline.input
    kept = _known(view, steps)
    types = _Recorded({one.name: one.type for one in inputs or ()})
    pipe: FieldType | None = None
    for group in kept.groups[: number // _EVERY]:
        types.update(group.written)
        pipe = group.pipe
    while len(kept.groups) < number // _EVERY:
        begin = len(kept.groups) * _EVERY
        types.written = {}
        pipe = _through(walker, pipeline.steps[begin : begin + _EVERY], types, pipe)
        kept.groups.append(_Group(types.written, pipe))
    stores = dict(types)
    pipe = _through(walker, pipeline.steps[number // _EVERY * _EVERY : number], stores, pipe)
    return KnownTypes(stores, pipe, {})


def _known(view: View, steps: StepList) -> _Kept:
    """Return what is still known of a pipeline."""
    key = (view.path, steps.pipeline.name.text)
    schemas, inputs = outer_of(view).schemas, steps.pipeline.input
    kept = _KEPT.pop(key, None)
    if kept is None or kept.schemas != schemas or kept.inputs != inputs:
        kept = _Kept(steps.texts, schemas, inputs, [])
    elif kept.texts is not steps.texts:
        both = zip(kept.texts, steps.texts, strict=False)
        same = next(
            (at for at, (old, new) in enumerate(both) if old is not new), min(len(kept.texts), len(steps.texts))
        )
        del kept.groups[same // _EVERY :]
        kept.texts = steps.texts
    _KEPT[key] = kept
    while len(_KEPT) > _MOST_KEPT:
        del _KEPT[next(iter(_KEPT))]
    return kept


def _through(
    walker: QuietWalker, steps: tuple[Step, ...], stores: dict[str, FieldType | None], pipe: FieldType | None
) -> FieldType | None:
    """Walk through some steps. Return the type of the pipe after them; the stores are those after them then."""
    for step in steps:
        pipe = walker.step(step, KnownTypes(stores, pipe, {}))
    return pipe
