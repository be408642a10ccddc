"""The Plan: the one tree that every format is lowered to and that everything else reads.

Positions number the children of a node from 1, as people do; they, never labels, make up the path of
an effect. Texts that hold references are parsed into `Template`s here, once, so that running a step is
only looking values up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from quire.source import NOWHERE, Span

SEMANTICS_VERSION = 1

InputType = Literal["string", "text", "number", "boolean", "enum"]
CaptureType = Literal["string", "text", "number", "boolean", "enum", "json"]
AskKind = Literal["input", "confirm", "select"]


@dataclass(frozen=True, slots=True)
class Reference:
    """A place in a template that a value goes to; `raw` is what stands there when nothing has that name."""

    name: str
    default: str | None
    raw: str


@dataclass(frozen=True, slots=True)
class Template:
    """Text and references in turn. Values are put in once and never read again for references."""

    parts: tuple[str | Reference, ...]

    def references(self) -> Iterator[Reference]:
        return (part for part in self.parts if isinstance(part, Reference))

    @property
    def empty(self) -> bool:
        return not self.parts


Arguments: TypeAlias = "None | bool | int | float | Template | Hole | tuple[Arguments, ...] | dict[str, Arguments]"


@dataclass(frozen=True, slots=True)
class Hole:
    """An unquoted reference among tool arguments: becomes exactly one JSON value, never spliced text."""

    reference: Reference


@dataclass(frozen=True, slots=True)
class Input:
    name: str
    type: InputType
    default: str | None
    options: tuple[str, ...]
    description: str
    required: bool


@dataclass(frozen=True, slots=True)
class PromptSource:
    """A text that is fetched when its step first runs; for `variable`, `where` is the variable's name."""

    scheme: Literal["library", "file", "mcp", "variable"]
    where: str


@dataclass(frozen=True, slots=True)
class Capture:
    """How the result of a step becomes a named value."""

    name: str
    type: CaptureType | None
    options: tuple[str, ...]
    field: str | None


@dataclass(frozen=True, slots=True)
class Think:
    """One fresh model call. `closing` are the captures whose field the reply has to end with, as JSON."""

    prompt: Template
    preamble: PromptSource | None = None
    closing: tuple[Capture, ...] = ()


@dataclass(frozen=True, slots=True)
class UseTool:
    """One tool call. `problem` says why the arguments can never be built, found when the plan was made."""

    connection: str
    tool: str
    arguments: Arguments
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Ask:
    """One question to a person."""

    kind: AskKind
    prompt: Template
    options: tuple[Template, ...] = ()
    default: Template | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    variable: str
    operator: Literal["==", "!="]
    value: str


@dataclass(frozen=True, slots=True)
class Case:
    """`test` is None for `else`."""

    test: Comparison | None
    body: Sequence


@dataclass(frozen=True, slots=True)
class Match:
    """The first case whose test holds. With `decide_first` the choice comes before the step's own work,
    and no match skips the whole step; without, the step's own result may be what is tested."""

    cases: tuple[Case, ...]
    decide_first: bool


@dataclass(frozen=True, slots=True)
class Step:
    """A numbered place in a document: a question, then its own work, then one arm; each may be missing."""

    position: int
    label: str
    title: str
    ask: Ask | None = None
    work: Think | UseTool | None = None
    match: Match | None = None
    capture: Capture | None = None
    number: str = ""
    span: Span = NOWHERE


@dataclass(frozen=True, slots=True)
class Sequence:
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Artifact:
    type: Template


@dataclass(frozen=True, slots=True)
class Plan:
    """A document, ready to run."""

    title: str
    format: Literal["playbook", "directive", "pipeline"]
    inputs: tuple[Input, ...]
    body: Sequence
    system: str = ""
    description: str = ""
    artifact: Artifact | None = None

    def steps(self) -> Iterator[tuple[str, Step]]:
        """Every step with the path of its position, parents before their sub-steps."""
        return walk(self.body)


def walk(sequence: Sequence, prefix: str = "") -> Iterator[tuple[str, Step]]:
    for step in sequence.steps:
        path = f"{prefix}{step.position}"
        yield path, step
        if step.match:
            for number, case in enumerate(step.match.cases, 1):
                yield from walk(case.body, f"{path}/case[{number}]/")
