"""Compare the values that a question shows with those that an effect uses, and find those that a person has agreed to.

Names are those of one document, as its author writes them: `page.status` is another value than `page.body`. A value
also counts as shown if a shown one was made from it, or if it was computed from a shown one. A result that a model or a
tool made of a shown value was not shown.

For an agreement (`Agreements`) a question counts only if it is a gate of the effect: asking alone is not consent. The
yes is for the values that the question showed, in the version that it showed: a part of a value is not the whole, and
neither is a count of its items.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias

from quire.analysis.approvals import GateSearch
from quire.analysis.playbook_walk import argument_names
from quire.expr.syntax import RESERVED, Arithmetic, FunctionCall, Get, Join, ListOf, MapOf, Path, reads_below
from quire.plan.nodes import Template, Think, UseTool, ValueSlot
from quire.plan.parts import formulas
from quire.plan.pipeline_work import Agent, Fold, ForEach, Formula, Invoke

if TYPE_CHECKING:
    from quire.analysis.abstract_values import AbstractValue
    from quire.analysis.facts import EffectFact, QuestionFact
    from quire.expr.syntax import Node
    from quire.plan.nodes import Arguments, Plan, Step


ANYTHING = "*"
"""The name of values that cannot be told apart: `pipe` and `acc`."""
EVERYTHING = "ctx"
"""The name of all stores together: `ctx` as a whole, and the prompts of files, which may name any."""
_UNCLEAR = frozenset((ANYTHING, EVERYTHING))
_SHOWN = ("prompt", "show", "options")


def shown_names(question: QuestionFact) -> frozenset[str]:
    """Return the names that a question shows."""
    step = question.place.step
    if isinstance(step.work, Invoke):
        return frozenset(_of_formulas(value for name, value in step.work.arguments if name in _SHOWN))
    if step.ask is None:
        return _UNCLEAR
    texts = (step.ask.prompt, *step.ask.options)
    return frozenset(reference.name for text in texts for reference in text.references())


def used_names(effect: EffectFact) -> frozenset[str]:
    """Return the names that the arguments of an effect read."""
    work = effect.place.step.work
    if isinstance(work, Invoke):
        return frozenset(_of_formulas(value for _, value in work.arguments))
    return frozenset(argument_names(work.arguments)) if isinstance(work, UseTool) else _UNCLEAR


def _of_formulas(values: Iterator[object]) -> Iterator[str]:
    for value in values:
        if isinstance(value, Formula):
            yield from _of_formula(value)


def _of_formula(formula: Formula) -> Iterator[str]:
    reads = formula.compiled.reads()
    # `get(ctx, 'x')` reads `ctx` only to find `x`.
    gets = any(read.optional for read in reads)
    yield from (_dotted(read.path) for read in reads if not (gets and read.path == (EVERYTHING,)))


def _dotted(path: tuple[str, ...]) -> str:
    """Return a path from the name of its store on: `page.body`."""
    if path[0] == "ctx":
        return ".".join(path[1:]) or EVERYTHING
    return ANYTHING if path[0] in ("pipe", "acc") else ".".join(path)


def _store(name: str) -> str:
    """Return the name of the store that a value is a part of."""
    return name.partition(".")[0]


class Derivations:
    """The names that each name of a document was made from."""

    def __init__(self, plan: Plan) -> None:
        self._made_from: dict[str, set[str]] = {}
        self._computed_from: dict[str, set[str]] = {}
        """Without what models and tools have made."""
        captures = {path: step.capture.name for path, step in plan.steps() if step.capture is not None}
        for path, step in plan.steps():
            names = set(read_names(step))
            is_computed = not isinstance(step.work, Agent | Invoke | UseTool)
            parts = path.split("/")
            for length in range(len(parts), 0, -1) if names else ():
                # The value of a step is made from everything that the steps inside of it read.
                name = captures.get("/".join(parts[:length]))
                if name is not None:
                    self._made_from.setdefault(name, set()).update(names)
                    if is_computed:
                        self._computed_from.setdefault(name, set()).update(names)

    def are_related(self, shown: frozenset[str], used: frozenset[str], effect: EffectFact) -> bool:
        """Tell whether a shown value is among those that are used, or was made from one, or one was computed from
        it."""
        around = {name for fan in effect.fans for name in _gone_through(fan.step)}
        used = used | around if any(_store(name) == "item" for name in used) else used
        mine, theirs = _origins(shown, self._made_from), _origins(used, self._computed_from)
        return bool((mine | theirs) & _UNCLEAR) or _meet(mine, used) or _meet(theirs, shown)


def _origins(names: frozenset[str], made_from: Mapping[str, set[str]]) -> set[str]:
    """Return names with all that their values were made from."""
    origins = set(names)
    waiting = list(names)
    while waiting:
        fresh = made_from.get(_store(waiting.pop()), set()) - origins
        origins |= fresh
        waiting += fresh
    return origins


def _meet(some: Collection[str], others: Collection[str]) -> bool:
    """Tell whether a value is the same as another one, or a part of it."""
    pairs = [(f"{name}.", f"{other}.") for name in some for other in others]
    return any(name.startswith(other) or other.startswith(name) for name, other in pairs)


def _gone_through(step: Step) -> Iterator[str]:
    if isinstance(step.work, ForEach | Fold):
        if step.work.source is None:
            yield ANYTHING
        else:
            yield from _of_formulas(iter((step.work.source,)))


def read_names(step: Step) -> Iterator[str]:
    """Yield the names that the work of a step reads. A model step of a playbook reads everything before it."""
    for _, formula in formulas(step):
        yield from map(_store, _of_formula(formula))
    match step.work:
        case Agent(file=file, prompt=prompt):
            paths = (tuple(reference.name.split(".")) for reference in prompt.references())
            yield from (EVERYTHING,) if file else (_store(_dotted(path)) for path in paths)
        case Think():
            yield ANYTHING
        case UseTool(arguments=arguments):
            yield from argument_names(arguments)
    if step.match is not None:
        yield from (case.test.variable for case in step.match.cases if case.test is not None)
    if step.ask is not None:
        yield from (reference.name for text in (step.ask.prompt, *step.ask.options) for reference in text.references())


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
        if any(_shows(shown, value) for question in questions for shown in question.shown):
            return True
        # Names and their versions are those of one document.
        own = [question for question in questions if question.place.document == effect.place.document]
        paths = _read_paths(effect, argument, part) if own else []
        versions = {read.rpartition("#")[0]: read for read in effect.reads}
        return bool(paths) and any(
            all(versions.get(path[0]) in fact.shown_names and shown.intersection(_beginnings(path)) for path in paths)
            for fact in own
            if (shown := _shown_paths(fact))
        )


def _shows(shown: AbstractValue, value: AbstractValue, depth: int = 0) -> bool:
    return shown is value or (depth < 4 and any(_shows(field, value, depth + 1) for field in shown.fields.values()))


_StorePath: TypeAlias = tuple[str, ...]
"""The name of a store or a variable, and the way to a part of it."""
_AS_IT_IS = frozenset(("text", "json", "trim"))
"""Functions whose text has everything of their argument."""


def _beginnings(path: _StorePath) -> Iterator[_StorePath]:
    return (path[:length] for length in range(1, len(path) + 1))


def _shown_paths(question: QuestionFact) -> set[_StorePath]:
    """Return everything that a question shows as it is."""
    step = question.place.step
    if isinstance(step.work, Invoke):
        values = [value for name, value in step.work.arguments if name in ("prompt", "show")]
        roots = [value.compiled.expression.root for value in values if isinstance(value, Formula)]
        return {path for root in roots for path in _whole(root)}
    return {(reference.name,) for reference in step.ask.prompt.references()} if step.ask is not None else set()


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
            for operand in (first, *(operand for _, operand in rest)):
                yield from _whole(operand)
        case FunctionCall(name=name, arguments=parts) if name in _AS_IT_IS and parts:
            yield from _whole(parts[0])
        case Join(source=source):
            yield from _whole(source)
        case ListOf(items=items):
            for item in items:
                yield from _whole(item)
        case MapOf(entries=entries):
            for _, entry in entries:
                yield from _whole(entry)


def _store_path(segments: tuple[str, ...]) -> _StorePath | None:
    """Return a path from the name of its store on; None for other values."""
    path = segments[1:] if segments[0] == "ctx" else segments
    return path if path and path[0] not in RESERVED else None


def _read_paths(effect: EffectFact, argument: str, part: int | None) -> list[_StorePath]:
    """Return all that an argument reads of stores; nothing if it reads anything else."""
    work = effect.place.step.work
    if isinstance(work, Invoke):
        value = dict(work.arguments).get(argument)
        return _paths_of_formula(value, part) if isinstance(value, Formula) else []
    if isinstance(work, UseTool) and isinstance(work.arguments, dict):
        tree = work.arguments.get(argument)
        if part is not None and isinstance(tree, tuple):
            tree = tree[part] if part < len(tree) else None
        return _of_tree(tree)
    return []


def _paths_of_formula(formula: Formula, part: int | None) -> list[_StorePath]:
    root = formula.compiled.expression.root
    if part is not None and isinstance(root, ListOf) and part < len(root.items):
        root = root.items[part]
    paths = [_store_path(read.path) for read in reads_below(root)]
    return [path for path in paths if path is not None] if None not in paths else []


def _of_tree(tree: Arguments) -> list[_StorePath]:
    match tree:
        case Template():
            return [(reference.name,) for reference in tree.references()]
        case ValueSlot(reference=reference):
            return [(reference.name,)]
    return []
