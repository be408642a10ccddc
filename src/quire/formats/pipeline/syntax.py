"""The syntax tree of a pipeline file: what stands in it and where, expressions read but not yet compiled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from quire.expr import Expression
from quire.schema import Schema
from quire.source import NOWHERE, Span
from quire.values import Value


@dataclass(frozen=True, slots=True)
class ExpressionText:
    """An R1 expression with the place of its first character, so that a span inside it can be placed in the file.

    `exact` is false where the YAML writes the text in another way than it reads (escapes, folded lines): then
    only the whole can be pointed at.
    """

    text: str
    expression: Expression
    span: Span = NOWHERE
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Literal:
    value: Value
    span: Span = NOWHERE


Argument: TypeAlias = Literal | ExpressionText


@dataclass(frozen=True, slots=True)
class Name:
    text: str
    span: Span = NOWHERE


@dataclass(frozen=True, slots=True)
class Retry:
    """`on_error`: `continue`, `abort`, or `retry(times)`."""

    policy: str
    times: int = 0


@dataclass(frozen=True, slots=True)
class Pass:
    """One name that a callee sees. `value` is None in the list form: the caller's store of that name."""

    name: Name
    value: ExpressionText | None = None


@dataclass(frozen=True, slots=True)
class Target:
    pipeline: Name
    passes: tuple[Pass, ...] = ()


@dataclass(frozen=True, slots=True)
class TransformBody:
    value: ExpressionText


@dataclass(frozen=True, slots=True)
class ToolBody:
    name: Name
    args: tuple[tuple[Name, Argument], ...] = ()
    schema: Name | None = None


@dataclass(frozen=True, slots=True)
class ShellBody:
    command: Argument
    schema: Name | None = None


@dataclass(frozen=True, slots=True)
class AgentBody:
    """`tools` is None where `capabilities` are not given; an empty tuple grants nothing."""

    prompt: str
    prompt_span: Span = NOWHERE
    identity: Name | None = None
    tools: tuple[Name, ...] | None = None
    schema: Name | None = None


@dataclass(frozen=True, slots=True)
class CallBody:
    target: Target


@dataclass(frozen=True, slots=True)
class MatchBody:
    on: ExpressionText
    cases: tuple[tuple[Name, Target], ...]
    default: Target | None = None


@dataclass(frozen=True, slots=True)
class FoldBody:
    """`source` is None where the incoming pipe is the list."""

    source: Argument | None
    init: ExpressionText
    do: Step
    max_items: int | None = None


@dataclass(frozen=True, slots=True)
class ForEachBody:
    source: Argument | None
    on_error: Retry
    do: Step
    collect: Step
    max_parallel: int | None = None
    max_items: int | None = None


@dataclass(frozen=True, slots=True)
class ParallelBody:
    branches: tuple[tuple[Name, Step], ...]
    collect: Step
    on_error: Retry | None = None


Body: TypeAlias = (
    TransformBody | ToolBody | ShellBody | AgentBody | CallBody | MatchBody | FoldBody | ForEachBody | ParallelBody
)


@dataclass(frozen=True, slots=True)
class Step:
    """`kind` is the key of the step as written; `span` covers that key."""

    kind: str
    body: Body
    output: Name | None = None
    span: Span = NOWHERE


@dataclass(frozen=True, slots=True)
class Pipeline:
    name: Name
    description: str
    steps: tuple[Step, ...]
    span: Span = NOWHERE


@dataclass(frozen=True, slots=True)
class PipelineFile:
    """All documents of one text. A direct run takes exactly one pipeline; a registered file may have several."""

    pipelines: tuple[Pipeline, ...]
    schemas: tuple[Schema, ...]
