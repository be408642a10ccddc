"""The Plan: the one tree that every format is lowered to and that everything else reads.

Positions number the children of a node from 1, as people do; they, never labels, make up the path of
an effect. Texts that hold references are parsed into `Template`s here, once, so that running a step is
only looking values up.
"""

from __future__ import annotations

import typing
from collections.abc import Iterator, Mapping
from typing import TypeAlias, assert_never

from msgspec import Struct, field

from quire.plan.thread import Thread
from quire.source import NOWHERE, Span

if typing.TYPE_CHECKING:
    from quire.expr import Compiled
    from quire.schema import Schema
    from quire.values import Value

SEMANTICS_VERSION = 2
"""The rules of running that a new run gets and pins. A run that was started under older ones keeps them, so that its
journal answers the same requests:

1. (0.1.0) What `extract` wants stands last in the system text, and a number that it finds is written anew (1.10 as
   1.1). The note about results that are left out counts "1 earlier steps". The path of `@prompt(file:…)` is not
   rendered. A `json` capture keeps its fence. The artifact of a playbook that ends in `file__write` is the tool's
   result. A pipeline's command with a number among its words fails.
2. What `extract` wants stands at the end of the user's message; all else of 1 is the other way.
"""
KNOWN_VERSIONS = (1, 2)

InputType = typing.Literal["string", "text", "number", "boolean", "enum"]
CaptureType = typing.Literal["string", "text", "number", "boolean", "enum", "json"]
AskKind = typing.Literal["input", "confirm", "select"]


class Reference(Struct, frozen=True):
    """A place in a template that a value goes to; `raw` is what stands there when nothing has that name."""

    name: str
    default: str | None
    raw: str


class Template(Struct, frozen=True):
    """Text and references in turn. Values are put in once and never read again for references."""

    parts: tuple[str | Reference, ...]

    def references(self) -> Iterator[Reference]:
        return (part for part in self.parts if isinstance(part, Reference))

    @property
    def empty(self) -> bool:
        return not self.parts


Arguments: TypeAlias = "None | bool | int | float | Template | Hole | tuple[Arguments, ...] | dict[str, Arguments]"


class Hole(Struct, frozen=True):
    """An unquoted reference among tool arguments: becomes exactly one JSON value, never spliced text."""

    reference: Reference


class Input(Struct, frozen=True):
    name: str
    type: InputType
    default: str | None
    options: tuple[str, ...]
    description: str
    required: bool


class PromptSource(Struct, frozen=True):
    """A text that is fetched when its step first runs; for `variable`, `where` is the variable's name."""

    scheme: typing.Literal["library", "file", "mcp", "variable"]
    where: str


class Capture(Struct, frozen=True):
    """How the result of a step becomes a named value."""

    name: str
    type: CaptureType | None
    options: tuple[str, ...]
    field: str | None


class Think(Struct, frozen=True):
    """One fresh model call. `closing` are the captures whose field the reply has to end with, as JSON."""

    prompt: Template
    preamble: PromptSource | None = None
    closing: tuple[Capture, ...] = ()


class UseTool(Struct, frozen=True):
    """One tool call. `problem` says why the arguments can never be built, found when the plan was made."""

    connection: str
    tool: str
    arguments: Arguments
    problem: str = ""


class Ask(Struct, frozen=True):
    """One question to a person."""

    kind: AskKind
    prompt: Template
    options: tuple[Template, ...] = ()
    default: Template | None = None


class Comparison(Struct, frozen=True):
    variable: str
    operator: typing.Literal["==", "!="]
    value: str


class Case(Struct, frozen=True):
    """`test` is None for `else`."""

    test: Comparison | None
    body: Sequence


class Match(Struct, frozen=True):
    """The first case whose test holds. With `decide_first` the choice comes before the step's own work,
    and no match skips the whole step; without, the step's own result may be what is tested."""

    cases: tuple[Case, ...]
    decide_first: bool


class Formula(Struct, frozen=True):
    """An expression, compiled once. `span` is where its text stands in the document."""

    text: str
    compiled: Compiled
    span: Span = NOWHERE


class Literal(Struct, frozen=True):
    """A value as the document has it, passed on untouched."""

    value: Value


class Transform(Struct, frozen=True):
    """A pure step: its value is what the expression gives."""

    value: Formula


class Invoke(Struct, frozen=True):
    """One call of a tool by its name. The result is held to `schema` where there is one.

    `shell` is the tool whose argument `command` is a text for a shell or a list for none.
    """

    tool: str
    arguments: tuple[tuple[str, Literal | Formula], ...] = ()
    schema: str | None = None


