"""The facts that hold at a place of a pipeline because of the conditions around it.

A value counts as the same only if it is read from the same version of the same store: an item or an accumulator is
another value in the next loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct, field

from quire.expr.syntax import RESERVED, Compare, Constant, Logic, Node, Path
from quire.plan.pipeline_work import Select

if TYPE_CHECKING:
    from quire.analysis.facts import Condition

ReadValue: TypeAlias = tuple[str, str]
"""A path and the version of the store in which it begins."""


class Known(Struct):
    """The facts that hold because of one condition."""

    tests: dict[tuple[str, tuple[str, ...]], bool] = field(default_factory=dict)
    """Expressions, with the versions of the stores that they read, and how they turned out."""
    equal: dict[ReadValue, str] = field(default_factory=dict)
    """Values whose text is known."""
    different: dict[ReadValue, set[str]] = field(default_factory=dict)
    """Texts that values do not have."""


class KnownConditions:
    """Facts by the conditions that imply them. Each condition is looked at once, however many choices it is around."""

    def __init__(self) -> None:
        self._facts: dict[int, Known] = {}
        """By the identity of a condition, which lives as long as the proof."""

    def outcome(self, around: tuple[Condition, ...], text: str, versions: tuple[str, ...]) -> bool | None:
        """Return how an expression turned out in a condition around; None if it is in none."""
        key = (text, versions)
        return next((found.tests[key] for found in self._all(around) if key in found.tests), None)

    def equal(self, around: tuple[Condition, ...], read: ReadValue) -> str | None:
        """Return the text of a value if a condition around says it."""
        return next((found.equal[read] for found in self._all(around) if read in found.equal), None)

    def different(self, around: tuple[Condition, ...], read: ReadValue) -> set[str]:
        """Return the texts that a value does not have."""
        return {text for found in self._all(around) for text in found.different.get(read, ())}

    def _all(self, around: tuple[Condition, ...]) -> Iterator[Known]:
        for one in reversed(around):
            found = self._facts.get(id(one))
            if found is None:
                found = self._facts[id(one)] = _known(one)
            yield found


def _known(one: Condition) -> Known:
    """Return what is known by a condition that holds."""
    found = Known()
    if any(is_bound(path) for path in one.reads):
        return found
    work = one.place.step.work
    if one.subject is not None and isinstance(work, Select):
        read = read_of(work.on.compiled.expression.root, one)
        if read is None:
            return found
        if isinstance(one.test, str):
            found.equal[read] = one.test
        else:
            found.different[read] = {label for label in one.others if isinstance(label, str)}
    elif one.place.step.guard is not None and one.place.step.guard.when is not None:
        when = one.place.step.guard.when
        found.tests[when.text, one.versions] = one.holds
        _learn(when.compiled.expression.root, one, one.holds, found)
    return found


def _learn(node: Node, condition: Condition, holds: bool, found: Known) -> None:
    if isinstance(node, Logic) and (node.operator == "and") == holds:
        for operand in node.operands:
            _learn(operand, condition, holds, found)
    elif isinstance(node, Compare) and node.operator in ("==", "!="):
        read, text = compared(node, condition)
        if read is None or text is None:
            return
        if (node.operator == "==") == holds:
            found.equal[read] = text
        else:
            found.different.setdefault(read, set()).add(text)


def is_bound(path: str) -> bool:
    """Tell whether a path begins at a binding, which is another value in the next loop."""
    first = path.partition(".")[0]
    return first in ("round", "errors") or (first in RESERVED and first != "ctx") or path == "ctx"


def read_of(node: Node, condition: Condition) -> ReadValue | None:
    if not isinstance(node, Path):
        return None
    path = node.segments[1:] if node.segments[0] == "ctx" else node.segments
    version = next((one for one in condition.versions if path and one.rpartition("#")[0] == path[0]), None)
    return (".".join(path), version) if version is not None else None


def compared(node: Compare, condition: Condition) -> tuple[ReadValue | None, str | None]:
    """Return the value and the text that are compared. Other constants than texts can be equal in other spellings."""
    for one, other in ((node.left, node.right), (node.right, node.left)):
        if isinstance(other, Constant) and isinstance(other.value, str):
            return read_of(one, condition), other.value
    return None, None
