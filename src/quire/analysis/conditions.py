"""Decide how conditions, such as those of the arms of a step, turn out if people answer in a certain way.

Values that no answer and no constant decides are unknown; a condition is false only if it is false for all of their
values. An expression that fails counts as one that does not hold: no later step runs then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from math import prod
from typing import TYPE_CHECKING, TypeAlias, assert_never

from msgspec.structs import replace

from quire.analysis.abstract_values import NULL
from quire.analysis.facts import Condition
from quire.analysis.labels import AUTHORED, joined
from quire.expr import EvalError, compile, python_text
from quire.expr.syntax import (
    Arithmetic,
    Compare,
    Constant,
    Each,
    Expression,
    FunctionCall,
    Get,
    Join,
    ListOf,
    Logic,
    MapOf,
    Negate,
    Node,
    Not,
    Path,
    Total,
    children,
)
from quire.plan.nodes import Comparison
from quire.source import NOWHERE
from quire.values import InvalidValue

if TYPE_CHECKING:
    from quire.analysis.abstract_values import AbstractValue
    from quire.analysis.facts import Place, QuestionFact
    from quire.analysis.scope import Scope
    from quire.plan.nodes import Match
    from quire.values import Value


Possible: TypeAlias = "tuple[Value, ...] | None"
"""All values that something can have; None if they are not known, empty if it always fails."""
_MOST_POSSIBLE = 32
_LONGEST = 10_000
"""Nodes of an expression, and characters of a value, up to which they are tried out."""
_FUNCTIONS = frozenset(
    ("text", "number", "trim", "lower", "upper", "contains", "starts_with", "ends_with", "first", "last", "slice")
)
"""Functions that take no longer than their arguments are long."""
_BOTH = frozenset((True, False))


def questions_in(conditions: Iterable[Condition]) -> tuple[QuestionFact, ...]:
    """Return the questions whose answers conditions depend on."""
    facts: dict[int, QuestionFact] = {}
    values: dict[int, AbstractValue] = {}
    stack = [
        value
        for condition in conditions
        for value in (*condition.reads.values(), *((condition.subject,) if condition.subject else ()))
    ]
    while stack:
        value = stack.pop()
        if id(value) in values or not value.is_answered:
            continue
        values[id(value)] = value
        if value.answer is not None:
            facts[id(value.answer)] = value.answer
        stack += value.choices
        if value.computed is not None:
            stack += value.computed.reads.values()
    return tuple(sorted(facts.values(), key=lambda fact: fact.place.span.start))


class Answers:
    """The answers to some questions; those to all others are not known."""

    def __init__(self, given: Mapping[QuestionFact, str]) -> None:
        self._given = {id(question): answer for question, answer in given.items()}
        self._known: dict[int, Possible] = {}
        self._held: dict[int, bool] = {}
        self._compared: dict[tuple[int, int], frozenset[bool]] = {}
        """How each comparison can turn out with each value: the arms of a step compare the same values."""

    def prevent(self, conditions: Iterable[Condition]) -> bool:
        """Tell whether one of the conditions certainly does not turn out as it must. The values of the conditions must
        outlive this object, which knows them by their identities."""
        return any(not self._may_hold(condition) for condition in conditions)

    def _may_hold(self, condition: Condition) -> bool:
        known = self._held.get(id(condition))
        if known is None:
            try:
                known = self._turns_out(condition)
            except RecursionError:
                known = True
            self._held[id(condition)] = known
        return known

    def _turns_out(self, condition: Condition) -> bool:
        earlier = (self._truth(test, condition) for test in condition.others)
        own = self._truth(condition.test, condition) if condition.test is not None else frozenset({True})
        if condition.holds:
            return True in own and all(False in one for one in earlier)
        return False in own or any(True in one for one in earlier)

    def _truth(self, test: Node | Comparison | str | None, condition: Condition) -> frozenset[bool]:
        match test:
            case None:
                return _BOTH
            case str():
                return self._matches(test, condition.subject)
            case Comparison(variable=variable, operator=operator, value=value):
                if variable not in condition.reads:
                    return _BOTH
                read = condition.reads[variable]
                key = id(test), id(read)
                if key not in self._compared:
                    possible = self.of(read)
                    texts = ["" if one is None else one for one in possible or ()]
                    turned = frozenset((text == value) == (operator == "==") for text in texts)
                    self._compared[key] = _BOTH if possible is None else turned
                return self._compared[key]
            case _:
                return self._decided(test, condition.reads)

    def _matches(self, label: str, subject: AbstractValue | None) -> frozenset[bool]:
        possible = self.of(subject) if subject is not None else None
        if possible is None:
            return _BOTH
        found = set()
        for one in possible:
            try:
                found.add(python_text(one) == label)
            except InvalidValue:
                continue
        return frozenset(found)

    def of(self, value: AbstractValue) -> Possible:
        """Return all values that a value can be."""
        if id(value) not in self._known:
            self._known[id(value)] = self._of(value)
        return self._known[id(value)]

    def _of(self, value: AbstractValue) -> Possible:
        if value.answer is not None:
            if id(value.answer) in self._given:
                return (self._given[id(value.answer)],)
            return ("yes", "no") if value.answer.kind == "confirm" else None
        if value.computed is not None:
            return self._value(value.computed.node, value.computed.reads)
        if value.choices:
            return _together(self.of(choice) for choice in value.choices)
        return (value.constant,) if value.is_constant else None

    def _decided(self, node: Node, reads: Mapping[str, AbstractValue]) -> frozenset[bool]:
        """Return whether an expression can be true, and whether it can be false."""
        match node:
            case Not(operand=operand, times=times):
                found = self._decided(operand, reads)
                return frozenset(not one for one in found) if times % 2 else found
            case Logic(operator=operator, operands=operands):
                parts = [self._decided(one, reads) for one in operands]
                deciding, other = operator == "or", operator == "and"
                if any(other not in part for part in parts):
                    return frozenset({deciding})
                return frozenset({other}) if all(deciding not in part for part in parts) else _BOTH
        possible = self._value(node, reads)
        return _BOTH if possible is None else frozenset(bool(one) for one in possible)

    def _value(self, node: Node, reads: Mapping[str, AbstractValue]) -> Possible:
        match node:
            case Constant(value=value):
                return (value,)
            case Path(segments=segments):
                read = reads.get(".".join(segments))
                return self.of(read) if read is not None else None
            case Get(base=Path(segments=segments), keys=keys, default=default):
                read = reads.get(".".join((*segments, *keys)))
                if read is None or (possible := self.of(read)) is None:
                    return None
                if read.answer is not None:
                    return possible
                instead: Possible = (None,) if default is None else self._value(default, reads)
                return _together((possible, instead))
            case Each() | Get():
                return None
            case FunctionCall(name=name, key=key) if key is not None or name not in _FUNCTIONS:
                return None
        parts = [self._value(child, reads) for child in children(node)]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None
        return _tried_out(node, known)


def _together(several: Iterable[Possible]) -> Possible:
    values: list[Value] = []
    for possible in several:
        if possible is None:
            return None
        values += possible
    return tuple(values) if len(values) <= _MOST_POSSIBLE else None


def _tried_out(node: Node, parts: list[tuple[Value, ...]]) -> Possible:
    """Return the values of a node for all values of its parts."""
    values = [value for part in parts for value in part]
    is_long = any(isinstance(value, str) and len(value) > _LONGEST for value in values)
    if is_long or prod(map(len, parts)) > _MOST_POSSIBLE:
        return None
    are_texts = all(isinstance(value, str) for value in values)
    if isinstance(node, Compare) and node.operator in ("==", "!=") and are_texts:
        return tuple((left == right) == (node.operator == "==") for left, right in product(*parts))
    names = [f"part{at}" for at in range(len(parts))]
    paths = [Path(("ctx", name), (NOWHERE, NOWHERE), NOWHERE) for name in names]
    if len(paths) > _LONGEST:
        return None
    code = compile(Expression("", _with_parts(node, iter(paths))))
    results: list[Value] = []
    for chosen in product(*parts):
        try:
            results.append(code.evaluate({"ctx": dict(zip(names, chosen, strict=True))}))
        except EvalError:
            continue
    return tuple(results)


def _with_parts(node: Node, parts: Iterator[Node]) -> Node:
    """Return a node with other parts, in the order of `children`."""
    match node:
        case ListOf(items=items):
            return replace(node, items=tuple(next(parts) for _ in items))
        case MapOf(entries=entries):
            return replace(node, entries=tuple((name, next(parts)) for name, _ in entries))
        case Not() | Negate():
            return replace(node, operand=next(parts))
        case Logic(operands=operands):
            return replace(node, operands=tuple(next(parts) for _ in operands))
        case Compare():
            return replace(node, left=next(parts), right=next(parts))
        case Arithmetic(rest=rest):
            return replace(node, first=next(parts), rest=tuple((sign, next(parts)) for sign, _ in rest))
        case Total():
            return replace(node, source=next(parts))
        case Join():
            return replace(node, source=next(parts), separator=next(parts))
        case FunctionCall(arguments=arguments):
            return replace(node, arguments=tuple(next(parts) for _ in arguments))
        case Constant() | Path() | Each() | Get():
            return node
        case _:
            assert_never(node)


MOST_TESTS = 100
"""Most tests before an arm that are known to be false in it. Each arm keeps those before it."""


def arm_conditions(match: Match, place: Place, scope: Scope) -> list[Condition]:
    """Return the condition of each arm: its test holds, and none of those before it.

    The values of all tests before an arm are in its label. The tests themselves are only those of the first arms: an
    arm of which less is known may be chosen more often, never less.
    """
    conditions: list[Condition] = []
    earlier: tuple[Comparison, ...] = ()
    values: dict[str, AbstractValue] = {}
    label = AUTHORED
    read: set[str] = set()
    for case in match.cases:
        test, reads = case.test, values
        if test is not None:
            value = scope.names.stores.get(test.variable) or NULL
            if test.variable not in read:
                read.add(test.variable)
                label = joined((label, value.label.narrowed()))
            reads = values if test.variable in values else {**values, test.variable: value}
        conditions.append(Condition(place, test, True, reads, label, span=place.span, others=earlier))
        if test is not None and len(earlier) < MOST_TESTS:
            earlier, values = (*earlier, test), reads
    return conditions


def any_arm(match: Match, conditions: list[Condition]) -> Condition:
    """Return the condition that one of the arms is chosen. It has the tests of all of them, so that none is left out as
    impossible because its test is not known."""
    return replace(conditions[-1], test=None, holds=False, others=tuple(case.test for case in match.cases))
