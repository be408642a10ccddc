"""The syntax tree of a playbook: what stands in the document, where it stands, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from quire.source import NOWHERE, Span

ElicitKind = Literal["input", "confirm", "select"]
Operator = Literal["==", "!="]
ConditionSource = Literal["input", "step_output"]


@dataclass(frozen=True, slots=True)
class InputDeclaration:
    """A line of `## INPUTS`. `default` is text as written; enum inputs have options and no default."""

    name: str
    type: str
    default: str | None
    options: tuple[str, ...]
    description: str
    required: bool
    span: Span = NOWHERE
    name_span: Span = NOWHERE


@dataclass(frozen=True, slots=True)
class Placeholder:
    """A `{{name}}`, `{{name:type}}` or `{{name:type:default}}` in any text that is rendered."""

    name: str
    type: str | None
    default: str | None
    span: Span = NOWHERE


@dataclass(frozen=True, slots=True)
class PromptReference:
    """`@prompt(library:ID)` and its relatives; `ref` keeps the scheme, or is one `{{variable}}`."""

    ref: str
    span: Span = NOWHERE


@dataclass(frozen=True, slots=True)
class OutputCapture:
    """`@output(name: type, "option", extract:"field")`. `type` is None where none was written."""

    name: str
    type: str | None
    options: tuple[str, ...]
    field: str | None
    span: Span = NOWHERE
    name_span: Span = NOWHERE


@dataclass(frozen=True, slots=True)
class Elicitation:
    kind: ElicitKind
    prompt: str
    options: tuple[str, ...]
    default: str | None
    span: Span = NOWHERE


@dataclass(frozen=True, slots=True)
class ToolCall:
    """`@tool(connection, tool, {…})`; `arguments` is the JSON text as written, placeholders and all."""

    connection: str
    tool: str
    arguments: str
    span: Span = NOWHERE


@dataclass(frozen=True, slots=True)
class Condition:
    variable: str
    operator: Operator
    value: str
    source: ConditionSource
    span: Span = NOWHERE
    variable_span: Span = NOWHERE


@dataclass(frozen=True, slots=True)
class Arm:
    """One arm of a branch; `else` has no condition."""

    condition: Condition | None
    steps: tuple[Step, ...]
    span: Span = NOWHERE


@dataclass(frozen=True, slots=True)
class Step:
    """A `## STEP N:` or `### STEP Na:` with its text and directives. `span` covers the heading line.

    `content` is the prompt text with directives taken out. `placeholders` are those of the content and of
    every directive of this step (not of its sub-steps), with their places in the document.
    """

    number: int
    label: str
    title: str
    content: str
    prompt: PromptReference | None = None
    output: OutputCapture | None = None
    elicitation: Elicitation | None = None
    tool: ToolCall | None = None
    arms: tuple[Arm, ...] = ()
    placeholders: tuple[Placeholder, ...] = ()
    span: Span = NOWHERE


@dataclass(frozen=True, slots=True)
class ArtifactDeclaration:
    """`type:` of `## ARTIFACTS`: lower case, or a `{{variable}}` that is resolved when the run ends."""

    type: str
    span: Span = NOWHERE


@dataclass(frozen=True, slots=True)
class Playbook:
    title: str
    description: str
    system: str
    inputs: tuple[InputDeclaration, ...]
    steps: tuple[Step, ...]
    artifact: ArtifactDeclaration | None
    title_span: Span = NOWHERE
