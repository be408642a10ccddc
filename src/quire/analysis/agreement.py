"""Find the values that a person has seen and agreed to before an effect happens.

A question counts only if it is a gate of the effect (`gates.py`): asking alone is not consent. The yes is for the
values that the question showed, in the version that it showed: a part of a value is not the whole, and neither is a
count of its items.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

from quire.analysis.gates import GateSearch
from quire.expr.syntax import (
    RESERVED,
    Arithmetic,
    FunctionCall,
    Get,
    Join,
    ListOf,
    MapOf,
    Path,
    reads_below,
)
from quire.plan.nodes import Template, UseTool, ValueSlot
from quire.plan.pipeline_work import Formula, Invoke

if TYPE_CHECKING:
    from quire.analysis.abstract_values import AbstractValue
    from quire.analysis.facts import EffectFact, QuestionFact
    from quire.expr.syntax import Node
    from quire.plan.nodes import Arguments


class Agreements:
    """The questions whose yes effects of one proof need. Conditions that effects share are looked at once."""

    def __init__(self) -> None:
        self._search = GateSearch()

    def questions(self, effect: EffectFact) -> tuple[QuestionFact, ...]:
        """Return the questions that a person has to answer with a yes before an effect happens, each of them."""
        if not effect.conditions:
            return ()
        gate = self._search.gate_of(effect)
        return gate.questions if gate.verdict == "gated" and not gate.jointly else ()

    def covers(self, effect: EffectFact, argument: str, part: int | None, value: AbstractValue) -> bool:
        """Tell whether a person has seen a value of an argument, unchanged since, and the effect needs the person's
        yes. `part` is the index of an item of the argument."""
        questions = self.questions(effect)
        if any(_shows(one, value) for question in questions for one in question.shown):
            return True
        # Names and their versions are those of one document.
        own = [one for one in questions if one.place.document == effect.place.document]
        paths = _read_paths(effect, argument, part) if own else []
        versions = {one.rpartition("#")[0]: one for one in effect.reads}
        return bool(paths) and any(
            all(versions.get(path[0]) in one.shown_names and _is_below(path, shown) for path in paths)
            for one in own
            if (shown := _shown_paths(one))
        )


def _shows(shown: AbstractValue, value: AbstractValue, depth: int = 0) -> bool:
    return shown is value or (depth < 4 and any(_shows(one, value, depth + 1) for one in shown.fields.values()))


_StorePath: TypeAlias = tuple[str, ...]
"""The name of a store or a variable, and the way to a part of it."""
_AS_IT_IS = frozenset(("text", "json", "trim"))
"""Functions whose text has everything of their argument."""


def _is_below(path: _StorePath, shown: set[_StorePath]) -> bool:
    return any(path[:length] in shown for length in range(1, len(path) + 1))


def _shown_paths(question: QuestionFact) -> set[_StorePath]:
    """Return everything that a question shows as it is."""
    step = question.place.step
    if isinstance(step.work, Invoke):
        given = [value for name, value in step.work.arguments if name in ("prompt", "show")]
        return {path for one in given if isinstance(one, Formula) for path in _whole(one.compiled.expression.root)}
    return {(one.name,) for one in step.ask.prompt.references()} if step.ask is not None else set()


def _whole(node: Node) -> Iterator[_StorePath]:
    """Yield the values that are in the value of an expression as they are."""
    match node:
        case Path(segments=segments):
            if (path := _store_path(segments)) is not None:
                yield path
        case Get(base=Path(segments=segments), keys=keys):
            if (path := _store_path((*segments, *keys))) is not None:
                yield path
        case Arithmetic(first=first, rest=rest) if all(operator == "+" for operator, _ in rest):
            for one in (first, *(operand for _, operand in rest)):
                yield from _whole(one)
        case FunctionCall(name=name, arguments=parts) if name in _AS_IT_IS and parts:
            yield from _whole(parts[0])
        case Join(source=source):
            yield from _whole(source)
        case ListOf(items=items):
            for one in items:
                yield from _whole(one)
        case MapOf(entries=entries):
            for _, one in entries:
                yield from _whole(one)


def _store_path(segments: tuple[str, ...]) -> _StorePath | None:
    """Return a path from the name of its store on; None for other values."""
    path = segments[1:] if segments[0] == "ctx" else segments
    return path if path and path[0] not in RESERVED else None


def _read_paths(effect: EffectFact, argument: str, part: int | None) -> list[_StorePath]:
    """Return all that an argument reads of stores; nothing if it reads anything else."""
    work = effect.place.step.work
    if isinstance(work, Invoke):
        given = dict(work.arguments).get(argument)
        return _of_formula(given, part) if isinstance(given, Formula) else []
    if isinstance(work, UseTool) and isinstance(work.arguments, dict):
        tree = work.arguments.get(argument)
        if part is not None and isinstance(tree, tuple):
            tree = tree[part] if part < len(tree) else None
        return _of_tree(tree)
    return []


def _of_formula(given: Formula, part: int | None) -> list[_StorePath]:
    root = given.compiled.expression.root
    if part is not None and isinstance(root, ListOf) and part < len(root.items):
        root = root.items[part]
    found = [_store_path(one.path) for one in reads_below(root)]
    return [path for path in found if path is not None] if None not in found else []


def _of_tree(tree: Arguments) -> list[_StorePath]:
    match tree:
        case Template():
            return [(one.name,) for one in tree.references()]
        case ValueSlot(reference=reference):
            return [(reference.name,)]
    return []
