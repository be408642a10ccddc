"""Values that the branches and expressions of a document compare other values with, by the name of the compared value.

A draft of a case tries them, because they are the values at which a document decides one way or the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeAlias

from quire.expr.syntax import Compare, Constant, FunctionCall, Get, Path, Total, walk
from quire.plan.parts import formulas
from quire.plan.pipeline_work import Select
from quire.testing.coverage.pipeline_decisions import is_boolean

if TYPE_CHECKING:
    from quire.expr.syntax import Node
    from quire.plan.nodes import Plan


Tested: TypeAlias = str | int | float | bool
MOST_COUNT = 20
"""The longest list that a draft makes, because the document compares the length of the list with a number."""
_MOST_VALUES = 12


def tested_values(plans: Iterable[Plan]) -> tuple[dict[str, list[Tested]], dict[str, list[int]]]:
    """Return the values that documents compare others with, and the lengths that they compare those of lists with."""
    values: dict[str, dict[tuple[type, Tested], None]] = {}
    counts: dict[str, dict[int, None]] = {}
    for name, value, of_length in (comparison for plan in plans for comparison in _comparisons(plan)):
        if not of_length:
            values.setdefault(name, {})[type(value), value] = None
        elif isinstance(value, int | float) and 0 <= value <= MOST_COUNT:
            counts.setdefault(name, {})[int(value)] = None
    listed = {name: [value for _, value in typed][:_MOST_VALUES] for name, typed in values.items()}
    return listed, {name: list(lengths) for name, lengths in counts.items()}


def _comparisons(plan: Plan) -> Iterator[tuple[str, Tested, bool]]:
    """Yield the names and values of all comparisons, and whether the length of the value is compared."""
    for _, step in plan.steps():
        for case in step.match.cases if step.match else ():
            if case.test is not None:
                yield case.test.variable, case.test.value, False
        match step.work:
            case Select(on=on, cases=cases) if not is_boolean(root := on.compiled.expression.root):
                for label, _ in cases:
                    yield from ((name, value, False) for name in names_in(root) for value in _meanings(label))
        for _, formula in formulas(step):
            yield from _in_expression(formula.compiled.expression.root)


def _meanings(label: str) -> Iterator[Tested]:
    """Yield the values whose text is a label of a `match`."""
    yield label
    if label in ("True", "False"):
        yield label == "True"
    try:
        number = float(label)
    except ValueError:
        return
    if str(number) == label:
        yield number
    elif label.lstrip("-").isdecimal():
        yield int(label)


def _in_expression(root: Node) -> Iterator[tuple[str, Tested, bool]]:
    for node, _ in walk(root):
        match node:
            case Compare(left=left, right=right):
                for side, other in ((left, right), (right, left)):
                    if isinstance(other, Constant) and other.value is not None:
                        yield from _compared(side, other.value)
            case FunctionCall(arguments=arguments):
                texts = [
                    argument.value
                    for argument in arguments
                    if isinstance(argument, Constant) and isinstance(argument.value, str)
                ]
                yield from ((name, text, False) for name in names_in(node) for text in texts)


def _compared(side: Node, value: Tested) -> Iterator[tuple[str, Tested, bool]]:
    of_length = isinstance(side, Total) and side.name == "count"
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    near: list[Tested] = [value, value + 1, value - 1] if is_number else [value]  # type: ignore[operator]
    for name in names_in(side):
        yield from ((name, tested, of_length) for tested in near)


def names_in(root: Node) -> list[str]:
    """Return the last names of the paths that an expression reads."""
    names = dict.fromkeys(node.segments[-1] for node, _ in walk(root) if isinstance(node, Path))
    names |= dict.fromkeys(node.keys[-1] for node, _ in walk(root) if isinstance(node, Get))
    return list(names)
