"""Walk over the fans and loops of a pipeline: their number of rounds, the growth of their values on the way, and the
round after which one more adds nothing.

For all rounds at once, only the cost of the most expensive one is known. A loop that gathers its items in groups until
one is left has fewer of them in each round, and one that collects them has more: so the first rounds of a loop are also
walked one after the other, each with the value that the round before it has made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from operator import attrgetter
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from quire.analysis.abstract_values import (
    LONGEST_VALUE,
    MOST_ITEMS_OF_A_VALUE,
    NO_PARTS,
    NULL,
    NUMBER,
    AbstractValue,
    depends_alike,
    either,
    either_of,
    sized,
)
from quire.analysis.amounts import Amount, number, total
from quire.analysis.costs import Cost, lower, side_by_side
from quire.analysis.expressions import computed
from quire.analysis.facts import Condition, EffectFact, FanFact, ModelFact, Place
from quire.analysis.labels import AUTHORED, Label, chosen_by, joined
from quire.analysis.model_costs import tried
from quire.analysis.pipeline_calls import condition_of, value_of
from quire.expr.values import MAX_ITEMS as MOST_ITEMS_OF_A_LIST
from quire.plan.nodes import may_stop
from quire.plan.pipeline_work import Transform
from quire.plan.vocabulary import MAX_ITEMS

if TYPE_CHECKING:
    from quire.analysis.facts import Fact
    from quire.analysis.scope import Names, Perhaps, Scope
    from quire.analysis.walk import StepWalk, Walk
    from quire.plan.nodes import Step
    from quire.plan.pipeline_work import Fold, ForEach, Formula, Literal, Parallel, Repeat


def _items(
    source: Literal | Formula | None, most: int | None, scope: Scope, *, cut: bool
) -> tuple[AbstractValue, Amount, int]:
    """Return the list, how many items of it are gone through at most, and at least."""
    value = scope.names.pipe if source is None else value_of(source, scope)
    length = len(value.constant) if value.is_constant and isinstance(value.constant, list | tuple) else None
    if length is not None:
        rounds = min(length, most) if cut and most is not None else length
        return value, number(rounds), rounds
    count = value.items.as_number
    if most is not None:
        return value, number(most if count is None else min(count, most)), 0
    # A formula says more than the limit of the engine, which is the same for every list.
    longest = value.items if count is None and not value.items.reasons else value.items.at_most(_MOST_ITEMS_BY_CUT[cut])
    return value, longest, 0


_BETWEEN, _AROUND = number(4), number(2)
"""Bytes between the items of a list as text, and around them."""
_ERRORS = number(1_000_000)
"""Bytes of the messages of all failures."""
_LEARNED_LOOPS = 3
"""Loops in each other whose values are followed one by one."""
_MOST_ITEMS_BY_CUT = {False: MAX_ITEMS, True: MOST_ITEMS_OF_A_LIST}
"""Most items of a fan, and of a fold, that the engine goes through."""


def for_each(walk: Walk, each: StepWalk, work: ForEach, place: Place, scope: Scope, cost: Cost) -> AbstractValue:
    value, rounds, least = _items(work.source, work.max_items, scope, cut=False)
    walk.facts.append(FanFact(place, rounds, least))
    item = scope.names.item(value)
    around = _of_loops(work, scope)
    failures = scope.names.failures
    before = failures.begin()
    only = _formula(work.do)
    if only is not None and work.default is None:
        result = _evaluated(only, scope.names, scope.names.last, {**around, "item": item})
        failing = failures.end(before)
    else:
        often = rounds.times(number(1 + work.on_error.times))
        saved, part = scope.enter(bound={**around, "item": item}, fan=place, often=often), Cost()
        each(walk, work.do, f"{place.path}/for_each", scope, part)
        result = scope.names.pipe
        failing = failures.end(before)
        if work.default is not None:
            result = either([result, value_of(work.default, scope)])
        scope.leave(saved)
        _add_rounds(cost, part, rounds, least, work)
    results = AbstractValue(
        None,
        rounds,
        rounds.times(result.length.plus(_BETWEEN)).plus(_AROUND),
        chosen_by(result.label, value.label),
        element=result,
    )
    return _collect(walk, each, work.collect, place.path, results, around, failing.join(item.label), scope, cost)


def _add_rounds(cost: Cost, part: Cost, rounds: Amount, least: int, work: ForEach) -> None:
    """Add the cost of all rounds, of which each may be tried again."""
    on_error = work.on_error
    if not part.is_nothing:
        part = tried(part, on_error.times, survives=on_error.goes_on)
        # Sizes are whole numbers, so rounding up each coefficient is as much as rounding up the whole.
        side = rounds.divided(max(1, work.max_parallel))
        cost.add(part.times(rounds, 0 if on_error.goes_on else least, side))


def _formula(step: Step) -> Formula | None:
    """Return the expression of a step that does nothing but compute its value; None for any other."""
    work = step.work
    return work.value if isinstance(work, Transform) and step.capture is None and step.guard is None else None


def _evaluated(
    formula: Formula, names: Names, last: AbstractValue | Perhaps, bound: Mapping[str, AbstractValue]
) -> AbstractValue:
    """Return the value of an expression with other bindings. It changes nothing, so there is nothing to take back."""
    before = names.last, names.bound
    names.last, names.bound = last, bound
    value = computed(formula.compiled, names)
    names.last, names.bound = before
    return value


def _collect(
    walk: Walk,
    each: StepWalk,
    collect: Step,
    path: str,
    pipe: AbstractValue,
    bound: Mapping[str, AbstractValue],
    label: Label,
    scope: Scope,
    cost: Cost,
) -> AbstractValue:
    only = _formula(collect)
    if only is not None and only.text == "pipe" and "pipe" not in bound:
        return pipe
    errors = sized(None, _ERRORS, label)
    if "errors" in {*scope.plan.written, *(field.name for field in scope.plan.declared or ())}:
        errors = either([errors, scope.names.path(("ctx", "errors"))])  # such a store is read in their place
    if only is not None:
        return _evaluated(only, scope.names, pipe, {**bound, "errors": errors})
    saved = scope.enter(bound={**bound, "errors": errors})
    scope.names.last = pipe
    each(walk, collect, f"{path}/collect", scope, cost)
    value = scope.names.pipe
    scope.leave(saved)
    return value


def parallel(walk: Walk, each: StepWalk, work: Parallel, place: Place, scope: Scope, cost: Cost) -> AbstractValue:
    parts, results, around = [], {}, _of_loops(work, scope)
    on_error = work.on_error
    before = scope.names.failures.begin()
    for name, branch in work.branches:
        fan = replace(place, branch=name)
        saved, part = scope.enter(bound=around, fan=fan, often=number(1 + on_error.times)), Cost()
        each(walk, branch, f"{place.path}/parallel[{name}]", scope, part)
        result = scope.names.pipe
        if work.default is not None:
            result = either([result, value_of(work.default, scope)])
        scope.leave(saved)
        results[name] = result
        parts.append(tried(part, on_error.times, survives=on_error.goes_on))
    cost.add(side_by_side(parts))
    failing = scope.names.failures.end(before)
    values = list(results.values())
    pipe = AbstractValue(
        None,
        number(len(values)),
        total(value.length for value in values).plus(number(40 * len(values))),
        joined(value.label for value in values),
        results,
    )
    return _collect(walk, each, work.collect, place.path, pipe, {**around, **results}, failing, scope, cost)


def _of_loops(work: ForEach | Parallel, scope: Scope) -> dict[str, AbstractValue]:
    """Return `acc` and `round` of the loops around a fan, which its steps see in the Quire dialect."""
    bound = scope.names.bound
    return {name: bound[name] for name in ("acc", "round") if name in bound} if work.sees_loops else {}


def fold(walk: Walk, each: StepWalk, work: Fold, place: Place, scope: Scope, cost: Cost) -> AbstractValue:
    value, rounds, least = _items(work.source, work.max_items, scope, cut=True)
    if least > 1 and may_stop(work.do):
        least = 1  # the first round may end the pipeline
    walk.note(FanFact(place, rounds, least))
    begin = value_of(work.init, scope)
    around = scope.names.bound
    bound = {**({"round": around["round"]} if "round" in around else {}), "item": scope.names.item(value)}
    last, whole, _ = _rounds(walk, each, work.do, f"{place.path}/fold", begin, bound, place, rounds, least, scope)
    cost.add(whole)
    last = either([begin, last])
    return last.labelled(chosen_by(last.label, value.label))


def repeat(walk: Walk, each: StepWalk, work: Repeat, place: Place, scope: Scope, cost: Cost) -> AbstractValue:
    rounds = number(work.max)
    walk.note(FanFact(place, rounds, 1))
    begin = value_of(work.init, scope) if work.init is not None else NULL
    bound = {**scope.names.bound, "round": AbstractValue(NUMBER, length=number(7))}
    last, whole, until = _rounds(
        walk, each, work.do, f"{place.path}/repeat", begin, bound, place, rounds, 1, scope, until=work.until
    )
    cost.add(whole)
    if until is not None and not work.keeps_last:
        # If it never holds, the step fails, and no later step runs.
        scope.conditions = (*scope.conditions, until)
    return last


def _rounds(
    walk: Walk,
    each: StepWalk,
    do: Step,
    path: str,
    begin: AbstractValue,
    bound: Mapping[str, AbstractValue],
    place: Place,
    rounds: Amount,
    least: int,
    scope: Scope,
    *,
    until: Formula | None = None,
) -> tuple[AbstractValue, Cost, Condition | None]:
    """Walk over a loop until a round brings nothing new.

    Sizes settle in two rounds, and labels have few levels. A loop that takes long all the same, or is deep in others,
    has one label for all values that its rounds carry; `scope.loop_labels` has it for the next walk over the loop.

    Return the value of the last round, the cost of all rounds, and the condition under which the loop ends.
    """
    accumulated, facts_before = begin if begin.fields or begin.element else grown(begin, begin), walk.facts
    missed_before, ending = set(scope.names.missed), None
    scope.loops += 1
    carried: dict[str, AbstractValue] = {}
    is_rough = scope.loops > _LEARNED_LOOPS or path in scope.loop_labels
    if is_rough:
        label, names = scope.loop_labels.get(path, (AUTHORED, ()))
        accumulated = of_any_size(label.join(begin.label))
        carried = dict.fromkeys(names, of_any_size(label))
    for walked in count(1):
        walk.facts, part = [], Cost()
        saved = scope.enter(bound={**bound, "acc": accumulated}, fan=place, often=rounds)
        for name, value in carried.items():
            scope.keep(name, value)
        scope.names.missed.clear()
        each(walk, do, path, scope, part)
        result = scope.names.pipe
        if until is not None:
            scope.names.bound = {**scope.names.bound, "acc": result}
            ending = condition_of(until, place, scope)
        missed = set(scope.names.missed)
        before = {name: value for name, (value, _) in (scope.log or {}).items()}
        arm = scope.leave(saved)
        after = grown(accumulated, result)
        values = {
            name: grown(carried.get(name) or before.get(name) or NULL, value) for name, (value, _) in arm.stores.items()
        }
        if same(after, accumulated) and _all_same(values, carried, before, missed):
            break
        accumulated, carried = after, values
        is_rough = is_rough or walked >= walk.rounds
        if is_rough:
            label = joined(value.label for value in (accumulated, *carried.values()))
            scope.loop_labels[path] = label, tuple(carried)
            accumulated, carried = of_any_size(label), dict.fromkeys(carried, of_any_size(label))
    facts, walk.facts, whole = walk.facts, facts_before, part.times(rounds, least)
    if may_shrink(walk, scope, rounds, facts):
        round = Round(walk, each, do, path, bound, place, scope)
        whole, facts = one_by_one(round, begin, rounds, part, whole, facts)
    scope.loops -= 1
    walk.facts += facts
    scope.names.missed |= missed_before | missed
    return result, whole, ending


def _all_same(
    values: Mapping[str, AbstractValue],
    carried: Mapping[str, AbstractValue],
    before: Mapping[str, AbstractValue | None],
    missed: set[str],
) -> bool:
    """Tell whether the stores that a round writes are the same at its beginning and at its end, or new in each.

    A store is not new if a round reads it before it writes it: the value is that of the round before.
    """
    for name, value in values.items():
        earlier = carried.get(name) or before.get(name)
        if earlier is None and (name in missed or "*" in missed):
            return False
        if earlier is not None and not same(value, earlier):
            return False
    return True


_MOST_ROUNDS = 12
"""Rounds that are walked one by one; those after them cost as much as any."""
_MOST_FACTS = 500
"""Facts of a round that is walked again."""


class Round(Struct, frozen=True):
    """The part of a document that a loop repeats."""

    walk: Walk
    each: StepWalk
    do: Step
    path: str
    bound: Mapping[str, AbstractValue]
    place: Place
    scope: Scope

    def after(
        self, accumulated: AbstractValue, carried: Mapping[str, AbstractValue]
    ) -> tuple[AbstractValue, Mapping[str, AbstractValue], Cost, list[Fact]]:
        """Return the value, the stores, the cost and the facts of a round that begins with these. Nothing is noted."""
        walk, scope, cost = self.walk, self.scope, Cost()
        before, noted, missed, ended = walk.facts, walk.noted, set(scope.names.missed), scope.ended
        walk.facts = []
        saved = scope.enter(bound={**self.bound, "acc": accumulated}, fan=self.place)
        for name, value in carried.items():
            scope.keep(name, value)
        self.each(walk, self.do, self.path, scope, cost)
        result = scope.names.pipe
        arm = scope.leave(saved)
        facts, walk.facts, walk.noted, scope.ended = walk.facts, before, noted, ended
        scope.names.missed.clear()
        scope.names.missed.update(missed)
        return result, {name: value for name, (value, _) in arm.stores.items()}, cost, facts


def may_shrink(walk: Walk, scope: Scope, rounds: Amount, facts: Sequence[Fact]) -> bool:
    """Tell whether the rounds of a loop may differ in cost, and are few enough to look at each: a fan is in it, and no
    other loop is around it."""
    return (
        scope.loops == 1
        and (rounds.as_number or 0) > 1
        and len(facts) <= _MOST_FACTS
        and not walk.is_long
        and any(isinstance(fact, FanFact) for fact in facts)
    )


def one_by_one(
    round: Round, begin: AbstractValue, rounds: Amount, any_round: Cost, whole: Cost, facts: list[Fact]
) -> tuple[Cost, list[Fact]]:
    """Return the cost and the facts of a loop, lower than `whole` and `facts` where its rounds tell.

    The first round begins with `begin`, and each later one with a value that the walk of the round before it covers;
    so the walks of all rounds together cover every run of the loop. A round that begins like the one before it costs
    the same, and so do all after it; rounds that are not walked cost as much as `any_round`.
    """
    from quire.analysis.walk import signature

    together, value, walked = Cost(), begin, []
    carried: Mapping[str, AbstractValue] = {}
    left, before = rounds.as_number or 0, None
    for _ in range(min(left, _MOST_ROUNDS)):
        key = signature(value), {name: signature(store) for name, store in carried.items()}
        often = left if key == before else 1
        value, carried, cost, noted = round.after(value, carried)
        together.add(cost.times(number(often), 0))
        walked.append((often, noted))
        left, before = left - often, key
        if not left:
            break
    if left:
        together.add(any_round.times(number(left), 0))
        return lower(whole, together), facts
    return lower(whole, together), _happening(facts, walked)


def _happening(facts: list[Fact], rounds: Sequence[tuple[int, Sequence[Fact]]]) -> list[Fact]:
    """Return the facts of a loop with how often each happens in all rounds. They stay as they are if the rounds have
    others."""
    if any(list(map(_where, noted)) != list(map(_where, facts)) for _, noted in rounds):
        return facts
    changed = list(facts)
    for at, fact in enumerate(facts):
        if isinstance(fact, EffectFact | ModelFact):
            often = total(
                same.often.times(number(times))
                for times, noted in rounds
                if isinstance(same := noted[at], EffectFact | ModelFact)
            )
            changed[at] = replace(fact, often=often)
    return changed


def _where(fact: Fact) -> tuple[type, str, str]:
    return type(fact), fact.place.way, fact.place.path


_KEPT_PARTS = 3
"""Levels of parts that are followed from round to round."""
_MOST_ITEMS, _LONGEST_JOINED = number(MOST_ITEMS_OF_A_VALUE), number(LONGEST_VALUE * 4)


def grown(before: AbstractValue, after: AbstractValue, depth: int = 0) -> AbstractValue:
    """Return a value after any number of rounds of a loop that makes `after` from `before`, with the parts of both.

    A size that has become larger may continue growing, up to the longest value that an expression makes. Labels are
    only joined: they have few levels, so that more rounds find the worst of them.
    """
    joint = either_of(before, after)
    fields, element = NO_PARTS, None
    if depth < _KEPT_PARTS:
        if joint.fields:
            fields = {name: grown(before.fields[name], after.fields[name], depth + 1) for name in joint.fields}
        mine, theirs = before.element, after.element
        element = joint.element if mine is None or theirs is None else grown(mine, theirs, depth + 1)
    if not depends_alike(before, after):
        joint = joint.unanswered()
    return replace(
        joint,
        items=joint.items if joint.items == before.items else _MOST_ITEMS,
        length=joint.length if joint.length == before.length else _LONGEST_JOINED,
        fields=fields,
        element=element,
        is_constant=False,
        constant=None,
        name="",
        largest=before.largest if joint.largest == before.largest else None,
    )


def same(value: AbstractValue, other: AbstractValue) -> bool:
    """Tell whether as much is known about one value, and about its parts, as about the other."""
    if value is other:
        return True
    mine, theirs = value.element, other.element
    return (
        value.label.levels == other.label.levels
        and _SIZES_OF(value) == _SIZES_OF(other)
        and depends_alike(value, other)
        and (mine is theirs or (mine is not None and theirs is not None and same(mine, theirs)))
        and value.fields.keys() == other.fields.keys()
        and all(same(part, other.fields[name]) for name, part in value.fields.items())
    )


_SIZES_OF = attrgetter("length", "items", "largest", "type", "is_constant", "is_word")


def of_any_size(label: Label) -> AbstractValue:
    """Return a value of which only the label is known."""
    return AbstractValue(None, _MOST_ITEMS, _LONGEST_JOINED, label)
