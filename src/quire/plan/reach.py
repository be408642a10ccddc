"""List the steps of a document and of its called documents, tell which of them every completed run performs, and find
the limits that a plan is certain to break: too many model calls or items, fan-outs or calls nested too deep."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, assert_never

from msgspec import Struct
from msgspec.structs import replace

from quire.plan.nodes import Plan, Sequence, Step, Think, UseTool, may_stop, remembered
from quire.plan.pipeline_work import (
    Agent,
    Block,
    Call,
    Fail,
    Fold,
    ForEach,
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
from quire.plan.vocabulary import JOINT, MAX_ITEMS, MAX_LEVELS, short_way

if TYPE_CHECKING:
    from quire.values import Value


MAX_FOLLOWED_CALLS = 110
"""How many levels of nested calls are followed: a few more than a run may make, so that the first excess is found."""


class Reached(Struct, frozen=True):
    """A step and how it is reached."""

    step: Step
    name: str
    """The name for people: the label, for a step of a called document with the way to it in front."""
    certain: bool
    """True if every run that completes performs the step, so that its failure fails the run."""
    format: str
    document: str = ""
    """The name of the called document that contains the step; empty for a step of the document itself."""
    fans: int = 0
    """Number of fan-outs around the step."""
    levels: int = 0
    """Number of parts of its path before the last one."""

    @property
    def place(self) -> str:
        """The name for messages, possibly shortened."""
        return short_way(self.name)


class _Place(Struct, frozen=True):
    """The position of a sequence of steps: its document, and how it is reached."""

    plan: Plan
    name: str = ""
    way: str = ""
    """The steps that lead to it, each followed by the joint."""
    fans: int = 0
    levels: int = 0
    certain: bool = True

    def below(self, levels: int, *, fans: int = 0, certain: bool) -> _Place:
        return replace(self, fans=self.fans + fans, levels=self.levels + levels, certain=certain)


def reach(plan: Plan, documents: Mapping[str, Plan]) -> Iterator[Reached]:
    """Yield every step once for each way to it. Steps of called documents are repeated only on deeper ways."""
    return _Walk(documents).sequence(plan.body, _Place(plan))


def reached_steps(plan: Plan, documents: Mapping[str, Plan]) -> list[Reached]:
    """Return all of `reach`."""
    return list(reach(plan, documents)) if documents else list(_own_steps(plan))


@remembered
def _own_steps(plan: Plan) -> tuple[Reached, ...]:
    return tuple(reach(plan, {}))


class _Walk:
    def __init__(self, documents: Mapping[str, Plan]) -> None:
        self._documents = documents
        self._deepest: dict[tuple[str, bool], tuple[int, int]] = {}
        """The most fans and levels at which each called document was followed."""
        self._callers: list[str] = []

    def sequence(self, body: Sequence, at: _Place) -> Iterator[Reached]:
        for step in body.steps:
            yield from self._step(step, at)
            if at.certain and may_stop(step):
                at = replace(at, certain=False)

    def _step(self, step: Step, at: _Place) -> Iterator[Reached]:
        match = step.match
        own = at.certain and not (match is not None and match.decide_first and all(case.test for case in match.cases))
        guard = step.guard
        if guard is not None and (guard.when is not None or guard.goes_on):
            own = False
        if guard is not None and guard.on_error is not None and guard.on_error.policy == "retry":
            at = at.below(1, certain=at.certain)
        yield Reached(step, f"{at.way}{step.label}", own, at.plan.format, at.name, at.fans, at.levels)
        for case in match.cases if match else ():
            yield from self.sequence(case.body, at.below(2, certain=False))
        match step.work:
            case Fold(source=source, do=do):
                yield from self._step(do, at.below(1, certain=own and listed_items(source) > 0))
            case ForEach(source=source, do=do, collect=collect, on_error=on_error):
                each = own and listed_items(source) > 0 and not on_error.goes_on
                yield from self._step(do, at.below(1 + (on_error.policy == "retry"), fans=1, certain=each))
                yield from self._step(collect, at.below(2, fans=1, certain=own))
            case Parallel(branches=branches, collect=collect, on_error=on_error):
                each, deeper = own and not on_error.goes_on, 1 + (on_error.policy == "retry")
                for _, branch in branches:
                    yield from self._step(branch, at.below(deeper, fans=1, certain=each))
                yield from self._step(collect, at.below(2, fans=1, certain=own))
            case Call(document=document):
                yield from self._callee(document, step.label, at.below(2, certain=own))
            case UseTool(connection=place, tool=tool) if place == OWN:
                yield from self._callee(tool, step.label, at.below(2, certain=own))
            case Select():
                for target in step.work.targets():
                    if isinstance(target, Call):
                        yield from self._callee(target.document, step.label, at.below(2, certain=False))
                    else:
                        yield from self.sequence(target.body, at.below(2, certain=False))
            case Block(body=body):
                yield from self.sequence(body, at.below(2, certain=own))
            case Repeat(do=do):
                yield from self._step(do, at.below(1, certain=own))
            case None | Think() | UseTool() | Transform() | Invoke() | Agent() | Thread() | Fail() | Stop():
                pass
            case _:
                assert_never(step.work)

    def _callee(self, name: str, label: str, at: _Place) -> Iterator[Reached]:
        plan = self._documents.get(name)
        if plan is None or name in self._callers or len(self._callers) == MAX_FOLLOWED_CALLS:
            return
        # Fans around a call count only if a pipeline calls a pipeline.
        fans = at.fans if at.plan.format == plan.format == "pipeline" else 0
        before = self._deepest.get((name, at.certain), (-1, -1))
        if fans <= before[0] and at.levels <= before[1]:
            return
        self._deepest[name, at.certain] = max(fans, before[0]), max(at.levels, before[1])
        self._callers.append(name)
        yield from self.sequence(plan.body, _Place(plan, name, f"{at.way}{label}{JOINT}", fans, at.levels, at.certain))
        self._callers.pop()


def cap_problem(plan: Plan, documents: Mapping[str, Plan], most: int, inputs: Mapping[str, Value] | None = None) -> str:
    """Return an error message if even the fewest model calls of a pipeline exceed `most`, else an empty text.

    A limit of 0 means no limit. `inputs` are those of a run, where they are known.
    """
    if not plan.has_call_cap or not most:
        return ""
    from quire.plan.bounds import least_model_calls  # Other formats do not need it.

    least = least_model_calls(plan, documents, inputs)
    if least <= most:
        return ""
    return (
        f"{plan.title} makes at least {least:,} model calls, and a run may make {most:,}: run it with --limit "
        f"calls={least}, or raise max_pipeline_spawns under [safety.spawn] in quire.toml"
    )


def depth_problem(at: Reached, documents: Mapping[str, Plan], most_fans: int) -> str:
    """Return the engine's error message if this step is nested too deep, else an empty text."""
    if isinstance(at.step.work, ForEach | Parallel) and most_fans and at.fans + 1 > most_fans:
        return (
            f"fan-out depth {at.fans + 1} exceeds max_pipeline_fan_out_depth under [safety.spawn], which is {most_fans}"
        )
    return "the calls are nested too deep" if _calls(at, documents) and at.levels + 2 > MAX_LEVELS else ""


def too_many_items(value: Value, most: int | None) -> str:
    """Return an error message if a list is longer than its `for_each` allows, else an empty text."""
    count = len(value) if isinstance(value, list | tuple) else 0
    if most is None and count > MAX_ITEMS:
        return f"{count:,} items are more than {MAX_ITEMS:,}: a list that long needs max_items"
    if most is not None and count > most:
        return f"{count:,} items are more than max_items, which is {most:,}"
    return ""


def nesting_problems(at: Reached, documents: Mapping[str, Plan], most_fans: int) -> Iterator[str]:
    """Yield the messages with which the engine would fail this step regardless of its values."""
    problems = [depth_problem(at, documents, most_fans)]
    match at.step.work:
        case ForEach(source=Literal(value=value), max_items=most):
            problems.append(too_many_items(value, most))
    yield from (f"step {at.place}: {problem}" for problem in problems if problem)


def _calls(at: Reached, documents: Mapping[str, Plan]) -> bool:
    work = at.step.work
    if isinstance(work, UseTool):
        return work.connection == OWN and work.tool in documents
    return isinstance(work, Select) or any(call.document in documents for call in at.step.calls())
