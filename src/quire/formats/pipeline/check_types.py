"""Type checks: unknown fields, `match` cases that can never occur, comparisons between types without an order.

Types are inferred from schemas, literals and operators. They flow from a step with a schema through stores, the pipe,
items and branches to the expressions that read them. If a type is not known, nothing is reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias, assert_never

from msgspec import Struct
from msgspec.structs import replace

from quire.expr import python_text
from quire.expr.syntax import (
    RESERVED,
    Arithmetic,
    Compare,
    Constant,
    Each,
    FunctionCall,
    Join,
    Logic,
    Negate,
    Node,
    Not,
    Path,
    Total,
    children,
)
from quire.formats.near_names import name_fix
from quire.formats.pipeline.check_inputs import wrong_type
from quire.formats.pipeline.codes import lints, warnings
from quire.formats.pipeline.prompts import references
from quire.formats.pipeline.syntax import (
    AgentBody,
    CallBody,
    ExpressionText,
    FoldBody,
    ForEachBody,
    MatchBody,
    ParallelBody,
    Pipeline,
    ShellBody,
    Step,
    Target,
    Text,
    ToolBody,
    TransformBody,
    expressions,
    schema_of,
    targets,
)
from quire.schema import Enum, Field, FieldType, Kind, ListOf, Object, Ref, Schema, Simple
from quire.source import Span

if TYPE_CHECKING:
    from quire.diagnostics import Fix
    from quire.formats.pipeline.fields import Fields
    from quire.values import Value

Types: TypeAlias = "Mapping[str, FieldType | None]"
"""Types by name; None is an unknown type."""

_BOOL, _NUMBER, _TEXT = Simple(Kind.BOOL), Simple(Kind.NUMBER), Simple(Kind.STRING)


class KnownTypes(Struct, frozen=True):
    """Known types of the stores, of the pipe, and of the other bindings at one place."""

    stores: Types
    pipe: FieldType | None
    names: Types

    def with_name(self, name: str, type: FieldType | None) -> KnownTypes:
        return KnownTypes(self.stores, self.pipe, {**self.names, name: type})

    def begin(self, segments: tuple[str, ...]) -> tuple[FieldType | None, tuple[str, ...]]:
        """Return the type of the value at which a path begins, and the segments after it."""
        root, rest = segments[0], segments[1:]
        if root in self.names:
            return self.names[root], rest
        if root == "pipe":
            return self.pipe, rest
        if root == "ctx":
            return (self.stores.get(rest[0]), rest[1:]) if rest else (None, ())
        return (None if root in RESERVED else self.stores.get(root)), rest


class Shapes(Struct, frozen=True):
    """The schemas of a file."""

    schemas: Mapping[str, Schema]

    def resolved(self, type: FieldType | None) -> FieldType | None:
        """Return the type with a reference followed."""
        if not isinstance(type, Ref):
            return type
        schema = self.schemas.get(type.schema)
        return Object(schema.fields) if schema else None

    def infer(self, node: Node, scope: KnownTypes) -> FieldType | None:
        """Return the type of an expression; None if it is not known."""
        match node:
            case Constant(value=value):
                return _literal(value)
            case Path(segments=segments):
                known, rest = scope.begin(segments)
                for segment in rest:
                    inside = parts_of(self.resolved(known)) or ()
                    known = next((one.type for one in inside if one.name == segment), None)
                return known
            case Compare() | Not():
                return _BOOL
            case Negate() | Total():
                return _NUMBER
            case Join():
                return _TEXT
            case Each(name="all" | "any"):
                return _BOOL
            case Each(name="filter", source=source):
                return self.infer(source, scope)
            case Arithmetic(first=first, rest=operands):
                if any(operator != "+" for operator, _ in operands):
                    return _NUMBER
                known = self.infer(first, scope)
                kind = Simple(known.kind) if isinstance(known, Simple) else None
                return kind if kind in (_NUMBER, _TEXT) else None
            case Logic(operands=parts):
                found = [self.infer(part, scope) for part in parts]
                return found[0] if all(one == found[0] for one in found) else None
            case FunctionCall():
                from quire.formats.pipeline.function_types import type_of_call

                inner = self.inside(node, scope)
                return type_of_call(node, lambda part: self.known(part, scope), lambda part: self.known(part, inner))
        return None

    def known(self, node: Node, scope: KnownTypes) -> FieldType | None:
        """Return the type of an expression with a reference followed."""
        return self.resolved(self.infer(node, scope))

    def inside(self, node: Each | FunctionCall, scope: KnownTypes) -> KnownTypes:
        """Return the types that are known in the lambda of a call."""
        source = node.source if isinstance(node, Each) else node.arguments[0]
        return scope.with_name(node.parameter, element(self.infer(source, scope)))


def element(type: FieldType | None) -> FieldType | None:
    """Return the type of the items of a list."""
    return type.of if isinstance(type, ListOf) else None


def parts_of(type: FieldType | None) -> tuple[Field, ...] | None:
    """Return the fields of an object; None for any other type."""
    return type.fields if isinstance(type, Object) else None


def order_of(type: FieldType | None) -> str | None:
    """Return the kind of a value for `<` and its relatives: booleans count as numbers. None if it is not known."""
    match type:
        case Simple(kind=Kind.STRING):
            return "text"
        case Simple():
            return "number"
        case ListOf():
            return "list"
        case Object():
            return "map"
        case Enum(values=values):
            kinds = {order_of(_literal(value)) for value in values}
            return kinds.pop() if len(kinds) == 1 else None
    return None


def _literal(value: Value) -> FieldType | None:
    if isinstance(value, bool):
        return _BOOL
    if isinstance(value, int | float):
        return _NUMBER
    return _TEXT if isinstance(value, str) else None


_ORDERING = ("<", ">", "<=", ">=")
_NEVER = frozenset({"list", "map"})


def check_types(
    pipeline: Pipeline,
    schemas: Iterable[Schema],
    fields: Fields,
    gives: Mapping[str, FieldType] | None = None,
    takes: Mapping[str, tuple[Field, ...]] | None = None,
) -> None:
    """Check the types of a pipeline. `gives` are the result types of documents of other formats, by name; `takes` the
    inputs that called pipelines declare."""
    walker = _Walker(Shapes({schema.name: schema for schema in schemas}), fields, gives or {}, takes or {})
    stores: dict[str, FieldType | None] = {one.name: one.type for one in pipeline.input or ()}
    pipe: FieldType | None = None
    for step in pipeline.steps:
        pipe = walker.step(step, KnownTypes(stores, pipe, {}))
        if step.output:
            stores[step.output.text] = pipe


class _Walker:
    def __init__(
        self,
        shapes: Shapes,
        fields: Fields,
        gives: Mapping[str, FieldType],
        takes: Mapping[str, tuple[Field, ...]],
    ) -> None:
        self._gives = gives
        self._takes = takes
        self._shapes = shapes
        self._fields = fields

    def step(self, step: Step, scope: KnownTypes) -> FieldType | None:
        """Check a step, and return the type of its result."""
        for expression in expressions(step):
            self._examine(expression.expression.root, scope, expression)
        for target in targets(step):
            self._passes(target, scope)
        schema = schema_of(step)
        match step.body:
            case AgentBody(prompt=prompt):
                self._prompt(prompt, scope)
            case TransformBody(value=value):
                return self._shapes.infer(value.expression.root, scope)
            case CallBody(target=target):
                return self._gives.get(target.pipeline.text)
            case MatchBody():
                self._cases(step.body, scope)
            case FoldBody(source=source, do=do):
                names: Types = {"item": self._item(source, scope), "acc": None}
                self.step(do, replace(scope, names=names))
            case ForEachBody(source=source, do=do, collect=collect):
                one = self.step(do, replace(scope, names={"item": self._item(source, scope)}))
                results = ListOf(one) if one is not None and not isinstance(one, ListOf) else None
                return self.step(collect, KnownTypes(scope.stores, results, {"errors": None}))
            case ParallelBody():
                return self._parallel(step.body, scope)
            case ToolBody() | ShellBody():
                pass
            case _:
                assert_never(step.body)
        return Ref(schema.text) if schema and schema.text in self._shapes.schemas else None

    def _passes(self, target: Target, scope: KnownTypes) -> None:
        """Report values whose type does not fit the input of a callee. Constants are checked with the calls."""
        wanted = {one.name: one for one in self._takes.get(target.pipeline.text, ())}
        for one in target.passes:
            root = one.value.expression.root if one.value else None
            if one.name.text not in wanted or isinstance(root, Constant):
                continue
            given = scope.stores.get(one.name.text) if root is None else self._shapes.infer(root, scope)
            if problem := wrong_type(wanted[one.name.text], self._shapes.resolved(given)):
                message = f"{target.pipeline.text} cannot take this {one.name.text}: {problem}"
                self._fields.report(warnings.CALLEE_INPUTS, message, one.name.span)

    def _parallel(self, body: ParallelBody, scope: KnownTypes) -> FieldType | None:
        results = {name.text: self.step(branch, replace(scope, names={})) for name, branch in body.branches}
        return self.step(body.collect, KnownTypes(scope.stores, None, {"errors": None, **results}))

    def _item(self, source: object, scope: KnownTypes) -> FieldType | None:
        if isinstance(source, ExpressionText):
            return element(self._shapes.infer(source.expression.root, scope))
        return element(scope.pipe) if source is None else None

    def _examine(self, node: Node, scope: KnownTypes, text: Text) -> None:
        """Check the paths and comparisons of an expression.

        The limit on the depth of expressions bounds the recursion.
        """
        if isinstance(node, Path):
            self._path(node.segments, node.places, scope, text)
            return
        if isinstance(node, Each):
            self._examine(node.source, scope, text)
            self._examine(node.body, self._shapes.inside(node, scope), text)
            return
        if isinstance(node, FunctionCall):
            self._call(node, scope, text)
            return
        if isinstance(node, Compare) and node.operator in _ORDERING:
            self._ordering(node, scope, text)
        for part in children(node):
            self._examine(part, scope, text)

    def _call(self, node: FunctionCall, scope: KnownTypes, text: Text) -> None:
        from quire.formats.pipeline.function_types import failing_arguments

        for argument in node.arguments:
            self._examine(argument, scope, text)
        if node.key is not None:
            self._examine(node.key, self._shapes.inside(node, scope), text)
        for span, message in failing_arguments(node, lambda part: self._shapes.known(part, scope)):
            self._fields.report(warnings.FUNCTION_ARGUMENT, message, self._fields.at(text, span))

    def _path(self, segments: tuple[str, ...], places: tuple[Span, ...], scope: KnownTypes, text: Text) -> None:
        known, rest = scope.begin(segments)
        at = len(segments) - len(rest)
        for segment, span in zip(rest, places[at:], strict=True):
            known = self._shapes.resolved(known)
            if known is None:
                return
            holder = ".".join(segments[:at])
            inside = parts_of(known)
            field = next((one for one in inside or () if one.name == segment), None)
            if field is None:
                self._no_field(holder, segment, inside, self._fields.at(text, span))
                return
            if not field.required:
                message = f"{holder}.{segment} may be missing: its schema says required: false"
                help = f"get({holder}, '{segment}') gives null instead of failing"
                self._fields.report(lints.OPTIONAL_FIELD, message, self._fields.at(text, span), help)
            known = field.type
            at += 1

    def _no_field(self, holder: str, segment: str, inside: tuple[Field, ...] | None, span: Span) -> None:
        fix: Fix = ()
        if inside is None:
            message, help = f"{holder} has no fields, so it has no {segment}", ""
        else:
            names = [one.name for one in inside]
            message = f"the schema of {holder} has no field {segment}"
            help = self._fields.suggestion(segment, names)
            fix = name_fix(segment, names, span) if help else ()
            help = help or f"it has {', '.join(names[:12])}"
        self._fields.report(warnings.NO_FIELD, message, span, help, fix)

    def _ordering(self, node: Compare, scope: KnownTypes, text: Text) -> None:
        left = order_of(self._shapes.resolved(self._shapes.infer(node.left, scope)))
        right = order_of(self._shapes.resolved(self._shapes.infer(node.right, scope)))
        wrong = next((one for one in (left, right) if one in _NEVER), None)
        if wrong is not None:
            message = f"{node.operator} cannot compare a {wrong}"
        elif left is not None and right is not None and left != right:
            message = f"{node.operator} cannot compare a {left} with a {right}"
        else:
            return
        self._fields.report(warnings.ORDERING, message, self._fields.at(text, node.span))

    def _prompt(self, prompt: Text, scope: KnownTypes) -> None:
        for found in references(prompt.text):
            at = found.span.start + 1
            places = []
            for segment in found.path:
                places.append(Span(at, at + len(segment)))
                at += len(segment) + 1
            self._path(found.path, tuple(places), scope, prompt)

    def _cases(self, body: MatchBody, scope: KnownTypes) -> None:
        known = self._shapes.infer(body.on.expression.root, scope)
        if isinstance(known, Enum):
            labels = [python_text(value) for value in known.values]
        elif known == Simple(Kind.BOOL):
            labels = ["True", "False"]
        else:
            return
        allowed = frozenset(labels)
        for label, _ in body.cases:
            if label.text not in allowed:
                message = f"the case {self._fields.shown(label.text)} can never be chosen"
                help = f"the value is one of {', '.join(labels[:12])}"
                self._fields.report(warnings.UNREACHABLE, message, label.span, help)
        named = {label.text for label, _ in body.cases}
        missing = [label for label in dict.fromkeys(labels) if label not in named]
        if missing and body.default is None:
            message = f"there is no case for {', '.join(missing[:12])}, and no default"
            self._fields.report(warnings.NOT_COVERED, message, body.on.span)
