"""The names that can be read at a place of a pipeline, with their types and writers.

The types flow through the steps as in the checks (`quire.formats.pipeline.check_types`), without reporting anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.errors import QuireError
from quire.expr import ExprSyntaxError, parse
from quire.expr.syntax import Each, FunctionCall, Path, children
from quire.formats.pipeline.check_types import TypeWalker
from quire.formats.pipeline.fields import Fields
from quire.formats.pipeline.inputs import uses
from quire.formats.pipeline.known_types import LOOP_NAMES, NUMBER, KnownTypes, Shapes, element, parts_of
from quire.formats.pipeline.syntax import HOLE, RepeatBody
from quire.formats.pipeline.walks import expressions, inner_expressions
from quire.lsp.pipeline.tree import Way, count_until, file_of, labelled, pipeline_at, place_of, way_to
from quire.source import NOWHERE

if TYPE_CHECKING:
    from quire.expr.syntax import Node
    from quire.formats.pipeline.syntax import ExpressionText, MatchBody, Pipeline, Step, Target, Text
    from quire.formats.resolver import DocumentResolver
    from quire.lsp.document_view import View
    from quire.lsp.yaml_scan import CursorPlace
    from quire.schema import Field, FieldType


_BEGIN = re.compile(r"(?:![a-z]+[ ]+)?(?:[|>][-+0-9]*[ ]*(?:#[^\n]*)?\n|([\"']))?")
"""Matches the tag and the mark before the text of a scalar."""
_OVER = re.compile(r"\bover:[ ]*(?:\"([^\"\n]*)\"|'([^'\n]*)'|([^\n,}]*))")


class ReadableNames(Struct, frozen=True):
    """The names that an expression at a place can read."""

    pipeline: Pipeline | None
    """The pipeline around the place."""
    scope: Scope
    way: Way | None
    """The step around the place; None if it could not be read."""
    parameters: frozenset[str] = frozenset()
    """The names of `scope` that are parameters of lambdas around the place."""

    def type_at(self, path: tuple[str, ...]) -> FieldType | None:
        """Return the type of a path; None if it is not known."""
        shapes = self.scope.shapes
        return shapes.infer(Path(path, (NOWHERE,) * len(path), NOWHERE), self.scope.types)

    def is_bound(self, root: str) -> bool:
        """Tell whether the first name of a path is a binding, such as `pipe` or `item`, and not a store."""
        return root == "pipe" or root in self.scope.types.names

    def fields_at(self, path: tuple[str, ...]) -> tuple[Field, ...]:
        """Return the fields of the value at a path."""
        return parts_of(self.scope.shapes.resolved(self.type_at(path))) or ()


def names_at(view: View, offset: int, place: CursorPlace) -> ReadableNames:
    """Return what can be read at a place. A step that cannot be read gets the stores of the steps before it, and the
    bindings that its keys tell."""
    way = way_to(view, offset)
    if way is not None and way.step.body is not HOLE:
        scope = scope_at(view, way)
        if isinstance(way.step.body, RepeatBody) and place.path[-1:] == ("until",):
            names = {**scope.types.names, "acc": scope.result, "round": NUMBER}
            scope = Scope(KnownTypes(scope.types.stores, scope.types.pipe, names), scope.shapes)
        return ReadableNames(way.pipeline, scope, way)
    pipeline = pipeline_at(view, offset)
    if pipeline is None:
        empty = Scope(KnownTypes({}, None, {}), Shapes({schema.name: schema for schema in file_of(view).schemas}))
        return ReadableNames(None, empty, None)
    number = count_until(pipeline, offset)
    if way is not None:
        number = max(number - 1, 0)
    before = scope_before(view, pipeline, number)
    types = KnownTypes(before.types.stores, before.types.pipe, _bindings(view, offset, place, before))
    return ReadableNames(pipeline, Scope(types, before.shapes), None)


def in_lambdas(view: View, names: ReadableNames, offset: int) -> ReadableNames:
    """Return what can be read at a place of an expression, with the parameters of the lambdas around it."""
    step = names.way.step if names.way is not None else None
    texts = (*expressions(step), *inner_expressions(step)) if step is not None else ()
    around = next((text.span for text in texts if text.span.holds(offset)), None)
    if around is None:
        return names
    written = around.of(view.source.text).rstrip()
    begin = _BEGIN.match(written)
    start, mark = (begin.end(), begin[1] or "") if begin else (0, "")
    try:
        root = parse(written[start:].removesuffix(mark), dialect=True).root
    except ExprSyntaxError:  # one with escapes of YAML
        return names
    types, parameters = names.scope.types, set[str]()
    for node in _around(root, offset - around.start - start):
        if isinstance(node, Each | FunctionCall) and node.parameter:
            types = names.scope.shapes.inside(node, types)
            parameters.add(node.parameter)
    scope = Scope(types, names.scope.shapes, names.scope.result)
    return ReadableNames(names.pipeline, scope, names.way, frozenset(parameters))


def _around(root: Node, offset: int) -> Iterator[Node]:
    """Yield the calls whose lambda holds an offset of an expression, the outermost first."""
    node: Node | None = root
    while node is not None:
        body = node.body if isinstance(node, Each) else node.key if isinstance(node, FunctionCall) else None
        if body is not None and body.span.holds(offset):
            yield node
            node = body
        else:
            node = next((child for child in children(node) if child.span.holds(offset)), None)


def _bindings(view: View, offset: int, place: CursorPlace, scope: Scope) -> dict[str, FieldType | None]:
    """Return the bindings at a place of a step that cannot be read, by the keys around it."""
    bindings: dict[str, FieldType | None] = {}
    for around in place_of(place.path).depth or (place_of(place.path[:-1]).depth if place.path else ()):
        step, _, key = around.partition(".")
        loop = {name: type for name, type in bindings.items() if name in LOOP_NAMES and "round" in bindings}
        match step, key:
            case "for_each", "do":
                bindings = {**loop, "item": _item(view, offset, scope)}
            case "fold", "do":
                bindings = {**loop, "item": _item(view, offset, scope), "acc": None}
            case "repeat", "do":
                bindings = {**bindings, "acc": None, "round": NUMBER}
            case "for_each" | "parallel", "collect":
                bindings = {**loop, "errors": None}
    return bindings


def _item(view: View, offset: int, scope: Scope) -> FieldType | None:
    """Return the type of the items of the list that the nearest `over` before an offset names."""
    text = view.source.text[max(0, offset - 4_000) : offset]
    lists = list(_OVER.finditer(text))
    if not lists:
        return None
    match = lists[-1]
    try:
        root = parse((match[1] or match[2] or match[3] or "").strip(), dialect=True).root
    except ExprSyntaxError:
        return None
    return element(scope.shapes.infer(root, scope.types))


def writers_of(pipeline: Pipeline, name: str) -> list[tuple[str, Step]]:
    """Return the steps that write a store, with their labels."""
    return [(label, step) for label, step in labelled(pipeline) if step.output is not None and step.output.text == name]


def is_input(pipeline: Pipeline, name: str) -> bool:
    """Tell whether a pipeline declares an input, or can only mean one because no step writes it."""
    declared = any(input.text == name for input in pipeline.input_names)
    return declared or (pipeline.input is None and not writers_of(pipeline, name))


def store_names(pipeline: Pipeline) -> list[str]:
    """Return the names of all stores and inputs that a pipeline mentions."""
    names = dict.fromkeys(name.text for name in pipeline.input_names)
    names |= dict.fromkeys(step.output.text for _, step in labelled(pipeline) if step.output is not None)
    names |= dict.fromkeys(
        use.store for use in uses(pipeline) if use.store and (not use.in_prompt or use.path[0] == "ctx")
    )
    return list(names)


class _Results(Mapping[str, "FieldType"]):
    """The types that documents of other formats give, looked up when they are asked for."""

    def __init__(self, resolver: DocumentResolver | None) -> None:
        self._resolver = resolver

    def __getitem__(self, name: str) -> FieldType:
        try:
            interface = self._resolver.document(name) if self._resolver else None
        except QuireError:
            interface = None
        if interface is None or interface.gives is None:
            raise KeyError(name)
        return interface.gives

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


class QuietWalker(TypeWalker):
    """Infers types and reports nothing. `before` has the types before each of the steps that were asked for, `results`
    the types of their results."""

    def __init__(self, view: View, asked_for: frozenset[int] = frozenset()) -> None:
        self.shapes = Shapes({schema.name: schema for schema in file_of(view).schemas})
        super().__init__(self.shapes, Fields(view.source), _Results(view.folder.snapshot), {}, None)
        self._asked_for = asked_for
        self.before: dict[int, KnownTypes] = {}
        self.results: dict[int, FieldType | None] = {}

    def step(self, step: Step, scope: KnownTypes) -> FieldType | None:
        if id(step) in self._asked_for:
            self.before[id(step)] = KnownTypes(dict(scope.stores), scope.pipe, scope.names)
        type = super().step(step, scope)
        if id(step) in self._asked_for:
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
    """The type of the result of the step at the place."""


def scope_before(view: View, pipeline: Pipeline, number: int) -> Scope:
    """Return the types before the step of the list with a number, counted from 0."""
    walker = QuietWalker(view)
    return Scope(_before(pipeline, number, walker), walker.shapes)


def scope_at(view: View, way: Way) -> Scope:
    """Return the types that a step can read, and that of its result."""
    step = id(way.step)
    walker = QuietWalker(view, frozenset({step}))
    types = _before(way.pipeline, way.number, walker)
    walker.step(way.steps[0][1], types)
    return Scope(walker.before.get(step, types), walker.shapes, walker.results.get(step))


def types_of_results(view: View, pipeline: Pipeline, steps: list[Step]) -> dict[int, FieldType | None]:
    """Return the types of the results of some steps of a pipeline, by the identity of the step."""
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
