"""The expressions of a step of a pipeline, each with its place and a function that puts another one there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeAlias, assert_never

from msgspec.structs import replace

from quire.plan.nodes import Think, UseTool
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
)
from quire.plan.thread import Thread

if TYPE_CHECKING:
    from quire.plan.nodes import Step

Put: TypeAlias = "Callable[[Formula], Step]"
Placed: TypeAlias = tuple[str, Formula, Put]


def formulas_of(step: Step) -> list[Formula]:
    return [formula for _, formula, _ in formulas_of_step(step)]


def formulas_of_step(step: Step) -> Iterator[Placed]:
    """Yield the expressions of a step itself, without those of the steps inside it."""
    guard = step.guard
    if guard is not None:
        if guard.when is not None:
            yield "when", guard.when, lambda one: replace(step, guard=replace(guard, when=one))
        if guard.default is not None and guard.goes_on:
            yield "the default", guard.default, lambda one: replace(step, guard=replace(guard, default=one))
    yield from _of_work(step)


def _of_work(step: Step) -> Iterator[Placed]:
    work = step.work

    def field(name: str) -> Put:
        return lambda one: replace(step, work=replace(work, **{name: one}))  # type: ignore[type-var]  # never None

    match work:
        case Transform(value=value):
            yield "the value", value, field("value")
        case Invoke(arguments=arguments):
            for number, (name, argument) in enumerate(arguments):
                if isinstance(argument, Formula):
                    yield f"the argument {name}", argument, _argument(step, work, number)
        case Call():
            yield from _passes(work, lambda call: replace(step, work=call))
        case Select():
            yield "on", work.on, field("on")
            if isinstance(work.default, Formula):
                yield "the default", work.default, field("default")
            yield from _targets(step, work)
        case Fold(source=source, init=init):
            if isinstance(source, Formula):
                yield "over", source, field("source")
            yield "init", init, field("init")
        case ForEach(source=source, default=default):
            if isinstance(source, Formula):
                yield "over", source, field("source")
            if default is not None and work.on_error.goes_on:
                yield "the default", default, field("default")
        case Parallel(default=default):
            if default is not None and work.on_error.goes_on:
                yield "the default", default, field("default")
        case Repeat(init=first, until=until):
            if first is not None:
                yield "init", first, field("init")
            yield "until", until, field("until")
        case Fail(message=message):
            if not isinstance(message, Literal):
                yield "the message", message, field("message")
        case Stop(value=result):
            if result is not None:
                yield "the value", result, field("value")
        case None | Think() | UseTool() | Thread() | Agent() | Block():
            return
        case _:
            assert_never(work)


def _argument(step: Step, work: Invoke, number: int) -> Put:
    def put(formula: Formula) -> Step:
        name, _ = work.arguments[number]
        arguments = (*work.arguments[:number], (name, formula), *work.arguments[number + 1 :])
        return replace(step, work=replace(work, arguments=arguments))

    return put


def _passes(call: Call, put: Callable[[Call], Step]) -> Iterator[Placed]:
    """Yield the passed values of a call."""
    for number, (name, formula) in enumerate(call.passes):

        def put_pass(one: Formula, number: int = number, name: str = name) -> Step:
            return put(replace(call, passes=(*call.passes[:number], (name, one), *call.passes[number + 1 :])))

        yield f"the passed {name}", formula, put_pass


def _targets(step: Step, work: Select) -> Iterator[Placed]:
    """Yield the passed values of the calls that a choice may make."""
    for number, (name, target) in enumerate(work.cases):
        if isinstance(target, Call):

            def put_case(call: Call, number: int = number, name: str = name) -> Step:
                cases = (*work.cases[:number], (name, call), *work.cases[number + 1 :])
                return replace(step, work=replace(work, cases=cases))

            yield from _passes(target, put_case)
    if isinstance(work.default, Call):
        yield from _passes(work.default, lambda call: replace(step, work=replace(work, default=call)))
