"""Facts about the values of a document that its plan alone shows: the type of a store, lists that are not empty, and
the values that others are compared with.

Coverage counts no decision that they rule out, and mutation makes no mutant that they make equivalent. A draft of a
case tries the compared values, because a document decides one way or the other there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, TypeAlias

from quire.expr.functions import FUNCTIONS
from quire.expr.syntax import (
    RESERVED,
    Compare,
    Constant,
    Each,
    FunctionCall,
    Get,
    Logic,
    Not,
    Path,
    Total,
    walk,
)
from quire.plan.parts import formulas
from quire.plan.pipeline_work import Agent, Fail, Formula, Invoke, Select, Stop
from quire.schema_types import Object, Ref

if TYPE_CHECKING:
    from quire.expr.syntax import Node
    from quire.plan.nodes import Plan, Step
    from quire.schema_types import Field, FieldType

QUANTIFIERS = ("all", "any")


def is_boolean(node: Node, booleans: Collection[str] = ()) -> bool:
    """Tell whether each value of a node is true or false. That is known of `booleans`."""
    match node:
        case Constant(value=bool()) | Compare() | Not():
            return True
        case Each(name=name):
            return name in QUANTIFIERS
        case FunctionCall(name=name):
            return FUNCTIONS[name].gives == "boolean"
        case Logic(operands=operands):
            return all(is_boolean(operand, booleans) for operand in operands)
        case Path(segments=("ctx", name) | (name,)):
            return name in booleans
    return False


def declared_type(plan: Plan, formula: Formula) -> FieldType | None:
    """Return the type of a store, or of a required field of it, if every step that writes it holds it to one schema."""
    segments = _store_path(formula)
    if segments is None:
        return None
    name, *rest = segments
    if any(field.name == name for field in plan.declared or ()):
        return None
    schemas = {_schema_of(step) for _, step in plan.steps() if step.capture is not None and step.capture.name == name}
    schema = schemas.pop() if len(schemas) == 1 else None
    type: FieldType | None = Ref(schema) if schema is not None else None
    for segment in rest:
        fields = _resolved(plan, type)
        type = next((field.type for field in fields if field.name == segment and field.required), None)
    return type


def is_never_empty(plan: Plan, path: str, formula: Formula) -> bool:
    """Tell whether a list has items where a step reads it: a step before it ends the run, or fails, if it is empty."""
    segments = _store_path(formula)
    if segments is None:
        return False
    place, _, _ = path.rpartition("/")
    filled = False
    for other, step in plan.steps():
        if other == path:
            return filled
        if step.capture is not None and step.capture.name == segments[0]:
            filled = False
        elif other.rpartition("/")[0] == place and _ends_without(step, segments):
            filled = True
    return False


def _ends_without(step: Step, segments: tuple[str, ...]) -> bool:
    """Tell whether a step is a `fail` or `stop` whose condition is that a value is empty."""
    guard = step.guard
    if not isinstance(step.work, Fail | Stop) or guard is None or guard.when is None or guard.goes_on:
        return False
    root = guard.when.compiled.expression.root
    return isinstance(root, Not) and root.times == 1 and _segments(root.operand) == segments


def _store_path(formula: Formula) -> tuple[str, ...] | None:
    return _segments(formula.compiled.expression.root)


def _segments(node: object) -> tuple[str, ...] | None:
    """Return a path that begins with a store; None for every other expression."""
    if not isinstance(node, Path):
        return None
    segments = node.segments[1:] if node.segments[0] == "ctx" else node.segments
    return segments if segments and segments[0] not in RESERVED else None


def _schema_of(step: Step) -> str | None:
    """Return the schema that the value of a step always fits; None if there is none, or a default takes its place."""
    if not isinstance(step.work, Agent | Invoke) or (step.guard is not None and step.guard.goes_on):
        return None
    return step.work.schema


def _resolved(plan: Plan, type: FieldType | None) -> tuple[Field, ...]:
    match type:
        case Ref(schema=name):
            return plan.schemas[name].fields if name in plan.schemas else ()
        case Object(fields=fields):
            return fields
    return ()


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