class Agent(Struct, frozen=True):
    """One turn of an agent. The prompt's references are dotted paths, values only.

    `tools` narrows what the agent may use: None leaves its profile's, an empty tuple leaves nothing.
    """

    prompt: Template
    identity: str | None = None
    tools: tuple[str, ...] | None = None
    schema: str | None = None


class Call(Struct, frozen=True):
    """Another document by its static name. `passes` are all that it sees of its caller."""

    document: str
    passes: tuple[tuple[str, Formula], ...] = ()


class Select(Struct, frozen=True):
    """The call whose label is the text of a value."""

    on: Formula
    cases: tuple[tuple[str, Call], ...]
    default: Call | None = None


class OnError(Struct, frozen=True):
    policy: typing.Literal["continue", "abort", "retry"]
    times: int = 0

    def __str__(self) -> str:
        """As it is written in a document."""
        return f"retry({self.times})" if self.policy == "retry" else self.policy


class Fold(Struct, frozen=True):
    """One step again and again, each time with the value that it gave before. `source` None is the incoming pipe."""

    source: Literal | Formula | None
    init: Formula
    do: Step
    max_items: int | None = None


class ForEach(Struct, frozen=True):
    """One step for each item, side by side; then `collect` on the results in order."""

    source: Literal | Formula | None
    do: Step
    collect: Step
    on_error: OnError
    max_parallel: int = 8
    max_items: int | None = None


class Parallel(Struct, frozen=True):
    """Named branches side by side; then `collect` on their results by name."""

    branches: tuple[tuple[str, Step], ...]
    collect: Step
    on_error: OnError


PipelineWork: TypeAlias = Transform | Invoke | Agent | Call | Select | Fold | ForEach | Parallel
Work: TypeAlias = Think | UseTool | PipelineWork | Thread
"""After a kind is added mypy finds the places that must know it; CONTRIBUTING.md lists those that it cannot find."""


class Step(Struct, frozen=True):
    """A numbered place in a document: a question, then its own work, then one arm; each may be missing.

    In a pipeline the title is the kind of the step, and `capture` names the store that its value goes to.
    """

    position: int
    label: str
    title: str
    ask: Ask | None = None
    work: Work | None = None
    match: Match | None = None
    capture: Capture | None = None
    number: str = ""
    span: Span = NOWHERE


class Sequence(Struct, frozen=True):
    steps: tuple[Step, ...]


class Artifact(Struct, frozen=True):
    type: Template


class Plan(Struct, frozen=True):
    """A document, ready to run."""

    title: str
    format: typing.Literal["playbook", "directive", "pipeline"]
    inputs: tuple[Input, ...]
    body: Sequence
    system: str = ""
    description: str = ""
    artifact: Artifact | None = None
    schemas: Mapping[str, Schema] = field(default_factory=dict)

    def steps(self) -> Iterator[tuple[str, Step]]:
        """Every step with the path of its position, parents before their sub-steps."""
        return walk(self.body)


def walk(sequence: Sequence, prefix: str = "") -> Iterator[tuple[str, Step]]:
    for step in sequence.steps:
        yield from _walk_step(step, f"{prefix}{step.position}")


def _walk_step(step: Step, path: str) -> Iterator[tuple[str, Step]]:
    yield path, step
    if step.match:
        for number, case in enumerate(step.match.cases, 1):
            yield from walk(case.body, f"{path}/case[{number}]/")
    match step.work:
        case Fold():
            yield from _walk_step(step.work.do, f"{path}/fold")
        case ForEach():
            yield from _walk_step(step.work.do, f"{path}/for_each")
            yield from _walk_step(step.work.collect, f"{path}/collect")
        case Parallel():
            for name, branch in step.work.branches:
                yield from _walk_step(branch, f"{path}/parallel[{name}]")
            yield from _walk_step(step.work.collect, f"{path}/collect")
        case None | Think() | UseTool() | Transform() | Invoke() | Agent() | Call() | Select() | Thread():
            pass
        case _:
            assert_never(step.work)


def calls_of(work: Work | None) -> tuple[Call, ...]:
    """The calls of other documents that a step may make. A playbook's `UseTool` may be one too: that depends on which
    documents there are."""
    match work:
        case Call():
            return (work,)
        case Select(cases=cases, default=default):
            return (*(call for _, call in cases), *((default,) if default else ()))
        case None | Think() | UseTool() | Transform() | Invoke() | Agent() | Fold() | ForEach() | Parallel() | Thread():
            return ()
        case _:
            assert_never(work)
