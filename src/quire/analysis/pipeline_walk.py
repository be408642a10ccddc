"""Walk over a pipeline: steps with guards, fans, loops, choices and blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, assert_never

from msgspec import UNSET
from msgspec.structs import replace

from quire.analysis.abstract_values import NULL, AbstractValue, either, is_narrow, literal, may_be_null, sized
from quire.analysis.amounts import number
from quire.analysis.costs import SPAN, Cost
from quire.analysis.costs import either as either_cost
from quire.analysis.expressions import computed
from quire.analysis.facts import MOST_AROUND, ChoiceFact, Condition, Place, StoreFact
from quire.analysis.labels import chosen_by
from quire.analysis.model_costs import tried
from quire.analysis.pipeline_calls import agent, condition_of, invoke, read_versions, value_of
from quire.analysis.pipeline_loops import fold, for_each, parallel, repeat
from quire.analysis.scope import Perhaps, known
from quire.analysis.walk import Walk, sequence
from quire.plan.nodes import Capture, Sequence, Step, Think, UseTool
from quire.plan.pipeline_work import (
    Agent,
    Block,
    Call,
    Fail,
    Fold,
    ForEach,
    Formula,
    Guard,
    Invoke,
    Parallel,
    Repeat,
    Select,
    Stop,
    Transform,
)
from quire.plan.thread import Thread

if TYPE_CHECKING:
    from quire.analysis.scope import Scope
    from quire.schema_types import Field


def walk_pipeline(walk: Walk, scope: Scope, cost: Cost) -> AbstractValue:
    """Walk over the steps of a pipeline, and return its result."""
    plan, stores = scope.plan, scope.names.stores
    for field in plan.declared or ():
        value = _declared_input(field, stores.get(field.name))
        if value is not None:
            stores[field.name] = value
    sequence(walk, plan.body, "", scope, cost, _step)
    return scope.names.pipe if scope.ended is None else either([scope.names.pipe, scope.ended])


def _declared_input(declared: Field, passed: AbstractValue | None) -> AbstractValue | None:
    """Return the value that an input has for the steps. Its default also takes the place of a null; a value that does
    not fit is refused, so the type is enforced."""
    value = passed
    if declared.default is not UNSET:
        default = literal(declared.default)
        if passed is None or (passed.is_constant and passed.constant is None):
            value = default
        elif may_be_null(passed):
            value = either([passed, default])
    if passed is None or value is None or not is_narrow(declared.type):
        return value
    return replace(value, type=declared.type, label=value.label.narrowed())


def _step(walk: Walk, step: Step, path: str, scope: Scope, cost: Cost) -> None:
    """Walk over one step: its guard, its work, and the store that gets its value."""
    walk.steps += 1
    place = Place(step, path, scope.way + step.label, scope.document, scope.plan.format)
    if step.guard is not None:
        _guarded(walk, step, step.guard, place, scope, cost)
        return
    work = step.work
    plain = _PLAIN.get(work.__class__)
    value = plain(walk, work, place, scope, cost) if plain else _work(walk, step, place, scope, cost)
    if step.capture is not None:
        _keep(walk, step.capture, place, value, scope)
    scope.names.last = value


def _guarded(walk: Walk, step: Step, guard: Guard, place: Place, scope: Scope, cost: Cost) -> None:
    condition = condition_of(guard.when, place, scope) if guard.when is not None else None
    if condition is not None:
        walk.facts.append(ChoiceFact(place, condition, scope.conditions[-MOST_AROUND:]))
        if guard.on_error is None and guard.default is None and guard.timeout is None and type(step.work) in _PLAIN:
            _if_it_holds(walk, step, condition, place, scope, cost)
            return
    # If the step fails and the run continues, the stores that its work has written are as they were before.
    is_undone = guard.goes_on
    instead = value_of(guard.default, scope) if guard.default else NULL
    saved = scope.enter(condition) if condition or is_undone else None
    part, often = Cost(), scope.often
    before = scope.names.failures.begin()
    if guard.on_error is not None:
        scope.often = often.times(number(1 + guard.on_error.times))
    value = _work(walk, step, place, scope, part)
    scope.often = often
    if guard.on_error is not None:
        part = tried(part, guard.on_error.times, survives=guard.on_error.goes_on)
    if guard.timeout is not None:
        part = _timed(part, guard.timeout, guard.on_error.times + 1 if guard.on_error else 1)
    if is_undone:
        value = either([value, instead])
        _note_failure(step, scope)
    scope.names.failures.end(before)
    if condition is None or saved is None:
        if saved is not None:
            scope.merge_optional(scope.leave(saved), value.label)
        if step.capture is not None:
            _keep(walk, step.capture, place, value, scope)
        cost.add(part)
        scope.names.last = value
        return
    if step.capture is not None and guard.default is None:
        _keep(walk, step.capture, place, value, scope)
    if not part.is_nothing:
        cost.add(part.may_be_left_out())
    # A question that perhaps was not asked is not a gate: `leave` forgets it. Its answer can still be read.
    scope.merge_optional(scope.leave(saved), condition.label)
    if guard.default is not None:
        value = known(Perhaps(value, instead, condition.label))
        if step.capture is not None:
            _keep(walk, step.capture, place, value, scope)
    scope.names.last = Perhaps(value, scope.names.last, condition.label)
    if _always_ends(step):
        scope.conditions = (*scope.conditions, replace(condition, holds=False))


def _if_it_holds(walk: Walk, step: Step, condition: Condition, place: Place, scope: Scope, cost: Cost) -> None:
    """Walk over a step under a condition. Its work leaves no stores behind, so nothing has to be taken back after it
    but what holds and what was asked."""
    names, work = scope.names, step.work
    conditions, facts = scope.conditions, scope.asked
    scope.conditions = (*conditions, condition)
    # An expression costs nothing.
    part = cost if work.__class__ is Transform else Cost()
    before = names.failures.begin()
    value = _PLAIN[work.__class__](walk, work, place, scope, part)
    names.failures.end(before)
    scope.conditions, scope.asked = conditions, facts
    if part is not cost:
        cost.add(part.may_be_left_out())
    if step.capture is not None:
        name = step.capture.name
        stored = value.through(name, step.span, scope.document)
        walk.facts.append(StoreFact(place, name, scope.keep_optional(name, stored, condition.label), stored))
    names.last = Perhaps(value, names.last, condition.label)


def _note_failure(step: Step, scope: Scope) -> None:
    """Remember that `errors` may have the failure of a step, with a message of any failure in it."""
    if step.capture is not None:
        failure = sized(None, number(1_000_000), scope.names.failures.label)
        before = scope.names.stores.get("errors")
        scope.keep("errors", failure if before is None else either([before, failure]))


def _keep(walk: Walk, capture: Capture, place: Place, value: AbstractValue, scope: Scope) -> None:
    name = capture.name
    stored = value.through(name, place.step.span, scope.document)
    walk.facts.append(StoreFact(place, name, scope.keep(name, stored), stored))


_ENDING = frozenset((Stop, Fail, Block))


def _always_ends(step: Step) -> bool:
    """Tell whether no later step of the pipeline runs after this one."""
    if type(step.work) not in _ENDING or (step.guard is not None and step.guard.goes_on):
        return False
    match step.work:
        case Stop() | Fail():
            return True
        case Block(body=body):
            plain = (inner for inner in body.steps if inner.guard is None or inner.guard.when is None)
            return any(map(_always_ends, plain))
    return False


def _timed(cost: Cost, seconds: float, tries: int) -> Cost:
    """Return a cost whose time a time-out bounds, in each try."""
    timed = Cost()
    timed.add(cost)
    limit = round(seconds * 1000) * tries
    longest = timed.amount(SPAN).at_most(limit)
    timed.drop(SPAN)
    # Of a formula and a limit the limit is a bound for every size.
    timed.spend(SPAN, longest if longest.as_number is not None else number(limit))
    return timed


def _work(walk: Walk, step: Step, place: Place, scope: Scope, cost: Cost) -> AbstractValue:
    work = step.work
    match work:
        case Transform() | Invoke() | Agent() | ForEach():
            return _PLAIN[work.__class__](walk, work, place, scope, cost)
        case Call():
            return _call(walk, work, step, scope, cost)
        case Select():
            return _select(walk, work, place, scope, cost)
        case Block(body=body):
            return _block(walk, body, f"{place.path}/steps/", scope, cost)
        case Fold():
            return fold(walk, _step, work, place, scope, cost)
        case Parallel():
            return parallel(walk, _step, work, place, scope, cost)
        case Repeat():
            return repeat(walk, _step, work, place, scope, cost)
        case Fail(message=message):
            scope.names.failures.add(value_of(message, scope).label)
            return NULL
        case Stop(value=stopped):
            last = computed(stopped.compiled, scope.names) if stopped else scope.names.pipe
            scope.ended = last if scope.ended is None else either([scope.ended, last])
            return last
        case None | Think() | UseTool() | Thread():
            return scope.names.pipe
        case _:
            assert_never(work)


_PLAIN: Mapping[type, Callable[[Walk, Any, Place, Scope, Cost], AbstractValue]] = {
    Transform: lambda walk, work, place, scope, cost: computed(work.value.compiled, scope.names),
    Invoke: invoke,
    Agent: agent,
    ForEach: lambda walk, work, place, scope, cost: for_each(walk, _step, work, place, scope, cost),
}
"""Work that most steps do, and that leaves no stores behind. A chain of tests would ask each step for its kind."""


def _block(walk: Walk, body: Sequence, prefix: str, scope: Scope, cost: Cost) -> AbstractValue:
    sequence(walk, body, prefix, scope, cost, _step)
    return scope.names.pipe


def _call(walk: Walk, work: Call, step: Step, scope: Scope, cost: Cost) -> AbstractValue:
    inputs = {name: value_of(value, scope) for name, value in work.passes}
    return walk.call(work.document, inputs, step, scope, cost)


def _select(walk: Walk, work: Select, place: Place, scope: Scope, cost: Cost) -> AbstractValue:
    on = computed(work.on.compiled, scope.names)
    reads = {read.name: scope.names.path(read.path) for read in work.on.compiled.reads()}
    labels = tuple(label for label, _ in work.cases)
    if work.default is None:
        # The failure quotes a value that no case has.
        scope.names.failures.add(on.label)
    versions = tuple(read_versions(work.on, scope))
    targets: list[tuple[str | None, Call | Block | Formula]] = [*work.cases]
    if work.default is not None:
        targets.append((None, work.default))
    costs, values, arms = [], [], []
    for number_, (label, target) in enumerate(targets, 1):
        condition = Condition(
            place, label, True, reads, on.label, on, work.on.span, () if label is not None else labels, versions
        )
        if number_ == 1:
            walk.note(ChoiceFact(place, condition, scope.conditions[-MOST_AROUND:]))
        saved, part = scope.enter(condition), Cost()
        match target:
            case Call():
                values.append(_call(walk, target, place.step, scope, part))
            case Block(body=body):
                values.append(_block(walk, body, f"{place.path}/match[{number_}]/", scope, part))
            case Formula():
                values.append(value_of(target, scope))
        costs.append(part)
        arms.append(scope.leave(saved))
    if not arms:
        return NULL
    cost.add(either_cost(costs))
    scope.merge(arms, on.label)
    value = either(values)
    return value.labelled(chosen_by(value.label, on.label))
