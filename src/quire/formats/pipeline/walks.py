"""Walks through the syntax tree of a pipeline: the steps at any depth, and what each of them contains."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from quire.formats.pipeline.syntax import (
    HOLE,
    AgentBody,
    CallBody,
    ExpressionText,
    FailBody,
    FoldBody,
    ForEachBody,
    MatchBody,
    Name,
    ParallelBody,
    Pipeline,
    PipelineFile,
    RepeatBody,
    ShellBody,
    Step,
    StepsBody,
    StopBody,
    Target,
    ToolBody,
    TransformBody,
)

_PLAIN = frozenset({TransformBody, ToolBody, ShellBody, AgentBody, CallBody, FailBody, StopBody})
"""The bodies without steps in them."""


def walk(pipeline: Pipeline) -> Iterator[tuple[str, Step]]:
    """Yield steps in the order of the text, parents first. Paths count from 1 and have `do` in place of an index."""
    for number, step in enumerate(pipeline.steps, 1):
        yield str(number), step
        if parts(step):
            yield from _below(str(number), step)


def _below(path: str, step: Step) -> Iterator[tuple[str, Step]]:
    for name, part in parts(step):
        here = f"{path}.{step.kind}.{name}"
        yield here, part
        yield from _below(here, part)


def walk_file(file: PipelineFile) -> Iterator[tuple[str, Step]]:
    """Yield the steps of all pipelines with their paths, then those that a hole replaces, with an empty path."""
    for pipeline in file.pipelines:
        yield from walk(pipeline)
    for step in file.lost:
        yield "", step
        yield from (("", part) for _, part in _below("", step))


def holes(pipeline: Pipeline) -> tuple[Step, ...]:
    """Return the steps that could not be read."""
    return tuple(step for _, step in walk(pipeline) if step.body is HOLE)


def parts(step: Step) -> tuple[tuple[str, Step], ...]:
    """Return the nested steps of a step by name. A branch may also be called `collect`."""
    if type(step.body) in _PLAIN:
        return ()  # most steps, and a pattern takes several times as long
    match step.body:
        case FoldBody(do=do):
            return (("do", do),)
        case ForEachBody(do=do, collect=collect):
            return (("do", do), ("collect", collect))
        case ParallelBody(branches=branches, collect=collect):
            return (*((name.text, branch) for name, branch in branches), ("collect", collect))
        case StepsBody(steps=steps):
            return tuple((str(number), one) for number, one in enumerate(steps, 1))
        case MatchBody(cases=cases, default=default):
            blocks = [(name.text, one) for name, one in cases if isinstance(one, StepsBody)]
            blocks += [("default", default)] if isinstance(default, StepsBody) else []
            return tuple((f"{name}.{at}", one) for name, block in blocks for at, one in enumerate(block.steps, 1))
        case RepeatBody(do=do):
            return (("do", do),)
        case TransformBody() | ToolBody() | ShellBody() | AgentBody() | CallBody() | FailBody() | StopBody():
            return ()
        case _:
            assert_never(step.body)


def blocks(step: Step) -> tuple[tuple[Step, ...], ...]:
    """Return the sequences of steps inside a step that share its stores: at most one of a `match` runs."""
    match step.body:
        case StepsBody(steps=steps):
            return (steps,)
        case MatchBody(cases=cases, default=default):
            found = [target.steps for _, target in cases if isinstance(target, StepsBody)]
            return (*found, *((default.steps,) if isinstance(default, StepsBody) else ()))
    return ()


def shared_parts(step: Step) -> Iterator[Step]:
    """Yield the nested steps that share the stores of a step."""
    for block in blocks(step):
        yield from block


def targets(step: Step) -> tuple[Target, ...]:
    """Return the pipelines that a step may call."""
    if type(step.body) in _PLAIN and type(step.body) is not CallBody:
        return ()
    match step.body:
        case CallBody(target=target):
            return (target,)
        case MatchBody(cases=cases, default=default):
            all_targets = (*(target for _, target in cases), default)
            return tuple(target for target in all_targets if isinstance(target, Target))
        case (
            TransformBody()
            | ToolBody()
            | ShellBody()
            | AgentBody()
            | StepsBody()
            | FoldBody()
            | ForEachBody()
            | ParallelBody()
            | RepeatBody()
            | FailBody()
            | StopBody()
        ):
            return ()
        case _:
            assert_never(step.body)


def schema_of(step: Step) -> Name | None:
    """Return the schema that the result of a step must match."""
    match step.body:
        case ToolBody(schema=schema) | ShellBody(schema=schema) | AgentBody(schema=schema):
            return schema
        case (
            TransformBody()
            | CallBody()
            | MatchBody()
            | StepsBody()
            | FoldBody()
            | ForEachBody()
            | ParallelBody()
            | RepeatBody()
            | FailBody()
            | StopBody()
        ):
            return None
        case _:
            assert_never(step.body)


def expressions(step: Step) -> Iterator[ExpressionText]:
    """Yield the expressions that are evaluated in the context of the step itself, not of a nested step."""
    if step.guard is not None:
        yield from (one for one in (step.guard.when, step.guard.default) if one is not None)
    match step.body:
        case TransformBody(value=value):
            yield value
        case ToolBody(args=args):
            yield from (value for _, value in args if isinstance(value, ExpressionText))
        case ShellBody(command=command, stdin=stdin, cwd=cwd):
            yield from (one for one in (command, stdin, cwd) if isinstance(one, ExpressionText))
        case MatchBody(on=on, default=default):
            yield on
            if isinstance(default, ExpressionText):
                yield default
        case FoldBody(source=source, init=init):
            if isinstance(source, ExpressionText):
                yield source
            yield init
        case ForEachBody(source=source):
            if isinstance(source, ExpressionText):
                yield source
        case RepeatBody(init=init):
            if init is not None:
                yield init
        case FailBody(message=message):
            if isinstance(message, ExpressionText):
                yield message
        case StopBody(value=value):
            if value is not None:
                yield value
        case AgentBody() | CallBody() | StepsBody() | ParallelBody():
            pass
        case _:
            assert_never(step.body)
    for target in targets(step):
        yield from (one.value for one in target.passes if one.value)


def inner_expressions(step: Step) -> Iterator[ExpressionText]:
    """Yield the expressions that are evaluated where the nested steps are: the test of a loop, the default of items."""
    match step.body:
        case RepeatBody(until=until):
            yield until
        case ForEachBody(default=default) | ParallelBody(default=default):
            if default is not None:
                yield default
