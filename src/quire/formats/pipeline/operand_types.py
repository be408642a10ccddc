"""Check operands of operators, and arguments of functions and tools, by their types; and infer the types of calls.

Reported are kinds with which an operator or a function fails, values that may be null, comparisons that never hold, and
arguments that do not fit the JSON Schema of a tool. Nothing is reported if a kind is not known before a run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from quire.expr import EvalError, Expression, compile, python_text
from quire.expr import syntax as nodes
from quire.expr.functions import FUNCTIONS
from quire.expr.syntax import Constant, FunctionCall, Node
from quire.formats.pipeline.codes import errors as codes
from quire.formats.pipeline.known_types import BOOL, NUMBER, TEXT
from quire.schema import Enum, Field, FieldType, Kind, ListOf, Object, Ref, Simple, types_of

if TYPE_CHECKING:
    from quire.diagnostics import Code
    from quire.source import Span
    from quire.values import Value


TypeOf: TypeAlias = "Callable[[Node], FieldType | None]"
"""Gives the type of an expression, with references followed; None if it is not known."""

_ADDED = frozenset({"number", "text", "list"})
_COMPARED_AS_NUMBER = frozenset({"number", "boolean"})
_SHOWN = 8


class OperandFinding(Struct, frozen=True):
    """A place of an expression, and the problem there."""

    code: Code
    span: Span
    message: str
    help: str = ""
    word: Constant | None = None
    """A text that is perhaps misspelled."""
    meant: tuple[str, ...] = ()
    """The texts that it may stand for."""


def operand_findings(node: Node, type_of: TypeOf, *, guarded: bool) -> Iterator[OperandFinding]:
    """Yield the problems of one operator, without those of its operands. `guarded` says that an `and`, an `or` or the
    `when` of the step may have looked at a value before."""
    match node:
        case nodes.Arithmetic():
            yield from _arithmetic(node, type_of)
        case nodes.Negate(operand=operand):
            if (kind := kind_of_node(operand, type_of)) not in (None, "number"):
                yield _wrong(operand, "-", "a number", kind)
        case nodes.Total(name=name, source=source):
            yield from _list(name, source, type_of, "number" if name == "sum" else "")
        case nodes.Join(source=source, separator=separator):
            yield from _list("join", source, type_of, "text")
            if (kind := kind_of_node(separator, type_of)) not in (None, "text"):
                yield _wrong(separator, "join", "a text as separator", kind)
        case nodes.Each(name=name, source=source):
            yield from _list(name, source, type_of, "")
        case nodes.Compare(operator="==" | "!="):
            yield from _equality(node, type_of)
    if not guarded:
        for operand in _failing_on_null(node):
            if (what := _may_be_null(operand, type_of)) is not None:
                help = "give get a default" if isinstance(operand, nodes.Get) else "write (… or DEFAULT)"
                yield OperandFinding(codes.MAY_BE_NULL, operand.span, f"{what} may be null, and then this fails", help)


def _wrong(node: Node, what: str, needs: str, kind: str | None) -> OperandFinding:
    return OperandFinding(codes.OPERAND_TYPE, node.span, f"{what} needs {needs}, not {with_article(kind or 'null')}")


def _arithmetic(node: nodes.Arithmetic, type_of: TypeOf) -> Iterator[OperandFinding]:
    """Follow the chain from left to right, and yield the first operator that is certain to fail."""
    left = kind_of_node(node.first, type_of)
    if node.rest[0][0] != "+" and left not in (None, "number"):
        yield _wrong(node.first, node.rest[0][0], "two numbers", left)
        return
    if left is not None and left not in _ADDED:
        yield _wrong(node.first, "+", "two numbers, two texts or two lists", left)
        return
    for operator, operand in node.rest:
        right = kind_of_node(operand, type_of)
        if operator != "+":
            wrong = next((kind for kind in (left, right) if kind not in (None, "number")), None)
            if wrong is not None:
                yield _wrong(operand, operator, "two numbers", wrong)
                return
            left = "number"
        elif right is not None and (right not in _ADDED or (left is not None and left != right)):
            both = f"{with_article(left)} and {with_article(right)}" if left else with_article(right)
            message = f"+ needs two numbers, two texts or two lists, not {both}"
            help = "text(…) makes a text of a number" if {left, right} == {"text", "number"} else ""
            yield OperandFinding(codes.OPERAND_TYPE, operand.span, message, help)
            return
        else:
            left = left or right


def _list(what: str, source: Node, type_of: TypeOf, of: str) -> Iterator[OperandFinding]:
    kind = kind_of_node(source, type_of)
    if kind not in (None, "list"):
        yield _wrong(source, what, "a list", kind)
        return
    type = type_of(source) if of else None
    item = kind_of_type(type.of) if isinstance(type, ListOf) else None
    # An empty list passes, so only a list that has items fails.
    if item is not None and item != of:
        yield _wrong(source, what, f"a list of {of}s", item)


def _equality(node: nodes.Compare, type_of: TypeOf) -> Iterator[OperandFinding]:
    left, right = kind_of_node(node.left, type_of), kind_of_node(node.right, type_of)
    if left is None or right is None or "null" in (left, right):
        return
    outcome = "never" if node.operator == "==" else "always"
    if left != right and not {left, right} <= _COMPARED_AS_NUMBER:
        message = f"{node.operator} {outcome} holds: {with_article(left)} is not equal to {with_article(right)}"
        yield OperandFinding(codes.NEVER_EQUAL, node.span, message)
        return
    values, others = _values(node.left, type_of), _values(node.right, type_of)
    if values is None or others is None or any(value == other for value in values for other in others):
        return
    if isinstance(node.left, Constant) and isinstance(node.right, Constant):
        return  # DD103 says it
    possible, compared = (values, others) if not isinstance(node.left, Constant) else (others, values)
    message = f"{node.operator} {outcome} holds: the value is never {', '.join(map(python_text, compared[:_SHOWN]))}"
    help = f"it is one of {', '.join(map(python_text, possible[:_SHOWN]))}"
    word = next((operand for operand in (node.left, node.right) if isinstance(operand, Constant)), None)
    meant = tuple(value for value in possible if isinstance(value, str))
    yield OperandFinding(codes.NEVER_EQUAL, node.span, message, help, word, meant)


def _values(node: Node, type_of: TypeOf) -> Sequence[Value] | None:
    """Return all values that an expression can have; None if they are not known."""
    if isinstance(node, Constant):
        return (node.value,)
    type = type_of(node)
    return type.values if isinstance(type, Enum) else None


def _failing_on_null(node: Node) -> tuple[Node, ...]:
    """Return the operands with which an operator fails if they are null."""
    match node:
        case nodes.Arithmetic(first=first, rest=rest):
            return (first, *(operand for _, operand in rest))
        case nodes.Negate(operand=operand):
            return (operand,)
        case nodes.Compare(operator="<" | ">" | "<=" | ">=", left=left, right=right):
            return (left, right)
        case nodes.Total(source=source) | nodes.Join(source=source) | nodes.Each(source=source):
            return (source,)
    return ()


def _may_be_null(node: Node, type_of: TypeOf) -> str | None:
    """Return the operand for people if it may be null."""
    match node:
        case nodes.Each(name="find"):
            return "find(…)"
        case nodes.Get(base=nodes.Path(segments=("ctx", *_) as segments) as base, keys=keys, default=None):
            # Parameters of lambdas are left out: the list may have been filtered by the same value.
            type = type_of(base)
            fields = type.fields if isinstance(type, Object) and len(keys) == 1 else ()
            is_required = any(field.name == keys[0] and field.required for field in fields)
            return None if is_required else f"get({'.'.join(segments)}, '{keys[0]}')"
    return None


InferKey: TypeAlias = "Callable[[Node, FieldType | None], FieldType | None]"
"""Gives the type of the body of a lambda whose parameter has a type."""

_SIMPLE = {"text": TEXT, "number": NUMBER, "boolean": BOOL}
_NAMES = {Kind.BOOL: "boolean", Kind.NUMBER: "number", Kind.STRING: "text"}
_LONGEST_TRIED = 1_000
_LARGEST = 200
"""Groups of larger types have no type: groups of groups would double it each time."""


def type_of_call(call: FunctionCall, infer: TypeOf, infer_key: InferKey) -> FieldType | None:
    """Return the type of a call. Each argument is asked for once, or nested calls would take exponential time."""
    source = infer(call.arguments[0])
    match call.name:
        case "split" | "keys":
            return ListOf(TEXT)
        case "range":
            return ListOf(NUMBER)
        case "sort" | "reverse" | "distinct" | "flatten":
            return source if isinstance(source, ListOf) else None
        case "slice":
            return source if isinstance(source, ListOf) else TEXT if kind_of_type(source) == "text" else None
        case "first" | "last":
            return source.of if isinstance(source, ListOf) else None
        case "min" | "max":
            if len(call.arguments) == 1:
                return source.of if isinstance(source, ListOf) else None
            kinds = {kind_of_type(type) for type in (source, *map(infer, call.arguments[1:]))}
            return _SIMPLE.get(kinds.pop() or "") if len(kinds) == 1 else None
        case "group":
            return _groups(call, source, infer_key)
        case "merge":
            return _merged([source, *map(infer, call.arguments[1:])])
        case "number":
            plain = len(call.arguments) == 1 or kind_of_type(infer(call.arguments[1])) == "number"
            return NUMBER if plain else None
    return _SIMPLE.get(FUNCTIONS[call.name].gives)


def _groups(call: FunctionCall, source: FieldType | None, infer_key: InferKey) -> FieldType | None:
    if not isinstance(source, ListOf) or call.key is None:
        return None
    key = infer_key(call.key, source.of)
    if key is None:
        return None
    fields = (Field("key", key), Field("items", source))
    is_small = len(list(islice(types_of(fields), _LARGEST))) < _LARGEST
    return ListOf(Object(fields)) if is_small else None


def _merged(types: list[FieldType | None]) -> FieldType | None:
    fields: dict[str, Field] = {}
    for type in types:
        if not isinstance(type, Object):
            return None
        for field in type.fields:
            earlier = fields.get(field.name)
            # A field that may be missing may leave the value of an earlier map.
            if earlier is not None and not field.required and earlier.type != field.type:
                return None
            fields[field.name] = field if earlier is None or field.required else earlier
    return Object(tuple(fields.values()))


def kind_of_type(type: FieldType | None) -> str | None:
    """Return the name of the kind of a type; None if it is not known, or an enum has values of several kinds."""
    match type:
        case Simple(kind=kind):
            return _NAMES[kind]
        case ListOf():
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


def kind_of_node(node: Node, infer: TypeOf) -> str | None:
    """Return the kind of an expression, which may be known where its type is not."""
    match node:
        case Constant(value=value):
            return kind_of_value(value)
        case nodes.ListOf() | nodes.Each(name="map" | "filter"):
            return "list"
        case nodes.MapOf():
            return "map"
        case FunctionCall(name=name) if FUNCTIONS[name].gives in ("list", "map"):
            return FUNCTIONS[name].gives
    return kind_of_type(infer(node))


def failing_arguments(call: FunctionCall, infer: TypeOf) -> Iterator[tuple[Span, str]]:
    """Yield certain failures of a call, with their places in the expression."""
    function = FUNCTIONS[call.name]
    failed = False
    for position, argument in enumerate(call.arguments):
        takes = frozenset({"list"}) if call.key is not None else function.kinds(position, len(call.arguments))
        kind = kind_of_node(argument, infer)
        if kind is not None and "any" not in takes and kind not in takes:
            failed = True
            either = " or ".join(with_article(name) for name in ("text", "number", "list", "map") if name in takes)
            yield argument.span, f"{call.name} needs {either}, not {with_article(kind)}"
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


def with_article(kind: str) -> str:
    """Return a kind for people."""
    return kind if kind == "null" else f"a {kind}"


def argument_problem(schema: Mapping[str, Value], type: FieldType | None, kind: str | None) -> str:
    """Return why no value of a type fits the schema of an argument; empty if one may."""
    if isinstance(type, Enum):
        allowed = schema.get("enum")
        if isinstance(allowed, list) and not any(value in allowed for value in type.values):
            return f"it takes {', '.join(map(python_text, allowed[:_SHOWN]))}"
    kinds = _kinds(schema)
    if kinds is None or kind is None or kind in kinds:
        return ""
    return f"it takes {' or '.join(map(with_article, sorted(kinds)))}, not {with_article(kind)}"


_JSON_KINDS = {
    "string": "text",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "array": "list",
    "object": "map",
    "null": "null",
}


def _kinds(schema: Mapping[str, Value]) -> frozenset[str] | None:
    """Return the kinds that a schema of one argument allows; None if it may allow any."""
    if "enum" in schema:
        allowed = schema["enum"]
        return frozenset(map(kind_of_value, allowed)) if isinstance(allowed, list) else None
    if isinstance(several := schema.get("anyOf"), list):
        parts = [_kinds(part) if isinstance(part, Mapping) else None for part in several]
        return None if None in parts else frozenset(kind for part in parts if part for kind in part)
    named = schema.get("type")
    names = [named] if isinstance(named, str) else named if isinstance(named, list) else []
    return frozenset(_JSON_KINDS[name] for name in names if isinstance(name, str) and name in _JSON_KINDS) or None
