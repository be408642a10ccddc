"""The syntax tree of a pipeline file: what stands in it and where, expressions read but not yet compiled.

Nobody changes a node once it is made; they are not frozen because that costs several times as much to make.

Every step of a pipeline, however deep, with its path; and the expressions that a step has of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

from msgspec import Struct

from quire.expr import Expression, parse
from quire.formats.yaml import Scalar, place
from quire.plan.nodes import OnError
from quire.schema import Schema
from quire.source import NOWHERE, Source, Span
from quire.values import Value


@dataclass(slots=True)
class Text:
    """A text that other things stand in. `scalar` leads from a place in the text to the place in the file."""

    text: str
    span: Span = NOWHERE
    scalar: Scalar | None = field(default=None, repr=False, compare=False)

    def place(self, source: Source, part: Span) -> Span:
        """Where a part of the text stands in the file, as exactly as the way it is written allows."""
        return self.span if self.scalar is None else place(source, self.scalar, part)


@dataclass(slots=True)
class ExpressionText(Text):
    """An R1 expression, read but not compiled; its own spans count from the start of the text."""

    expression: Expression = field(kw_only=True)


class Literal(Struct):
    value: Value
    span: Span = NOWHERE


Argument: TypeAlias = Literal | ExpressionText


class Name(Struct):
    text: str
    span: Span = NOWHERE


class Pass(Struct):
    """One name that a callee sees. `value` is None in the list form: the caller's store of that name."""

    name: Name
    value: ExpressionText | None = None


class Target(Struct):
    """A static name: that of a pipeline, or `KEY.NAME` for one of a file with several."""

    pipeline: Name
    passes: tuple[Pass, ...] = ()


class TransformBody(Struct):
    value: ExpressionText


class ToolBody(Struct):
    name: Name
    args: tuple[tuple[Name, Argument], ...] = ()
    schema: Name | None = None


class ShellBody(Struct):
    command: Argument
    schema: Name | None = None


class AgentBody(Struct):
    """`tools` is None where `capabilities` are not given; an empty tuple grants nothing."""

    prompt: Text
    identity: Name | None = None
    tools: tuple[Name, ...] | None = None
    schema: Name | None = None


class CallBody(Struct):
    target: Target


class MatchBody(Struct):
    on: ExpressionText
    cases: tuple[tuple[Name, Target], ...]
    default: Target | None = None


class FoldBody(Struct):
    """`source` is None where the incoming pipe is the list."""

    source: Argument | None
    init: ExpressionText
    do: Step
    max_items: int | None = None


class ForEachBody(Struct):
    source: Argument | None
    on_error: OnError
    do: Step
    collect: Step
    max_parallel: int | None = None
    max_items: int | None = None


class ParallelBody(Struct):
    branches: tuple[tuple[Name, Step], ...]
    collect: Step
    on_error: OnError | None = None


Body: TypeAlias = (
    TransformBody | ToolBody | ShellBody | AgentBody | CallBody | MatchBody | FoldBody | ForEachBody | ParallelBody
)


class Step(Struct):
    """`kind` is the key of the step as written; `span` covers that key."""

    kind: str
    body: Body
    output: Name | None = None
    span: Span = NOWHERE


class Pipeline(Struct):
    name: Name
    description: str
    steps: tuple[Step, ...]
    span: Span = NOWHERE


class PipelineFile(Struct):
    """All documents of one text. A direct run takes exactly one pipeline; a registered file may have several.

    `unread` are the names of the schemas and pipelines that are declared and could not be read.
    """

    pipelines: tuple[Pipeline, ...]
    schemas: tuple[Schema, ...]
    unread: frozenset[str] = frozenset()


HOLE = TransformBody(ExpressionText("null", expression=parse("null")))
"""Stands for the body of a step that could not be read, in a tree that is looked at and never run: its value can be
anything, and what it reads nobody knows."""


def walk(pipeline: Pipeline) -> Iterator[tuple[str, Step]]:
    """Steps in the order of the text, parents first. Paths count from 1 and have `do` in place of an index."""
    for number, step in enumerate(pipeline.steps, 1):
        yield str(number), step
        if parts(step):
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
        case TransformBody() | ToolBody() | ShellBody() | AgentBody() | CallBody() | MatchBody():
            return ()
        case _:
            assert_never(step.body)


def targets(step: Step) -> tuple[Target, ...]:
    """The pipelines that a step may call."""
    match step.body:
        case CallBody(target=target):
            return (target,)
        case MatchBody(cases=cases, default=default):
            return (*(target for _, target in cases), *((default,) if default else ()))
        case TransformBody() | ToolBody() | ShellBody() | AgentBody() | FoldBody() | ForEachBody() | ParallelBody():
            return ()
        case _:
            assert_never(step.body)


def schema_of(step: Step) -> Name | None:
    """The schema that the result of a step is held to."""
    match step.body:
        case ToolBody(schema=schema) | ShellBody(schema=schema) | AgentBody(schema=schema):
            return schema
        case TransformBody() | CallBody() | MatchBody() | FoldBody() | ForEachBody() | ParallelBody():
            return None
        case _:
            assert_never(step.body)


def expressions(step: Step) -> Iterator[ExpressionText]:
    """Those that are evaluated in the context of the step itself, not of a step inside of it."""
    match step.body:
        case TransformBody(value=value):
            yield value
        case ToolBody(args=args):
            yield from (value for _, value in args if isinstance(value, ExpressionText))
        case ShellBody(command=command):
            if isinstance(command, ExpressionText):
                yield command
        case MatchBody(on=on):
            yield on
        case FoldBody(source=source, init=init):
            if isinstance(source, ExpressionText):
                yield source
            yield init
        case ForEachBody(source=source):
            if isinstance(source, ExpressionText):
                yield source
        case AgentBody() | CallBody() | ParallelBody():
            pass
        case _:
            assert_never(step.body)
    for target in targets(step):
        yield from (one.value for one in target.passes if one.value)
