"""Operators and combinators of expressions as closures.

The names are copied once for each combinator: a lambda cannot outlive it, so all applications share one copy, in which
the parameter is set again. A combinator that applies its lambda to every element is charged for all of them in advance.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeAlias

from quire.expr.errors import EvalError
from quire.expr.values import (
    MAX_BITS,
    MAX_DIGITS,
    MAX_TEXT,
    NUMBERS,
    ORDERED,
    Closure,
    Run,
    charge_texts,
    concatenate,
    equal,
    is_list,
    kind,
)
from quire.source import Span

if TYPE_CHECKING:
    from quire.expr.syntax import ArithmeticOperator, CompareOperator, EachName

SMALL = 1 << 1_024
"""Integers below this are handled in the time of one step."""

Operation: TypeAlias = Callable[[Any, Any, Run, Span], Any]


def constant(value: None | bool | int | float | str) -> Closure:
    return lambda run: value


def negation(operand: Closure, times: int) -> Closure:
    if times % 2:
        return lambda run: not operand(run)
    return lambda run: bool(operand(run))


def logic(operands: tuple[Closure, ...], decides: bool) -> Closure:
    """Compile a chain: its value is that of the first operand which is as true as `decides`, or that of the last."""
    *firsts, last = operands

    def decide(run: Run) -> object:
        for part in firsts:
            value: object = part(run)
            if bool(value) is decides:
                return value
        return last(run)

    return decide


def comparison(sign: CompareOperator, left: Closure, right: Closure, span: Span) -> Closure:
    if sign == "==":
        return lambda run: equal(left(run), right(run), run, span)
    if sign == "!=":
        return lambda run: not equal(left(run), right(run), run, span)
    holds = {"<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge}[sign]

    def compare(run: Run) -> object:
        first, second = left(run), right(run)
        if type(first) in ORDERED and type(second) in ORDERED:
            return holds(first, second)
        if isinstance(first, str) and isinstance(second, str):
            charge_texts(first, second, run, span)
            return holds(first, second)
        raise EvalError(f"{sign} compares two numbers or two texts, not {kind(first)} and {kind(second)}", span)

    return compare


def minus(operand: Closure, times: int, span: Span) -> Closure:
    odd = times % 2

    def negate(run: Run) -> object:
        value = operand(run)
        if type(value) not in NUMBERS:
            raise EvalError(f"- needs a number, not {kind(value)}", span)
        return -value if odd else value

    return negate


def arithmetic(first: Closure, rest: tuple[tuple[ArithmeticOperator, Closure, Span], ...]) -> Closure:
    if len(rest) == 1:
        sign, second, span = rest[0]
        step = _STEPS[sign]
        return lambda run: step(first(run), second(run), run, span)
    terms = tuple((_STEPS[sign], code, span) for sign, code, span in rest)

    def chain(run: Run) -> object:
        value = first(run)
        for step, code, span in terms:
            value = step(value, code(run), run, span)
        return value

    return chain


def storable(number: int | float, run: Run, span: Span) -> int | float:
    """Return the number. Raises `EvalError` if it is outside the range that can be stored.

    Large integers cost more than one step.
    """
    if isinstance(number, float):
        # Only infinities and NaN do not give zero when subtracted from themselves.
        if number - number != 0.0:
            raise EvalError("the number is too large", span)
    elif not -SMALL < number < SMALL:
        bits = number.bit_length()
        if bits > MAX_BITS:
            raise EvalError(f"the number has more than {MAX_DIGITS:,} digits", span)
        run.charge(bits >> 4, span)
    return number


def _add(left: Any, right: Any, run: Run, span: Span) -> object:
    if type(left) in NUMBERS and type(right) in NUMBERS:
        try:
            return storable(left + right, run, span)
        except OverflowError:
            raise EvalError("the number is too large", span) from None
    if isinstance(left, str) and isinstance(right, str):
        length = len(left) + len(right)
        if length > MAX_TEXT:
            raise EvalError(f"the text has more than {MAX_TEXT:,} characters", span)
        run.charge(length >> 4, span)
        return left + right
    if is_list(left) and is_list(right):
        return concatenate(left, right, run, span)
    message = f"+ needs two numbers, two texts or two lists, not {kind(left)} and {kind(right)}"
    hint = ""
    if isinstance(left, bool) or isinstance(right, bool):
        hint = "a boolean is not a number"
    elif is_list(left) or is_list(right):
        hint = "to append one element, write list + [element]"
    raise EvalError(message, span, hint)


def _of_numbers(sign: str, compute: Operation) -> Operation:
    def step(left: Any, right: Any, run: Run, span: Span) -> object:
        if type(left) not in NUMBERS or type(right) not in NUMBERS:
            raise EvalError(f"{sign} needs two numbers, not {kind(left)} and {kind(right)}", span)
        try:
            return compute(left, right, run, span)
        except OverflowError:
            raise EvalError("the number is too large", span) from None

    return step


def _divide(left: Any, right: Any, run: Run, span: Span) -> object:
    if right == 0:
        raise EvalError("division by zero", span)
    storable(left, run, span)
    if isinstance(left, int) and isinstance(right, int):
        whole, remainder = divmod(left, right)
        return whole if remainder == 0 else left / right
    return storable(left / right, run, span)


_STEPS: dict[ArithmeticOperator, Operation] = {
    "+": _add,
    "-": _of_numbers("-", lambda left, right, run, span: storable(left - right, run, span)),
    "*": _of_numbers("*", lambda left, right, run, span: storable(left * right, run, span)),
    "/": _of_numbers("/", _divide),
}


def each(name: EachName, source: Closure, parameter: str, body: Closure, cost: int, span: Span, place: Span) -> Closure:
    """Compile a combinator with a lambda.

    `cost` is the number of nodes of the lambda, `place` is where the list is written.
    """

    def begin(run: Run, applied: int | None = None) -> tuple[Sequence[Any], dict[str, Any]]:
        items = _items(name, source(run), place)
        run.charge((len(items) if applied is None else applied) * cost + len(run.names), span)
        return items, dict(run.names)

    def collected(run: Run) -> object:
        items, inner = begin(run)
        outer, run.names = run.names, inner
        results = []
        for item in items:
            inner[parameter] = item
            value = body(run)
            if name == "map":
                results.append(value)
            elif value:
                results.append(item)
        run.names = outer
        return results

    def first(run: Run, sought: bool, otherwise: object, result: object) -> object:
        """Return `result` if the lambda gives `sought` for some element, else `otherwise`."""
        items, inner = begin(run, 0)
        outer, run.names = run.names, inner
        for item in items:
            run.charge(cost, span)
            inner[parameter] = item
            if bool(body(run)) is sought:
                otherwise = item if result is _ITEM else result
                break
        run.names = outer
        return otherwise

    codes: dict[EachName, Closure] = {
        "map": collected,
        "filter": collected,
        "all": lambda run: first(run, False, True, False),
        "any": lambda run: first(run, True, False, True),
        "find": lambda run: first(run, True, None, _ITEM),
    }
    return codes[name]


_ITEM = object()


def count(source: Closure, place: Span) -> Closure:
    return lambda run: len(_items("count", source(run), place))


def total(source: Closure, span: Span, place: Span) -> Closure:
    def add_up(run: Run) -> object:
        items = _items("sum", source(run), place)
        run.charge(len(items) >> 1, span)
        if not NUMBERS.issuperset(map(type, items)):
            wrong = next(item for item in items if type(item) not in NUMBERS)
            raise EvalError(f"sum needs a list of numbers, but one element is {kind(wrong)}", place)
        long = sum(item.bit_length() for item in items if type(item) is int and not -SMALL < item < SMALL)
        run.charge(long >> 12, span)
        try:
            # Not the built-in sum: since Python 3.12 it rounds floats differently, and a replay must not.
            return storable(reduce(operator.add, items, 0), run, span)
        except OverflowError:
            raise EvalError("the number is too large", span) from None

    return add_up


def join(source: Closure, separator: Closure, span: Span, place: Span, separator_place: Span) -> Closure:
    def put_together(run: Run) -> object:
        items = _items("join", source(run), place)
        between = separator(run)
        if not isinstance(between, str):
            raise EvalError(f"join needs a text as separator, not {kind(between)}", separator_place)
        run.charge(len(items) >> 1, span)
        for item in items:
            if not isinstance(item, str):
                raise EvalError(f"join needs a list of texts, but one element is {kind(item)}", place)
        length = sum(map(len, items)) + len(between) * max(0, len(items) - 1)
        if length > MAX_TEXT:
            raise EvalError(f"the text has more than {MAX_TEXT:,} characters", span)
        run.charge(length >> 4, span)
        return between.join(items)

    return put_together


def _items(name: str, value: object, place: Span) -> Sequence[Any]:
    if not is_list(value):
        raise EvalError(f"{name} needs a list, not {kind(value)}", place)
    return value
