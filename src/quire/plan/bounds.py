"""Count the fewest model calls of a document, and hold how often it does things at least and at most.

The fewest hold for runs that complete. The most are proven by `quire.analysis`, which knows the sizes of values; a
start needs only the fewest, to refuse a run that is certain to pass its cap.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, assert_never

from msgspec import Struct, field
from msgspec.structs import replace

from quire.patterns import late_pattern
from quire.plan.nodes import Plan, Sequence, Step, Think, UseTool, Work, may_stop, walk
from quire.plan.pipeline_work import (
    Agent,
    Block,
    Call,
    Fail,
    Fold,
    ForEach,
    Formula,
    Invoke,
    Literal,
    Parallel,
    Repeat,
    Select,
    Stop,
    Transform,
    listed_items,
)
from quire.plan.thread import Thread
from quire.plan.uses import OWN

if TYPE_CHECKING:
    from quire.values import Value


class Range(Struct, frozen=True):
    """A minimum and a maximum."""

    least: int = 0
    most: int | None = 0
    """None if there is no known maximum."""
    formula: str = ""
    """The maximum in sizes of inputs, where no number is known: `6·|readers| + 30`."""

    def __str__(self) -> str:
        most = self.formula or "∞" if self.most is None else f"{self.most:,}"
        return most if self.least == self.most else f"{self.least:,} to {most}"


class PlanBounds(Struct, frozen=True):
    """Minimum and maximum of everything that is counted."""

    model_calls: Range = Range()
    tool_calls: Range = Range()
    questions: Range = Range()
    threads: Range = Range()
    unknown: tuple[str, ...] = ()
    """Documents that are called but were not found. They can do anything."""


COUNTED = tuple(name for name in PlanBounds.__struct_fields__ if name != "unknown")

MAX_NESTED_CALLS = 100
"""How many levels of nested calls are followed. A run does not go deeper."""


def least_model_calls(
    plan: Plan, documents: Mapping[str, Plan] | None = None, inputs: Mapping[str, Value] | None = None
) -> int:
    """Return the fewest model calls of a run that completes. `documents` maps names to called documents; with `inputs`,
    lists that come straight from them have as many items as are given."""
    return _Counting(documents or {}).sequence((with_inputs(plan, inputs) if inputs else plan).body)


def rest_of(sequence: Sequence, path: str) -> Sequence:
    """Return the steps that follow in a run from the step at a path on: of the steps around it, only its own arm."""
    first, inside, inner = path.partition("/case[")
    at = next(at for at, step in enumerate(sequence.steps) if str(step.position) == first)
    match = sequence.steps[at].match
    if not inside or match is None:
        return Sequence(sequence.steps[at:])
    number, _, rest = inner.partition("]/")
    arm = match.cases[int(number) - 1].body
    return Sequence((*rest_of(arm, rest).steps, *sequence.steps[at + 1 :]))


_PATH = late_pattern(r"(?:ctx\.)?([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)", re.ASCII)
_UNKNOWN = object()


def with_inputs(plan: Plan, inputs: Mapping[str, Value]) -> Plan:
    """Return a pipeline in which the lists that come straight from its inputs stand in their place. Other plans stay as
    they are."""
    if plan.format != "pipeline":
        return plan
    values: dict[str, object] = dict(inputs)
    steps = []
    for step in plan.body.steps:
        work = step.work
        if isinstance(work, Fold | ForEach) and isinstance(work.source, Formula):
            items = _known(work.source, values)
            if isinstance(items, list | tuple):
                step = replace(step, work=replace(work, source=Literal(items)))
        steps.append(step)
        # A step with a guard may leave the name as it was, and a part of a step may write any name.
        copied = _known(work.value, values) if isinstance(work, Transform) and step.guard is None else _UNKNOWN
        values |= dict.fromkeys(_written(step), _UNKNOWN)
        if step.capture:
            values[step.capture.name] = copied
    return replace(plan, body=Sequence(tuple(steps)))


def _written(step: Step) -> list[str]:
    """Return the names that the parts of a step write, at any depth."""
    steps = [inner for _, part in (step.work.parts() if step.work else ()) for _, inner in walk(Sequence((part,)))]
    return [inner.capture.name for inner in steps if inner.capture]


def _known(formula: Formula, values: Mapping[str, object]) -> object:
    """Return the value that a path such as `ctx.tickets` stands for; `_UNKNOWN` for any other expression."""
    path = _PATH.fullmatch(formula.text.strip())
    value: object = values if path else _UNKNOWN
    for name in path[1].split(".") if path else ():
        value = value.get(name, _UNKNOWN) if isinstance(value, Mapping) else _UNKNOWN
    return value


class _Counting(Struct):
    documents: Mapping[str, Plan]
    done: dict[str, int] = field(default_factory=dict)
    way: list[str] = field(default_factory=list)

    def sequence(self, sequence: Sequence) -> int:
        """Count the steps of a document or a block. Those after one that may end the pipeline may not run at all."""
        count = 0
        for step in sequence.steps:
            count += self._step(step)
            if may_stop(step):
                break
        return count

    def _step(self, step: Step) -> int:
        """Count a step that may be skipped, or whose failure is survived, as nothing. A branch that no case of matches
        skips the work of its step too, if it decides first."""
        guard = step.guard
        may_do_nothing = guard is not None and (guard.when is not None or guard.goes_on)
        own = self._work(step.work) if step.work is not None and not may_do_nothing else 0
        if step.match is None:
            return own
        cases = step.match.cases
        if all(case.test for case in cases):
            return 0 if step.match.decide_first else own
        return own + min(self.sequence(case.body) for case in cases)

    def _work(self, work: Work) -> int:
        match work:
            case Think(prompt=prompt):
                # A prompt that is empty after filling in is not sent.
                return int(any(isinstance(part, str) and part.strip() for part in prompt.parts))
            case UseTool(connection=place, tool=tool):
                return self._call(tool) if place == OWN and tool in self.documents else 0
            case Agent() | Thread():
                return 1
            case Call(document=document):
                return self._call(document)
            case Select(default=default):
                arms = [self._work(target) for target in work.targets()]
                return 0 if isinstance(default, Formula) else min(arms, default=0)
            case Block(body=body):
                return self.sequence(body)
            case Repeat(do=do):
                return self._step(do)
            case Transform() | Invoke() | Fail() | Stop():
                return 0
            case Fold(source=source, do=do, max_items=most):
                items = listed_items(source)
                return self._step(do) * (items if most is None else min(items, most))
            case ForEach(source=source, do=do, collect=collect, on_error=on_error):
                each = 0 if on_error.goes_on else self._step(do)
                return each * listed_items(source) + self._step(collect)
            case Parallel(branches=branches, collect=collect, on_error=on_error):
                tried = 0 if on_error.goes_on else sum(self._step(branch) for _, branch in branches)
                return tried + self._step(collect)
            case _:
                assert_never(work)

    def _call(self, name: str) -> int:
        """Count a called document once, however many steps call it. One that is not found may do nothing."""
        plan = self.documents.get(name)
        if plan is None or name in self.way or len(self.way) == MAX_NESTED_CALLS:
            return 0
        if name not in self.done:
            self.way.append(name)
            self.done[name] = self.sequence(plan.body)
            self.way.pop()
        return self.done[name]
