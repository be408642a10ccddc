"""The syntax tree of a pipeline file: what stands in it and where, expressions read but not yet compiled.

Nobody changes a node once it is made; they are not frozen because that costs several times as much to make.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

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


@dataclass(slots=True)
class Literal:
    value: Value
    span: Span = NOWHERE


Argument: TypeAlias = Literal | ExpressionText


@dataclass(slots=True)
class Name:
    text: str
    span: Span = NOWHERE


@dataclass(slots=True)
class Pass:
    """One name that a callee sees. `value` is None in the list form: the caller's store of that name."""

    name: Name
    value: ExpressionText | None = None


@dataclass(slots=True)
class Target:
    """A static name: that of a pipeline, or `KEY.NAME` for one of a file with several."""

    pipeline: Name
    passes: tuple[Pass, ...] = ()


@dataclass(slots=True)
class TransformBody:
    value: ExpressionText


@dataclass(slots=True)
class ToolBody:
    name: Name
    args: tuple[tuple[Name, Argument], ...] = ()
    schema: Name | None = None


@dataclass(slots=True)
class ShellBody:
    command: Argument
    schema: Name | None = None


@dataclass(slots=True)
class AgentBody:
    """`tools` is None where `capabilities` are not given; an empty tuple grants nothing."""

    prompt: Text
    identity: Name | None = None
    tools: tuple[Name, ...] | None = None
    schema: Name | None = None


@dataclass(slots=True)
class CallBody:
    target: Target


@dataclass(slots=True)
class MatchBody:
    on: ExpressionText
    cases: tuple[tuple[Name, Target], ...]
    default: Target | None = None


@dataclass(slots=True)
class FoldBody:
    """`source` is None where the incoming pipe is the list."""

    source: Argument | None
    init: ExpressionText
    do: Step
    max_items: int | None = None


@dataclass(slots=True)
class ForEachBody:
    source: Argument | None
    on_error: OnError
    do: Step
    collect: Step
    max_parallel: int | None = None
    max_items: int | None = None


@dataclass(slots=True)
class ParallelBody:
    branches: tuple[tuple[Name, Step], ...]
    collect: Step
    on_error: OnError | None = None


Body: TypeAlias = (
    TransformBody | ToolBody | ShellBody | AgentBody | CallBody | MatchBody | FoldBody | ForEachBody | ParallelBody
)


@dataclass(slots=True)
class Step:
    """`kind` is the key of the step as written; `span` covers that key."""

    kind: str
    body: Body
    output: Name | None = None
    span: Span = NOWHERE


@dataclass(slots=True)
class Pipeline:
    name: Name
    description: str
    steps: tuple[Step, ...]
    span: Span = NOWHERE


@dataclass(slots=True)
class PipelineFile:
    """All documents of one text. A direct run takes exactly one pipeline; a registered file may have several.

    `unread` are the names of the schemas and pipelines that are declared and could not be read.
    """

    pipelines: tuple[Pipeline, ...]
    schemas: tuple[Schema, ...]
    unread: frozenset[str] = frozenset()


HOLE = TransformBody(ExpressionText("null", expression=parse("null")))
"""Stands for the body of a step that could not be read, in a tree that is looked at and never run: its value can be
anything, and what it reads nobody knows."""
