"""Parse the tokens of an expression into a tree by climbing precedences.

Depth is counted, so that a thousand brackets give an error message and not a crash.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar, cast

from msgspec.structs import replace

from quire.expr import syntax
from quire.expr.errors import ExprSyntaxError, NeedsDialect
from quire.expr.syntax import KEYWORDS, Constant, Expression, FunctionCall, Node, path_of, walk
from quire.expr.tokenizer import Token, tokens, unquote
from quire.expr.values import MAX_DIGITS, MAX_LENGTH, MAX_NESTING
from quire.source import Span
from quire.wording import cut, did_you_mean, nearest, pluralize

Part = TypeVar("Part")

_OR, _AND, _NOT, _COMPARE, _ADD, _MULTIPLY = range(1, 7)
_RANKS = {
    "or": _OR,
    "and": _AND,
    **dict.fromkeys(("==", "!=", "<", ">", "<=", ">="), _COMPARE),
    **dict.fromkeys("+-", _ADD),
    **dict.fromkeys("*/", _MULTIPLY),
}
_CONSTANTS = {"true": True, "false": False, "null": None}
_SIGNATURES = {
    **{name: f"{name}(list, item -> expression)" for name in ("map", "filter", "all", "any", "find")},
    "count": "count(list)",
    "sum": "sum(list)",
    "join": "join(list, separator)",
    "get": "get(map, 'dotted.path') or get(map, 'dotted.path', default)",
}
SEED_FUNCTIONS = tuple(_SIGNATURES)
"""The names of the functions of the format."""
_AFTER_VALUE = {
    "->": "a lambda can only be the second argument of map, filter, all, any or find",
    "[": "indexing does not exist; find(list, item -> …) gives one element",
    ".": "only a path has members; get(value, 'key') reads from any map",
    "(": f"only these can be called: {', '.join(_SIGNATURES)}",
}


_IN_DIALECT = {
    "->": "a lambda can only be the second argument of map, filter, all, any, find, sort, distinct, group, min or max",
    "[": "indexing does not exist; first(slice(list, 2)) gives the third element",
}


def parse(text: str, *, dialect: bool = False) -> Expression:
    """Parse an expression. Raises `ExprSyntaxError`.

    `dialect` allows the functions of the Quire dialect. Without it a call of one raises `NeedsDialect`.
    """
    if len(text) > MAX_LENGTH:
        raise ExprSyntaxError(
            f"the expression has {len(text):,} characters; {MAX_LENGTH:,} is the most", Span(MAX_LENGTH, len(text))
        )
    stream = tokens(text)
    try:
        root = _Parser(stream, dialect).whole()
    except RecursionError:
        # The caller's stack was already so deep that less room was left than our own limit.
        raise ExprSyntaxError(_TOO_DEEP, Span(0, len(text)), _SPLIT) from None
    # The depth of a node never exceeds the number of tokens.
    for node, depth in walk(root) if len(stream) > MAX_NESTING else ():
        if depth > MAX_NESTING:
            raise ExprSyntaxError(_TOO_DEEP, node.span, _SPLIT)
    return Expression(text, root)


_TOO_DEEP = f"the expression is nested deeper than {MAX_NESTING} levels"
_SPLIT = "split it into several steps"


class _Parser:
    def __init__(self, stream: list[Token], dialect: bool) -> None:
        self._tokens = stream
        self._dialect = dialect
        self._at = 0
        self._depth = 0

    def whole(self) -> Node:
        node = self._expression(_OR)
        token = self._token
        if token.kind != "end":
            message = f"expected an operator or the end, not {_shown(token)}"
            raise ExprSyntaxError(message, token.span, self._instead(token.text))
        return node

    def _instead(self, mark: str) -> str:
        """Return the replacement of a mark that cannot stand after a value."""
        if self._dialect:
            from quire.expr.functions import FUNCTIONS

            if mark == "(":
                return f"only these can be called: {', '.join((*_SIGNATURES, *FUNCTIONS))}"
            return _IN_DIALECT.get(mark) or _AFTER_VALUE.get(mark, "")
        return _AFTER_VALUE.get(mark, "")

    @property
    def _token(self) -> Token:
        return self._tokens[self._at]

    def _take(self) -> Token:
        token = self._tokens[self._at]
        self._at += 1
        return token

    def _expression(self, level: int) -> Node:
        """Parse an expression whose operators bind at least as tightly as `level`."""
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise ExprSyntaxError(_TOO_DEEP, self._token.span, _SPLIT)
        node = self._operand(level)
        while (rank := _RANKS.get(self._token.text, 0)) >= level:
            if rank <= _AND:
                node = self._logic(node, rank)
            elif rank == _COMPARE:
                node = self._comparison(node)
            else:
                node = self._arithmetic(node, rank)
        self._depth -= 1
        return node

    def _logic(self, first: Node, rank: int) -> Node:
        word = self._token.text
        operands = [first]
        while self._token.text == word:
            self._take()
            operands.append(self._expression(rank + 1))
        return syntax.Logic("or" if rank == _OR else "and", tuple(operands), _across(first, operands[-1]))

    def _comparison(self, left: Node) -> Node:
        operator = self._take()
        right = self._expression(_ADD)
        following = self._token
        if _RANKS.get(following.text) == _COMPARE:
            help = "write `a < b and b < c`, or put one of them in parentheses"
            raise ExprSyntaxError("comparisons cannot be chained", following.span, help)
        return syntax.Compare(cast(syntax.CompareOperator, operator.text), left, right, _across(left, right))

    def _arithmetic(self, first: Node, rank: int) -> Node:
        rest: list[tuple[syntax.ArithmeticOperator, Node]] = []
        while _RANKS.get(self._token.text) == rank:
            operator = cast(syntax.ArithmeticOperator, self._take().text)
            rest.append((operator, self._expression(rank + 1)))
        return syntax.Arithmetic(first, tuple(rest), _across(first, rest[-1][1]))

    def _operand(self, level: int) -> Node:
        first = self._token
        times = 0
        if first.text == "not" and level <= _NOT:
            while self._token.text == "not":
                self._take()
                times += 1
            operand = self._expression(_COMPARE)
            return syntax.Not(operand, times, Span(first.start, operand.span.end))
        while self._token.text == "-":
            self._take()
            times += 1
        operand = self._primary()
        return syntax.Negate(operand, times, Span(first.start, operand.span.end)) if times else operand

    def _primary(self) -> Node:
        token = self._take()
        if token.kind == "number":
            return Constant(_number(token), token.span)
        if token.kind == "text":
            return Constant(unquote(token), token.span)
        if token.kind == "name":
            return self._named(token)
        if token.text == "(":
            inside = self._expression(_OR)
            return replace(inside, span=Span(token.start, self._expect(")").end))
        if token.text == "[":
            items, end = self._separated("]", lambda: self._expression(_OR))
            return syntax.ListOf(items, Span(token.start, end))
        if token.text == "{":
            entries, end = self._separated("}", self._entry)
            return syntax.MapOf(entries, Span(token.start, end))
        help = "numbers have no sign +" if token.text == "+" else ""
        raise ExprSyntaxError(f"expected a value, not {_shown(token)}", token.span, help)

    def _named(self, token: Token) -> Node:
        name = token.text
        if name in _CONSTANTS:
            return Constant(_CONSTANTS[name], token.span)
        if name in KEYWORDS:
            help = "put it in parentheses: (not …)" if name == "not" else ""
            raise ExprSyntaxError(f"expected a value, not `{name}`", token.span, help)
        if self._token.text == "(":
            return self._combinator(token)
        segments, places = [name], [token.span]
        while self._token.text == ".":
            self._take()
            member = self._take()
            if member.kind != "name":
                help = "a list has no numbered members" if member.kind == "number" else ""
                raise ExprSyntaxError(f"expected a name after the dot, not {_shown(member)}", member.span, help)
            segments.append(member.text)
            places.append(member.span)
        return path_of(tuple(segments), tuple(places), Span(token.start, places[-1].end))

    def _separated(self, end: str, parse_part: Callable[[], Part]) -> tuple[tuple[Part, ...], int]:
        """Parse the parts of a list or a map. Return them and the position after the closing bracket."""
        parts: list[Part] = []
        if self._token.text != end:
            parts.append(parse_part())
            while self._token.text == ",":
                self._take()
                parts.append(parse_part())
        return tuple(parts), self._expect(end, "or a comma").end

    def _entry(self) -> tuple[str, Node]:
        key = self._take()
        if key.kind not in ("name", "text"):
            raise ExprSyntaxError(f"expected a key, a name or a quoted text, not {_shown(key)}", key.span)
        self._expect(":")
        return (unquote(key) if key.kind == "text" else key.text), self._expression(_OR)

    def _combinator(self, token: Token) -> Node:
        name = token.text
        usage = _SIGNATURES.get(name)
        if usage is None:
            return self._function(token)
        self._expect("(")
        source = self._expression(_OR)
        match name:
            case "count" | "sum":
                return syntax.Total("count" if name == "count" else "sum", source, self._closed(token, usage))
            case "join":
                self._expect(",", usage=usage)
                separator = self._expression(_OR)
                return syntax.Join(source, separator, self._closed(token, usage))
            case "get":
                return self._get(token, source, usage)
        self._expect(",", usage=usage)
        parameter, body = self._lambda(usage)
        return syntax.Each(cast(syntax.EachName, name), source, parameter, body, self._closed(token, usage))

    def _lambda(self, usage: str) -> tuple[str, Node]:
        parameter = self._take()
        if parameter.kind != "name" or parameter.text in KEYWORDS:
            message = f"expected the parameter of a lambda, not {_shown(parameter)}"
            raise ExprSyntaxError(message, parameter.span, f"write {usage}")
        self._expect("->", usage=usage)
        return parameter.text, self._expression(_OR)

    def _function(self, token: Token) -> Node:
        """Parse a call of a function of the Quire dialect."""
        # Most documents do not need the table.
        from quire.expr.functions import FUNCTIONS, meant

        name = token.text
        function = FUNCTIONS.get(name)
        if function is None:
            close = meant(name, tuple(_SIGNATURES)) if self._dialect else nearest(name, _SIGNATURES)
            help = did_you_mean(close, self._instead("("))
            raise ExprSyntaxError(f"unknown function {name}", token.span, help)
        if not self._dialect:
            raise NeedsDialect(f"the function {name} belongs to the Quire dialect", token.span)
        usage = function.usage
        self._expect("(")
        if self._token.text == ")":
            raise ExprSyntaxError(f"{name} needs a value", self._token.span, f"write {usage}")
        arguments = [self._expression(_OR)]
        while len(arguments) < function.least or function.key == "must" or self._token.text == ",":
            comma = self._expect(",", usage=usage)
            lambda_follows = self._token.kind == "name" and self._tokens[self._at + 1].text == "->"
            if function.key == "must" or lambda_follows:
                if not function.key or len(arguments) > 1:
                    raise ExprSyntaxError(f"{name} takes no lambda here", self._token.span, f"write {usage}")
                parameter, key = self._lambda(usage)
                return FunctionCall(name, tuple(arguments), self._closed(token, usage), parameter, key)
            if len(arguments) == function.most:
                most = f"{function.most} {pluralize('value', function.most)}"
                raise ExprSyntaxError(f"{name} takes at most {most}", comma.span, f"write {usage}")
            arguments.append(self._expression(_OR))
        call = FunctionCall(name, tuple(arguments), self._closed(token, usage))
        if name == "format":
            _check_template(call)
        return call

    def _get(self, token: Token, base: Node, usage: str) -> Node:
        self._expect(",", usage=usage)
        keys = self._take()
        if keys.kind != "text":
            message = f"expected a quoted path, not {_shown(keys)}"
            raise ExprSyntaxError(message, keys.span, f"the path cannot be computed: write {usage}")
        default = None
        if self._token.text == ",":
            self._take()
            default = self._expression(_OR)
        return syntax.Get(base, tuple(unquote(keys).split(".")), default, self._closed(token, usage))

    def _closed(self, opening: Token, usage: str) -> Span:
        return Span(opening.start, self._expect(")", usage=usage).end)

    def _expect(self, mark: str, other: str = "", usage: str = "") -> Token:
        token = self._take()
        if token.text == mark:
            return token
        expected = f"{mark} {other}".strip()
        help = f"write {usage}" if usage and token.text != "->" else self._instead(token.text)
        raise ExprSyntaxError(f"expected {expected}, not {_shown(token)}", token.span, help)


def _check_template(call: FunctionCall) -> None:
    """Raise `ExprSyntaxError` if the text of a `format` is written out and does not fit its values."""
    template = call.arguments[0]
    if not isinstance(template, Constant) or not isinstance(template.value, str):
        return
    from quire.expr.text_functions import WrongTemplate, template_of

    try:
        problem = template_of(template.value).mismatch(len(call.arguments) - 1)
    except WrongTemplate as error:
        problem = str(error)
    if problem:
        raise ExprSyntaxError(problem, template.span, "write {} for each value, or {name} with a map of values")


def _across(first: Node, last: Node) -> Span:
    return Span(first.span.start, last.span.end)


def _shown(token: Token) -> str:
    if token.kind == "end":
        return "the end"
    return cut(token.text, 30, 30)


def _number(token: Token) -> int | float:
    if "." not in token.text:
        if len(token.text) > MAX_DIGITS:
            raise ExprSyntaxError(f"the number has more than {MAX_DIGITS:,} digits", token.span)
        return int(token.text)
    number = float(token.text)
    if math.isinf(number):
        raise ExprSyntaxError("the number is too large", token.span)
    return number
