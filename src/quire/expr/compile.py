"""Compile the tree of an expression to closures.

Everything that follows from the tree alone (the length of a path, the operator, the cost of a lambda) is decided here
once, not at each evaluation. A path is first read with plain subscripts. Only if one of them fails is it walked again,
segment by segment, to find the store that it may refer to or to say what is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol, TypeAlias

from quire.expr import operators, syntax
from quire.expr.errors import EvalError, ExprSyntaxError
from quire.expr.syntax import RESERVED, Each, Expression, FunctionCall, Node, Path, Read, children, reads, walk
from quire.expr.values import MAX_ITEMS, MAX_STEPS, Closure, Run, is_list, is_map, kind, measure
from quire.source import Span
from quire.wording import did_you_mean, nearest

if TYPE_CHECKING:
    from quire.values import Value


_NOTHING: Mapping[str, Value] = MappingProxyType({})

# Our own limit is far below Python's: this is raised only if the caller's stack is already deep.
_NO_ROOM = "there is no room left for the expression: it is reached through too many levels"


class Count(Protocol):
    """Sums up the steps of many evaluations."""

    used: int


@dataclass(frozen=True, slots=True)
class Compiled:
    """A compiled expression. `evaluate` may be called any number of times, from any thread."""

    expression: Expression
    _code: Closure = field(repr=False, compare=False)
    _builds: bool = field(repr=False, compare=False)
    _nodes: int = field(repr=False, compare=False)

    def evaluate(
        self, bindings: Mapping[str, Value], stores: Mapping[str, Value] = _NOTHING, count: Count | None = None
    ) -> Value:
        """Return the value of the expression.

        The first segment of a path is looked up in `bindings`, then, unless it is reserved, in `stores`. Neither is
        changed; the value may share parts with them. Raises only `EvalError`. `count` is increased by the steps that
        were taken, also on failure.
        """
        run = Run(bindings, stores)
        measured = MAX_ITEMS if self._builds else 0
        try:
            value: Value = self._code(run)
            if self._builds:
                sizes = measure(value, self.expression.root.span)
                measured = sizes.items + (sizes.characters >> 5)
        except RecursionError:
            raise EvalError(_NO_ROOM, self.expression.root.span) from None
        finally:
            if count is not None:
                count.used += self._nodes + MAX_STEPS - run.left + measured
        return value

    def reads(self) -> tuple[Read, ...]:
        """Return all reads in the order of the text."""
        return reads(self.expression)


Around: TypeAlias = Callable[[Node, Closure], Closure]
"""Returns the closure to use in place of the one that a node was compiled to."""


def compile(expression: Expression, around: Around | None = None) -> Compiled:
    """Compile an expression. Raises `ExprSyntaxError` if the caller's stack leaves too little room.

    `around` may put a closure around that of every node, to see its values. It must not change them.
    """
    compiler = _COMPILER if around is None else _WatchedCompiler(around)
    builds = any(isinstance(node, _BUILDERS) or _builds(node) for node, _ in walk(expression.root))
    try:
        return Compiled(expression, compiler.code(expression.root, frozenset()), builds, _cost(expression.root))
    except RecursionError:
        raise ExprSyntaxError(_NO_ROOM, expression.root.span) from None


_CALL = 5
"""Nodes that take as long as calling a function, beside the work that the function charges itself."""

_BUILDERS = (syntax.ListOf, syntax.MapOf, Each, syntax.Arithmetic)


def _builds(node: Node) -> bool:
    """Tell whether a node is a call that may give a new list or map."""
    if not isinstance(node, FunctionCall):
        return False
    from quire.expr.functions import FUNCTIONS

    return FUNCTIONS[node.name].builds


class _Compiler:
    def code(self, node: Node, bound: frozenset[str]) -> Closure:
        match node:
            case syntax.Constant(value=value):
                return operators.constant(value)
            case Path():
                return read(node, bound)
            case syntax.ListOf(items=items):
                elements = tuple(self.code(item, bound) for item in items)
                return lambda run: [element(run) for element in elements]
            case syntax.MapOf(entries=entries):
                members = tuple((key, self.code(part, bound)) for key, part in entries)
                return lambda run: {key: member(run) for key, member in members}
            case syntax.Not(operand=operand, times=times):
                return operators.negation(self.code(operand, bound), times)
            case syntax.Negate(operand=operand, times=times, span=span):
                return operators.minus(self.code(operand, bound), times, span)
            case syntax.Logic(operator=operator, operands=operands):
                parts = tuple(self.code(operand, bound) for operand in operands)
                return operators.logic(parts, decides=operator == "or")
            case syntax.Compare(operator=sign, left=left, right=right, span=span):
                return operators.comparison(sign, self.code(left, bound), self.code(right, bound), span)
            case syntax.Arithmetic(first=first, rest=rest):
                start = first.span.start
                terms = tuple((sign, self.code(part, bound), Span(start, part.span.end)) for sign, part in rest)
                return operators.arithmetic(self.code(first, bound), terms)
            case Each(name=name, source=source, parameter=parameter, body=body, span=span):
                code = self.code(body, bound | {parameter})
                return operators.each(name, self.code(source, bound), parameter, code, _cost(body), span, source.span)
            case syntax.Total(name="count", source=source):
                return operators.count(self.code(source, bound), source.span)
            case syntax.Total(source=source, span=span):
                return operators.total(self.code(source, bound), span, source.span)
            case syntax.Join(source=source, separator=separator, span=span):
                between = self.code(separator, bound)
                return operators.join(self.code(source, bound), between, span, source.span, separator.span)
            case syntax.Get(base=base, keys=keys, default=default):
                return get(self.code(base, bound), keys, self.code(default, bound) if default is not None else None)
            case FunctionCall():
                return self._call(node, bound)

    def _call(self, node: FunctionCall, bound: frozenset[str]) -> Closure:
        from quire.expr.function_arguments import At
        from quire.expr.function_calls import call, call_with_key

        arguments = tuple(self.code(argument, bound) for argument in node.arguments)
        at = At(node.name, node.span, tuple(argument.span for argument in node.arguments))
        if node.key is None:
            return call(arguments, at)
        key = self.code(node.key, bound | {node.parameter})
        return call_with_key(arguments[0], node.parameter, key, _cost(node.key), at)


class _WatchedCompiler(_Compiler):
    def __init__(self, around: Around) -> None:
        self._around = around

    def code(self, node: Node, bound: frozenset[str]) -> Closure:
        return self._around(node, super().code(node, bound))


_COMPILER = _Compiler()


def _cost(body: Node) -> int:
    """Return the number of nodes that one application visits. A lambda inside is charged when it is applied."""
    cost = 1
    stack = [body]
    while stack:
        node = stack.pop()
        cost += 1
        if isinstance(node, Each):
            stack.append(node.source)
        elif isinstance(node, FunctionCall):
            cost += _CALL
            stack.extend(node.arguments)
        else:
            stack.extend(children(node))
    return cost


def read(path: Path, bound: frozenset[str]) -> Closure:
    """Compile a path. `bound` are the lambda parameters in scope."""
    root, *rest = path.segments
    if root not in RESERVED and root not in bound:
        return lambda run: _carefully(path, run)

    def plainly(run: Run) -> object:
        try:
            value = run.names[root]
            for segment in rest:
                value = value[segment]
        except (KeyError, TypeError):
            return _carefully(path, run)
        return value

    return plainly


def get(base: Closure, keys: tuple[str, ...], default: Closure | None) -> Closure:
    """Compile a `get`. It returns the default, or null, if a key is missing or a value is not a map."""

    def safely(run: Run) -> object:
        value: object = base(run)
        # The default is always evaluated: one that fails does so even if it is not needed.
        instead = default(run) if default is not None else None
        for key in keys:
            if not is_map(value) or key not in value:
                return instead
            value = value[key]
        return value

    return safely


def _carefully(path: Path, run: Run) -> Value:
    root = path.segments[0]
    value: Value
    if root in run.names:
        value = run.names[root]
    elif root not in RESERVED and root in run.stores:
        value = run.stores[root]
    else:
        raise _unbound(path, run)
    for at, segment in enumerate(path.segments[1:], 1):
        if not is_map(value):
            raise _no_map(path, at, value)
        if segment not in value:
            raise _absent(path, at, value)
        value = value[segment]
    return value


def _unbound(path: Path, run: Run) -> EvalError:
    root, whole = path.segments[0], ".".join(path.segments)
    about = f"{whole} is absent: " if len(path.segments) > 1 else ""
    if root in RESERVED:
        return EvalError(f"{about}there is no {root} here", path.places[0], _WHERE[root])
    help = did_you_mean(nearest(root, [*_some(run.names), *_some(run.stores)]))
    return EvalError(f"{about}nothing is called {root}", path.places[0], help)


def _no_map(path: Path, at: int, value: Value) -> EvalError:
    holder = ".".join(path.segments[:at])
    message = f"{'.'.join(path.segments)} is absent: {holder} is {kind(value)}, and only a map has members"
    counted = is_list(value) and path.segments[at] in ("length", "len", "size", "count")
    return EvalError(message, path.places[at], f"write count({holder})" if counted else "")


def _absent(path: Path, at: int, value: Mapping[str, Value]) -> EvalError:
    holder, segment = ".".join(path.segments[:at]), path.segments[at]
    close = nearest(segment, _some(value))
    rest = ".".join(path.segments[at:])
    help = did_you_mean(close and f"{holder}.{close}", f"get({holder}, '{rest}') gives null instead of failing")
    return EvalError(f"{'.'.join(path.segments)} is absent: {holder} has no {segment}", path.places[at], help)


_WHERE = {
    "item": "item exists in the do of a for_each or a fold",
    "acc": "acc exists in the do of a fold",
    "ctx": "",
    "pipe": "",
}


def _some(names: Mapping[str, object]) -> list[str]:
    """Return the first names: enough to suggest a correction, few enough that failing stays cheap."""
    return [name for name in islice(names, 200) if isinstance(name, str)]
