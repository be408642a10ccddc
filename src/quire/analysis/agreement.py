"""Find the values that a person has seen and agreed to before an effect happens.

A question counts only if it is a gate of the effect (`gates.py`): asking alone is not consent. The yes is for the
values that the question showed, in the version that it showed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.analysis.gates import GateSearch
from quire.expr.syntax import Expression, ListOf, reads
from quire.plan.nodes import Template, UseTool, ValueSlot
from quire.plan.pipeline_work import Formula, Invoke, Literal

if TYPE_CHECKING:
    from quire.analysis.abstract_values import AbstractValue
    from quire.analysis.facts import EffectFact, QuestionFact
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
        names = _read_names(effect, argument, part) if own else []
        versions = {one.rpartition("#")[0]: one for one in effect.reads}
        return bool(names) and any(
            all(versions.get(name) in question.shown_names for name in names) for question in own
        )


def _shows(shown: AbstractValue, value: AbstractValue, depth: int = 0) -> bool:
    return shown is value or (depth < 4 and any(_shows(one, value, depth + 1) for one in shown.fields.values()))


def _read_names(effect: EffectFact, argument: str, part: int | None) -> list[str]:
    """Return the names of all stores that an argument reads; none if it reads anything else."""
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


def _of_formula(given: Formula | Literal, part: int | None) -> list[str]:
    if isinstance(given, Literal):
        return []
    expression = given.compiled.expression
    if part is not None and isinstance(expression.root, ListOf) and part < len(expression.root.items):
        expression = Expression(expression.text, expression.root.items[part])
    found = [one.store for one in reads(expression)]
    return [name for name in found if name is not None] if all(found) else []


def _of_tree(tree: Arguments) -> list[str]:
    match tree:
        case Template():
            return [one.name for one in tree.references()]
        case ValueSlot(reference=reference):
            return [reference.name]
    return []
