"""Types of calls of functions of the Quire dialect: what they give, and arguments that are certain to fail.

Nothing is reported for an argument whose kind is not known before a run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

from msgspec.structs import replace

from quire.expr import EvalError, Expression, compile
from quire.expr.functions import FUNCTIONS
from quire.expr.syntax import Constant, Each, FunctionCall, ListOf, MapOf, Node
from quire.schema import Enum, Field, FieldType, Kind, Object, Ref, Simple, types_of
from quire.schema import ListOf as ListType

if TYPE_CHECKING:
    from quire.source import Span
    from quire.values import Value

Infer: TypeAlias = "Callable[[Node], FieldType | None]"
"""Gives the type of an expression, with references followed; None if it is not known."""

InferKey: TypeAlias = "Callable[[Node, FieldType | None], FieldType | None]"
"""Gives the type of the body of a lambda whose parameter has a type."""

_BOOL, _NUMBER, _TEXT = Simple(Kind.BOOL), Simple(Kind.NUMBER), Simple(Kind.STRING)
_SIMPLE = {"text": _TEXT, "number": _NUMBER, "boolean": _BOOL}
_NAMES = {Kind.BOOL: "boolean", Kind.NUMBER: "number", Kind.STRING: "text"}
_LONGEST_TRIED = 1_000
_LARGEST = 200
"""Groups of larger types have no type: groups of groups would double it each time."""


def type_of_call(call: FunctionCall, infer: Infer, infer_key: InferKey) -> FieldType | None:
    """Return the type of a call. Each argument is asked for once, or nested calls would take exponential time."""
    source = infer(call.arguments[0])
    match call.name:
        case "split" | "keys":
            return ListType(_TEXT)
        case "range":
            return ListType(_NUMBER)
        case "sort" | "reverse" | "distinct" | "flatten":
            return source if isinstance(source, ListType) else None
        case "slice":
            return source if isinstance(source, ListType) else _TEXT if kind_of_type(source) == "text" else None
        case "first" | "last":
            return source.of if isinstance(source, ListType) else None
        case "min" | "max":
            if len(call.arguments) == 1:
                return source.of if isinstance(source, ListType) else None
            kinds = {kind_of_type(type) for type in (source, *map(infer, call.arguments[1:]))}
            return _SIMPLE.get(kinds.pop() or "") if len(kinds) == 1 else None
        case "group":
            return _groups(call, source, infer_key)
        case "merge":
            return _merged([source, *map(infer, call.arguments[1:])])
        case "number":
            plain = len(call.arguments) == 1 or kind_of_type(infer(call.arguments[1])) == "number"
            return _NUMBER if plain else None
    return _SIMPLE.get(FUNCTIONS[call.name].gives)


def _groups(call: FunctionCall, source: FieldType | None, infer_key: InferKey) -> FieldType | None:
    if not isinstance(source, ListType) or call.key is None:
        return None
    key = infer_key(call.key, source.of)
    if key is None:
        return None
    fields = (Field("key", key), Field("items", source))
    is_small = len(list(islice(types_of(fields), _LARGEST))) < _LARGEST
    return ListType(Object(fields)) if is_small else None


def _merged(types: list[FieldType | None]) -> FieldType | None:
    fields: dict[str, Field] = {}
    for type in types:
        if not isinstance(type, Object):
            return None
        for field in type.fields:
            known = fields.get(field.name)
            # A field that may be missing may leave the value of an earlier map.
            if known is not None and not field.required and known.type != field.type:
                return None
            fields[field.name] = field if known is None or field.required else known
    return Object(tuple(fields.values()))


def kind_of_type(type: FieldType | None) -> str | None:
    """Return the name of the kind of a type; None if it is not known, or an enum has values of several kinds."""
    match type:
        case Simple(kind=kind):
            return _NAMES[kind]
        case ListType():
            return "list"
        case Object():
            return "map"
        case Enum(values=values):
            kinds = {kind_of_value(value) for value in values}
            return kinds.pop() if len(kinds) == 1 else None
        case Ref() | None:
            return None


def kind_of_value(value: Value) -> str:
    """Return the name of the kind of a value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "text"
    return "list" if isinstance(value, list | tuple) else "map"


def kind_of_node(node: Node, infer: Infer) -> str | None:
    """Return the kind of an expression, which may be known where its type is not."""
    match node:
        case Constant(value=value):
            return kind_of_value(value)
        case ListOf() | Each(name="map" | "filter"):
            return "list"
        case MapOf():
            return "map"
        case FunctionCall(name=name) if FUNCTIONS[name].gives in ("list", "map"):
            return FUNCTIONS[name].gives
    return kind_of_type(infer(node))


def failing_arguments(call: FunctionCall, infer: Infer) -> Iterator[tuple[Span, str]]:
    """Yield what is certain to fail in a call, with its place in the expression."""
    function = FUNCTIONS[call.name]
    failed = False
    for position, argument in enumerate(call.arguments):
        wanted = function.kinds(position, 0 if call.key is not None else len(call.arguments))
        if call.key is not None:
            wanted = frozenset({"list"})
        given = kind_of_node(argument, infer)
        if given is not None and "any" not in wanted and given not in wanted:
            failed = True
            yield argument.span, f"{call.name} needs {_either(wanted)}, not {with_article(given)}"
    if not failed and (problem := _problem(call)) is not None:
        yield problem.span, problem.message


def _problem(call: FunctionCall) -> EvalError | None:
    """Return how a short call fails by its constants alone: in the same way with two values for each other argument."""
    constants = [argument for argument in call.arguments if isinstance(argument, Constant)]
    # A range may be large however short its text is.
    if not constants or call.key is not None or call.name == "range":
        return None
    if sum(len(constant.value) for constant in constants if isinstance(constant.value, str)) > _LONGEST_TRIED:
        return None
    errors = []
    for text, number in (("a", 1), ("b 2" * 99, 40)):
        arguments: list[Node] = []
        for position, argument in enumerate(call.arguments):
            kinds = FUNCTIONS[call.name].kinds(position, len(call.arguments))
            if not isinstance(argument, Constant):
                if kinds not in ({"text"}, {"number"}):
                    return None  # a value of another kind may not fail
                argument = Constant(text if "text" in kinds else number, argument.span)
            arguments.append(argument)
        try:
            compile(Expression("", replace(call, arguments=tuple(arguments)))).evaluate({})
        except EvalError as error:
            errors.append(error)
    blamed = len(constants) == len(call.arguments) or (
        errors and errors[0].span in [constant.span for constant in constants]
    )
    return errors[0] if blamed and len(errors) == 2 and errors[0].message == errors[1].message else None


def _either(kinds: frozenset[str]) -> str:
    return " or ".join(with_article(kind) for kind in ("text", "number", "list", "map") if kind in kinds)


def with_article(kind: str) -> str:
    """Return a kind for people."""
    return kind if kind == "null" else f"a {kind}"
