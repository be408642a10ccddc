"""The syntax tree of a pipeline file with positions; expressions are parsed but not compiled.

Nodes are not frozen, but never changed once they are made. `formats/pipeline/walks.py` goes through them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from quire.expr import Expression, parse
from quire.formats.yaml import Scalar, place
from quire.source import NOWHERE, Source, Span

if TYPE_CHECKING:
    from quire.diagnostics import Diagnostic, Severity
    from quire.plan.pipeline_work import OnError
    from quire.schema import Field, Schema
    from quire.values import Value

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*+")
RULE = "a name begins with a letter or _, followed by letters, digits, _ and -, all ASCII"


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
    """One name that a called document sees."""

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
    """The body of a `shell` step. All but the command and the schema belong to the Quire dialect."""

    command: Argument
    schema: Name | None = None
    stdin: Argument | None = None
    env: tuple[Name, ...] | None = None
    cwd: Argument | None = None
    check: bool = True
    """False if the result says how the command ended, instead of a failure."""
    text: bool = False
    """True if the output stays text even where it is JSON."""


class AgentSettings(Struct):
    """The settings of the model call of an `agent` step, in the Quire dialect."""

    model: Name | None = None
    turns: int | None = None
    max_tokens: int | None = None
    temperature: float | None = None


class AgentBody(Struct):
    """The body of an `agent` step."""

    prompt: Text
    """The text of the prompt, or the name of its file."""
    identity: Name | None = None
    tools: tuple[Name, ...] | None = None
    """None if there are no `capabilities`; an empty tuple grants nothing."""
    schema: Name | None = None
    is_file: bool = False
    """True if the prompt is in a file (`!file`)."""
    settings: AgentSettings | None = None


class CallBody(Struct):
    target: Target


class StepsBody(Struct):
    """Several steps in place of one."""

    steps: tuple[Step, ...]
    flat: bool = True
    """True if the value of `steps` is the list itself; else it is a mapping, with the list as its `do`."""


class MatchBody(Struct):
    on: ExpressionText
    cases: tuple[tuple[Name, Target | StepsBody], ...]
    default: Target | StepsBody | ExpressionText | None = None


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
    default: ExpressionText | None = None
    sees_loops: bool = False


class ParallelBody(Struct):
    branches: tuple[tuple[Name, Step], ...]
    collect: Step
    on_error: OnError | None = None
    default: ExpressionText | None = None
    sees_loops: bool = False


class RepeatBody(Struct):
    """The body of a `repeat` step."""

    init: ExpressionText | None
    do: Step
    until: ExpressionText
    max: int
    on_max: Name | None = None
    """`fail`, which is the default, or `keep`."""


class FailBody(Struct):
    message: Argument


class StopBody(Struct):
    value: ExpressionText | None = None


Body: TypeAlias = (
    TransformBody
    | ToolBody
    | ShellBody
    | AgentBody
    | CallBody
    | MatchBody
    | StepsBody
    | FoldBody
    | ForEachBody
    | ParallelBody
    | RepeatBody
    | FailBody
    | StopBody
)


class GuardKeys(Struct):
    """The keys of the Quire dialect that may stand in the body of many kinds of step."""

    when: ExpressionText | None = None
    on_error: OnError | None = None
    default: ExpressionText | None = None
    timeout: float | None = None
    """In seconds."""


class Step(Struct):
    """One step."""

    kind: str
    """The key of the step as written."""
    body: Body
    output: Name | None = None
    span: Span = NOWHERE
    """Covers that key."""
    guard: GuardKeys | None = None
    title: str = ""


class Pipeline(Struct):
    name: Name
    description: str
    steps: tuple[Step, ...]
    span: Span = NOWHERE
    dialect: bool = False
    """True if the document says `dialect: quire`."""
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
    lost: tuple[Step, ...] = ()
    """Readable parts of steps that a hole replaces."""


HOLE = TransformBody(ExpressionText("null", expression=parse("null")))
"""Replaces the body of a step that could not be read, in a tree that is checked but never run.

Its value can be anything, and its reads are not known.
"""


class ParseResult(Struct, frozen=True):
    """The result of parsing one file. Diagnostics are in the order of the text."""

    source: Source
    file: PipelineFile | None
    """None exactly if there is an error."""
    diagnostics: tuple[Diagnostic, ...]
    partial: PipelineFile | None = None
    """The readable parts of a file with errors, with holes for the rest: only for more findings, never to be run."""

    def of(self, severity: Severity) -> tuple[Diagnostic, ...]:
        return tuple(diagnostic for diagnostic in self.diagnostics if diagnostic.severity is severity)
