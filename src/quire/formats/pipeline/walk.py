"""Every step of a pipeline, however deep, with its path; and the expressions that a step has of its own."""

from __future__ import annotations

from collections.abc import Iterator

from quire.formats.pipeline.syntax import (
    HOLE,
    AgentBody,
    CallBody,
    ExpressionText,
    FoldBody,
    ForEachBody,
    MatchBody,
    Name,
    ParallelBody,
    Pipeline,
    ShellBody,
    Step,
    Target,
    ToolBody,
    TransformBody,
)

_COMPOUND = (FoldBody, ForEachBody, ParallelBody)


def walk(pipeline: Pipeline) -> Iterator[tuple[str, Step]]:
    """Steps in the order of the text, parents first. Paths count from 1 and have `do` in place of an index."""
    for number, step in enumerate(pipeline.steps, 1):
        yield str(number), step
        if isinstance(step.body, _COMPOUND):
            yield from _below(str(number), step)


def _below(path: str, step: Step) -> Iterator[tuple[str, Step]]:
    for name, part in parts(step):
        here = f"{path}.{step.kind}.{name}"
        yield here, part
        yield from _below(here, part)


def holes(pipeline: Pipeline) -> tuple[Step, ...]:
    """The steps that could not be read."""
    return tuple(step for _, step in walk(pipeline) if step.body is HOLE)


def parts(step: Step) -> tuple[tuple[str, Step], ...]:
    """The steps inside of a step, by name. A branch may be called `collect` as well."""
    match step.body:
        case FoldBody(do=do):
            return (("do", do),)
        case ForEachBody(do=do, collect=collect):
            return (("do", do), ("collect", collect))
        case ParallelBody(branches=branches, collect=collect):
            return (*((name.text, branch) for name, branch in branches), ("collect", collect))
    return ()


def targets(step: Step) -> tuple[Target, ...]:
    """The pipelines that a step may call."""
    match step.body:
        case CallBody(target=target):
            return (target,)
        case MatchBody(cases=cases, default=default):
            return (*(target for _, target in cases), *((default,) if default else ()))
    return ()


def schema_of(step: Step) -> Name | None:
    """The schema that the result of a step is held to."""
    return step.body.schema if isinstance(step.body, AgentBody | ToolBody | ShellBody) else None


def expressions(step: Step) -> Iterator[ExpressionText]:
    """Those that are evaluated in the context of the step itself, not of a step inside of it."""
    match step.body:
        case TransformBody(value=value):
            yield value
        case ToolBody(args=args):
            yield from (value for _, value in args if isinstance(value, ExpressionText))
        case ShellBody(command=ExpressionText() as command):
            yield command
        case MatchBody(on=on):
            yield on
        case FoldBody(source=source, init=init):
            if isinstance(source, ExpressionText):
                yield source
            yield init
        case ForEachBody(source=ExpressionText() as source):
            yield source
    for target in targets(step):
        yield from (one.value for one in target.passes if one.value)
