"""Compute how often a document can call a model, call a tool, ask a person and start threads: at least and at most.

The minimum holds for runs that complete; the maximum holds for every run, not counting resumes. Retries inside one call
(while a provider has trouble) count as one call. The limits of the workspace are not considered here: they make a run
fail.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import reduce
from typing import TYPE_CHECKING, TypeAlias, assert_never

from msgspec import Struct, field
from msgspec.structs import replace

from quire.patterns import late_pattern
from quire.plan.nodes import (
    Match,
    Plan,
    Sequence,
    Step,
    Think,
    UseTool,
    Work,
    may_stop,
)
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
    Literal,
    OnError,
    Parallel,
    Repeat,
    Select,
    Stop,
    Transform,
)
from quire.plan.thread import Thread
from quire.plan.uses import OWN, OWN_TOOLS

if TYPE_CHECKING:
    from quire.values import Value

ToolsOf: TypeAlias = Callable[[Agent], Collection[str] | None]
"""Returns the tools that an agent may use, by name or pattern; None if that is not known."""


class Range(Struct, frozen=True):
    """A minimum and a maximum."""

    least: int = 0
    most: int | None = 0
    """None if there is no known maximum."""

    def __str__(self) -> str:
        most = "∞" if self.most is None else f"{self.most:,}"
        return most if self.least == self.most else f"{self.least:,} to {most}"

    def plus(self, other: Range) -> Range:
        most = None if self.most is None or other.most is None else self.most + other.most
        return Range(self.least + other.least, most)

    def times(self, often: Range) -> Range:
        if self.most == 0 or often.most == 0:
            return Range()
        most = None if self.most is None or often.most is None else self.most * often.most
        return Range(self.least * often.least, most)

    def either(self, other: Range) -> Range:
        most = None if self.most is None or other.most is None else max(self.most, other.most)
        return Range(min(self.least, other.least), most)


_NONE, _ONCE, _ANY = Range(), Range(1, 1), Range(0, None)


class PlanBounds(Struct, frozen=True):
    """Minimum and maximum of everything that is counted."""

    model_calls: Range = _NONE
    tool_calls: Range = _NONE
    questions: Range = _NONE
    threads: Range = _NONE
    unknown: tuple[str, ...] = ()
    """Documents that are called but were not found. They can do anything."""

    def plus(self, other: PlanBounds) -> PlanBounds:
        return _together([self, other], Range.plus)

    def either(self, other: PlanBounds) -> PlanBounds:
        return _together([self, other], Range.either)

    def times(self, often: Range) -> PlanBounds:
        counts = {one: getattr(self, one).times(often) for one in COUNTED}
        return PlanBounds(**counts, unknown=self.unknown)


def _together(parts: list[PlanBounds], combine: Callable[[Range, Range], Range]) -> PlanBounds:
    """Combine all parts at once. Combining them pairwise would copy the list of unknown documents for every part."""
    if len(parts) == 1:
        return parts[0]
    counts = {one: reduce(combine, [getattr(part, one) for part in parts]) for one in COUNTED}
    return PlanBounds(**counts, unknown=tuple(dict.fromkeys(name for part in parts for name in part.unknown)))


COUNTED = tuple(name for name in PlanBounds.__struct_fields__ if name != "unknown")


class Allowance(Struct, frozen=True):
    """Limits that the engine sets for one step."""

    turns: int = 25
    """Turns with tools of an agent."""
    repairs: int = 2
    """Corrections of a reply that does not match the schema of an agent."""
    thread_turns: int = 25
    """Turns of a directive that sets no limit."""
    thread_spawns: int = 50
    """Child threads of a directive that sets no limit."""


USUAL = Allowance()

MAX_NESTED_CALLS = 100
"""How many levels of nested calls are followed. A run does not go deeper."""


def bounds(
    plan: Plan,
    documents: Mapping[str, Plan] | None = None,
    tools_of: ToolsOf = lambda agent: agent.tools,
    allowance: Allowance = USUAL,
) -> PlanBounds:
    """Compute the bounds of a plan. `documents` maps names to callees."""
    return _Counting(documents or {}, tools_of, allowance, plan).sequence(plan.body)


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
    """Return a pipeline in which the lists that come straight from its inputs stand in their place, so that the bounds
    are those of a run with these inputs. Other plans stay as they are."""
    if plan.format != "pipeline":
        return plan
    known: dict[str, object] = dict(inputs)
    steps = []
    for step in plan.body.steps:
        work = step.work
        if isinstance(work, Fold | ForEach) and isinstance(work.source, Formula):
            items = _known(work.source, known)
            if isinstance(items, list | tuple):
                step = replace(step, work=replace(work, source=Literal(items)))
        steps.append(step)
        if step.capture:
            known[step.capture.name] = _known(work.value, known) if isinstance(work, Transform) else _UNKNOWN
    return replace(plan, body=Sequence(tuple(steps)))


def _known(formula: Formula, values: Mapping[str, object]) -> object:
    """Return the value that a path such as `ctx.tickets` stands for; `_UNKNOWN` for any other expression."""
    path = _PATH.fullmatch(formula.text.strip())
    found: object = values
    for name in path[1].split(".") if path else ():
        found = found.get(name, _UNKNOWN) if isinstance(found, Mapping) else _UNKNOWN
    return found if path else _UNKNOWN


class _Counting(Struct):
    documents: Mapping[str, Plan]
    tools_of: ToolsOf
    allowance: Allowance
    plan: Plan
    """The document whose steps are being counted."""
    done: dict[str, PlanBounds] = field(default_factory=dict)
    way: list[str] = field(default_factory=list)

    def sequence(self, sequence: Sequence) -> PlanBounds:
        """Count the steps of a document or a block. Those after one that may end the pipeline may not run at all."""
        parts, stopped = [], False
        for step in sequence.steps:
            counted = self._step(step)
            parts.append(counted.either(PlanBounds()) if stopped else counted)
            stopped = stopped or may_stop(step)
        return _sum(parts)

    def _step(self, step: Step) -> PlanBounds:
        """Count a step. The question comes first; if no case of the branch matches, the rest may be skipped."""
        asked = PlanBounds(questions=_ONCE) if step.ask else PlanBounds()
        own = self._work(step.work) if step.work is not None else PlanBounds()
        if step.guard is not None:
            own = _guarded(own, step.guard)
        if step.match is None:
            return asked.plus(own)
        arms, open_end = self._arms(step.match)
        if step.match.decide_first:
            rest = own.plus(arms)
            return asked.plus(rest.either(PlanBounds()) if open_end else rest)
        return asked.plus(own).plus(arms.either(PlanBounds()) if open_end else arms)

    def _arms(self, match: Match) -> tuple[PlanBounds, bool]:
        """Return the bounds of one arm, and whether it is possible that no arm matches."""
        found = _any([self.sequence(case.body) for case in match.cases])
        return found, all(case.test for case in match.cases)

    def _work(self, work: Work) -> PlanBounds:
        match work:
            case Think(prompt=prompt, cast=cast):
                # A prompt that is empty after filling in is not sent.
                is_text = any(isinstance(part, str) and part.strip() for part in prompt.parts)
                if cast is not None and cast.tools:
                    return PlanBounds(model_calls=Range(int(is_text), self.allowance.turns + 1), tool_calls=_ANY)
                return PlanBounds(model_calls=Range(int(is_text), 1))
            case UseTool(connection=place, tool=tool):
                if place == OWN and tool in self.documents:
                    return self._call(Call(tool))
                return PlanBounds(tool_calls=_ONCE)
            case Transform():
                return PlanBounds()
            case Invoke(tool=tool):
                return PlanBounds(questions=_ONCE) if tool in OWN_TOOLS else PlanBounds(tool_calls=_ONCE)
            case Agent():
                return self._agent(work)
            case Call():
                return self._call(work)
            case Select(default=default):
                arms = [self._call(one) if isinstance(one, Call) else self._work(one) for one in work.targets()]
                return _any([*arms, *([PlanBounds()] if isinstance(default, Formula) else [])])
            case Block(body=body):
                return self.sequence(body)
            case Repeat(do=do, max=most):
                return self._step(do).times(Range(1, most))
            case Fail() | Stop():
                return PlanBounds()
            case Fold(source=source, do=do, max_items=most):
                return self._step(do).times(_items(source, self._most(source, most), cut=True))
            case ForEach(source=source, do=do, collect=collect, on_error=on_error, max_items=most):
                one = _tried(self._step(do), on_error)
                return one.times(_items(source, self._most(source, most), cut=False)).plus(self._step(collect))
            case Parallel(branches=branches, collect=collect, on_error=on_error):
                tried = (_tried(self._step(branch), on_error) for _, branch in branches)
                return _sum(tried).plus(self._step(collect))
            case Thread(limits=limits):
                turns, spawns = limits.get("turns"), limits.get("spawns")
                return PlanBounds(
                    model_calls=Range(1, turns if isinstance(turns, int) else self.allowance.thread_turns),
                    tool_calls=_ANY,
                    questions=_ANY,
                    threads=Range(0, spawns if isinstance(spawns, int) else self.allowance.thread_spawns),
                )
            case _:
                assert_never(work)

    def _agent(self, work: Agent) -> PlanBounds:
        repairs = self.allowance.repairs if work.schema else 0
        tools = self.tools_of(work)
        if tools is not None and not tools:
            return PlanBounds(model_calls=Range(1, 1 + repairs))
        asks = tools is None or any(one in OWN_TOOLS or "*" in one for one in tools)
        only_asks = tools is not None and all(one in OWN_TOOLS for one in tools)
        return PlanBounds(
            model_calls=Range(1, self.allowance.turns + 1 + repairs),
            tool_calls=_NONE if only_asks else _ANY,
            questions=_ANY if asks else _NONE,
        )

    def _call(self, call: Call) -> PlanBounds:
        """Count a callee once, however many steps call it. Loading refuses documents that call themselves."""
        name = call.document
        plan = self.documents.get(name)
        if plan is None or name in self.way or len(self.way) == MAX_NESTED_CALLS:
            return PlanBounds(_ANY, _ANY, _ANY, _ANY, (name,))
        if name not in self.done:
            self.way.append(name)
            caller, self.plan = self.plan, plan
            self.done[name] = self.sequence(plan.body)
            self.plan = caller
            self.way.pop()
        return self.done[name]

    def _most(self, source: object, most: int | None) -> int | None:
        """Return the most items: the limit of the step, or that of a declared input, whichever is lower."""
        declared = _longest_list(source, self.plan) if isinstance(source, Formula) else None
        if declared is None or most is None:
            return most if declared is None else declared
        return min(declared, most)


def _longest_list(source: Formula, plan: Plan) -> int | None:
    """Return how many items a list can have that a path such as `ctx.tickets` finds in the declared inputs; None if
    that is not known. A step that writes a store of the name may write any list."""
    from quire.schema import ListOf, Object, Ref

    path = _PATH.fullmatch(source.text.strip()) if plan.declared else None
    if path is None:
        return None
    name, *rest = path[1].split(".")
    if name in plan.written:
        return None
    found = next((one.type for one in plan.declared or () if one.name == name), None)
    for segment in rest:
        schema = plan.schemas.get(found.schema) if isinstance(found, Ref) else None
        fields = schema.fields if schema else found.fields if isinstance(found, Object) else ()
        found = next((one.type for one in fields if one.name == segment), None)
    return found.max_items if isinstance(found, ListOf) else None


def _tried(once: PlanBounds, on_error: OnError) -> PlanBounds:
    """Count work under an error policy. If its failure is survived, it may fail before it does anything."""
    return once.times(Range(0 if on_error.goes_on else 1, on_error.times + 1))


def _guarded(once: PlanBounds, guard: Guard) -> PlanBounds:
    """Count the work of a step that may be skipped, or tried again."""
    tried = _tried(once, guard.on_error) if guard.on_error is not None else once
    return tried.either(PlanBounds()) if guard.when is not None else tried


def _items(source: object, most: int | None, *, cut: bool) -> Range:
    """Return the number of items. A list longer than `most` is cut if `cut` is true, otherwise the step fails."""
    if isinstance(source, Literal) and isinstance(source.value, list | tuple):
        count = len(source.value)
        return Range(min(count, most), min(count, most)) if cut and most is not None else Range(count, count)
    return Range(0, most)


def _sum(parts: Iterable[PlanBounds]) -> PlanBounds:
    return _together([PlanBounds(), *parts], Range.plus)


def _any(parts: list[PlanBounds]) -> PlanBounds:
    return _together(parts, Range.either) if parts else PlanBounds()
