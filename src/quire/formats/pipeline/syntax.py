"""The syntax tree of a pipeline file with positions; expressions are parsed but not compiled.

Nodes are not frozen, but never changed once they are made. `walk` yields every step of a pipeline at any depth;
`expressions` yields those of one step.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias, assert_never

from msgspec import Struct

from quire.expr import Expression, parse
from quire.formats.yaml import Scalar, place
from quire.source import NOWHERE, Source, Span

if TYPE_CHECKING:
    from quire.diagnostics import Diagnostic, Severity
    from quire.plan.nodes import OnError
    from quire.schema import Field, Schema
    from quire.values import Value

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*+")
RULE = "a name begins with a letter or _ and goes on with letters, digits, _ and -, all of them ASCII"


def is_name(text: str) -> bool:
    """Tell whether a text can name a pipeline, schema, field, store, branch or identity."""
    return NAME.fullmatch(text) is not None


@dataclass(slots=True)
class Text:
    """A text that contains references or an expression."""

    text: str
    span: Span = NOWHERE
    scalar: Scalar | None = field(default=None, repr=False, compare=False)
    """Maps positions in the text to positions in the file."""

    def place(self, source: Source, part: Span) -> Span:
        """Return where a part of the text is in the file, as exactly as its notation allows."""
        return self.span if self.scalar is None else place(source, self.scalar, part)


@dataclass(slots=True)
class ExpressionText(Text):
    """An R1 expression, parsed but not compiled. Its own spans count from the start of the text."""

    expression: Expression = field(kw_only=True)


class Literal(Struct):
    value: Value
    span: Span = NOWHERE


Argument: TypeAlias = Literal | ExpressionText


class Name(Struct):
    text: str
    span: Span = NOWHERE


class Pass(Struct):
    """One name that a callee sees."""

    name: Name
    value: ExpressionText | None = None
    """None in the list form: then it is the caller's store of that name."""


class Target(Struct):
    """The static name of a pipeline, or `KEY.NAME` in a file with several, and the values passed to it."""

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
    """The body of an `agent` step."""

    prompt: Text
    identity: Name | None = None
    tools: tuple[Name, ...] | None = None
    """None if there are no `capabilities`; an empty tuple grants nothing."""
    schema: Name | None = None


class CallBody(Struct):
    target: Target


class MatchBody(Struct):
    on: ExpressionText
    cases: tuple[tuple[Name, Target], ...]
    default: Target | None = None


class FoldBody(Struct):
    """The body of a `fold` step."""

    source: Argument | None
    """None if the list is the incoming pipe."""
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
    """One step."""

    kind: str
    """The key of the step as written."""
    body: Body
    output: Name | None = None
    span: Span = NOWHERE
    """Covers that key."""


class Pipeline(Struct):
    name: Name
    description: str
    steps: tuple[Step, ...]
    span: Span = NOWHERE
    dialect: bool = False
    """Whether the document says `dialect: quire`."""
    input: tuple[Field, ...] | None = None
    """The inputs that it declares; None if they are inferred."""
    input_names: tuple[Name, ...] = ()
    """Where those inputs are declared."""


class PipelineFile(Struct):
    """All documents of one text. A direct run needs exactly one pipeline; a registered file may have several."""

    pipelines: tuple[Pipeline, ...]
    schemas: tuple[Schema, ...]
    unread: frozenset[str] = frozenset()
    """Names of schemas and pipelines that are declared but could not be read."""


HOLE = TransformBody(ExpressionText("null", expression=parse("null")))
"""Replaces the body of a step that could not be read, in a tree that is checked but never run.

Its value can be anything, and its reads are not known.
"""


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


def holes(pipeline: Pipeline) -> tuple[Step, ...]:
    """Return the steps that could not be read."""
    return tuple(step for _, step in walk(pipeline) if step.body is HOLE)


def parts(step: Step) -> tuple[tuple[str, Step], ...]:
    """Return the nested steps of a step by name. A branch may also be called `collect`."""
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
    """Return the pipelines that a step may call."""
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
    """Return the schema that the result of a step must match."""
    match step.body:
        case ToolBody(schema=schema) | ShellBody(schema=schema) | AgentBody(schema=schema):
            return schema
        case TransformBody() | CallBody() | MatchBody() | FoldBody() | ForEachBody() | ParallelBody():
            return None
        case _:
            assert_never(step.body)


def expressions(step: Step) -> Iterator[ExpressionText]:
    """Yield the expressions that are evaluated in the context of the step itself, not of a nested step."""
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


class ParseResult(Struct, frozen=True):
    """The result of parsing one file. Diagnostics are in the order of the text."""

    source: Source
    file: PipelineFile | None
    """None exactly if there is an error."""
    diagnostics: tuple[Diagnostic, ...]
    partial: PipelineFile | None = None
    """The readable parts of a file with errors, with holes for the rest: only for more findings, never to be run."""

    def of(self, severity: Severity) -> tuple[Diagnostic, ...]:
        return tuple(found for found in self.diagnostics if found.severity is severity)
