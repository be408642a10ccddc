"""The Plan: the one tree that every format is lowered to and that all other modules read.

Positions number the children of a node from 1. The path of an effect consists of positions, never of labels. Texts with
references are parsed into `Template`s once, when the plan is built, so that running a step only has to look up values.
A plan is a tree, so the collector of garbage does not have to look at the nodes of which there are many (`gc=False`).
The work of pipelines and of directives is not loaded for a playbook.

Each kind of work answers questions about itself (`StepWork`): one that contains steps, calls documents or names tools
overrides the method, and tests/plan/test_work.py compares the answers with its fields. A question that only one module
asks is a `match` there, closed by `assert_never`.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, wraps
from typing import TypeAlias

from msgspec import Struct, field

from quire.source import NOWHERE, Span

if typing.TYPE_CHECKING:
    from quire.plan.pipeline_work import Call, Guard, PipelineWork
    from quire.plan.thread import Thread
    from quire.schema import Field, Schema

    T = typing.TypeVar("T")


class StepWork(Struct, frozen=True):
    """The base of every kind of work. By itself it contains no step, calls no document and names no tool."""

    asks_model: typing.ClassVar[bool] = False
    is_leaf: typing.ClassVar[bool] = False
    """True for the kinds that pipelines have most of, which contain no step and never end a pipeline: a long document
    is searched for ends in little time."""
    ends: typing.ClassVar[bool] = False
    """True for work that ends its pipeline."""
    shares_stores: typing.ClassVar[bool] = False
    """True for work whose steps write the stores around it, and emit events where it does."""
    binds: typing.ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """The names that only the steps inside see, by the word of their part of the path. The first word is that of the
    items or rounds. Names of branches are added by `plan/parts.py`."""

    def parts(self) -> tuple[tuple[str, Step], ...]:
        """Return the steps inside, each with its part of the path: `for_each`, `parallel[left]`, `collect`."""
        return ()

    def calls(self) -> tuple[Call, ...]:
        """Return the calls of other documents that it may make.

        A tool call of a playbook may be one too: that depends on the existing documents.
        """
        return ()

    def tool_calls(self) -> tuple[tuple[str, str], ...]:
        """Return the tools that it calls itself, as (connection, tool); a tool without a connection has an empty
        one."""
        return ()


SEMANTICS_VERSION = 4
"""The version of the execution rules that a new run gets and pins.

A run that was started under an older version keeps it, so that its journal answers the same requests:

1. (0.1.0) What `extract` asks for is last in the system text, and a number that it finds is rewritten (1.10 as
   1.1). The note about omitted results counts "1 earlier steps". The path of `@prompt(file:…)` is not rendered. A
   `json` capture keeps its fence. The artifact of a playbook that ends in `file__write` is the result of the tool. A
   command of a pipeline with a number among its words fails.
2. The request of `extract` is at the end of the user message; every other rule of version 1 is reversed.
3. Playbooks have `@context`, `@model`, `from:` in their artifact, and line breaks in questions. Before, these are text.
4. A missing library prompt leaves a step elicit-only, and keys of tool arguments are rendered. In pipelines a store
   named `errors` hides that of `collect`, loops show `acc` and `round` to inner fans, a skipped step has its default,
   and `{name}` in a prompt of the dialect must have a value.
"""
KNOWN_VERSIONS = (1, 2, 3, 4)
EXTENDED_PLAYBOOKS = 3
"""The first version in which playbooks have more than the format."""

InputType: TypeAlias = "typing.Literal['string', 'text', 'number', 'boolean', 'enum']"
CaptureType: TypeAlias = "typing.Literal['string', 'text', 'number', 'boolean', 'enum', 'json']"
AskKind: TypeAlias = "typing.Literal['input', 'confirm', 'select']"


class Reference(Struct, frozen=True, gc=False):
    """A place in a template where a value is inserted."""

    name: str
    default: str | None
    raw: str
    """The text as written, kept if no value has this name."""


class Template(Struct, frozen=True, gc=False):
    """Text and references, alternating. Inserted values are never scanned for references again."""

    parts: tuple[str | Reference, ...]

    def references(self) -> Iterator[Reference]:
        return (part for part in self.parts if type(part) is Reference)

    @property
    def empty(self) -> bool:
        return not self.parts


Arguments: TypeAlias = "None | bool | int | float | Template | ValueSlot | tuple[Arguments, ...] | dict[str, Arguments]"


class ValueSlot(Struct, frozen=True):
    """An unquoted reference in tool arguments. It becomes exactly one JSON value, never inserted text."""

    reference: Reference


class Input(Struct, frozen=True):
    name: str
    type: InputType
    default: str | None
    options: tuple[str, ...]
    description: str
    required: bool

    @property
    def is_needed(self) -> bool:
        """True if a run does not start without a value for it."""
        return self.required and self.default is None


class PromptSource(Struct, frozen=True):
    """A text that is fetched when its step first runs."""

    scheme: typing.Literal["library", "file", "mcp", "variable"]
    where: str
    """The place to fetch from; for the scheme `variable`, the name of the variable."""


class Capture(Struct, frozen=True):
    """How the result of a step becomes a named value."""

    name: str
    type: CaptureType | None
    options: tuple[str, ...]
    field: str | None


class StepModel(Struct, frozen=True):
    """The model of a playbook step as the settings have it. It is found when a run starts, and pinned."""

    model: str = ""
    """Empty for the run's own model."""
    profile: str = ""
    """The profile of the settings whose model this is; empty if none."""
    agent: str = ""
    """The profile whose tools the step may use; empty if none."""
    tools: tuple[str, ...] = ()
    """Names and patterns of these tools; those that change something are never offered."""
    budget: int | None = None
    """Characters of earlier results that this model is given; None for as many as the run's own model."""


class Think(StepWork, frozen=True, gc=False):
    """One model call in a new conversation."""

    prompt: Template
    preamble: PromptSource | None = None
    closing: tuple[Capture, ...] = ()
    """Captures whose fields the reply must contain at its end, as JSON."""
    context: tuple[str, ...] | None = None
    """The names of the earlier results that the model sees; None for all."""
    model: str = ""
    """The tier or profile that the document asks for; empty if it does not."""
    cast: StepModel | None = None
    """The model and the tools that the step gets in a run; None for the run's own model without tools."""
    asks_model: typing.ClassVar[bool] = True


class UseTool(StepWork, frozen=True):
    """One tool call of a playbook."""

    connection: str
    tool: str
    arguments: Arguments
    problem: str = ""
    """Why the arguments can never be built, found when the plan was made; else empty."""

    def tool_calls(self) -> tuple[tuple[str, str], ...]:
        return ((self.connection, self.tool),)


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
    """One arm of a `Match`."""

    test: Comparison | None
    """None for `else`."""
    body: Sequence


class Match(Struct, frozen=True):
    """Run the first case whose test holds."""

    cases: tuple[Case, ...]
    decide_first: bool
    """If true, the choice comes before the work of the step, and no match skips the whole step.

    If false, the result of the step itself may be tested.
    """


PlainWork: TypeAlias = "Think | UseTool | Thread"
Work: TypeAlias = "PlainWork | PipelineWork"
"""After a kind is added mypy finds the places that must know it; CONTRIBUTING.md lists those that it cannot find."""


class Step(Struct, frozen=True, gc=False):
    """A numbered step of a document: a question, then its own work, then one arm of a branch. Each part may be missing.

    `capture` names the store that receives the value of a step of a pipeline. `step_name` is the name in all views.
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
    guard: Guard | None = None
    """Only in the Quire dialect of pipelines."""
    kind: str = ""
    """The kind of a step of a pipeline, as the document writes it."""

    def calls(self) -> tuple[Call, ...]:
        """Return the calls of other documents that its work may make."""
        return self.work.calls() if self.work else ()

    @property
    def plain_work(self) -> PlainWork | None:
        """The work of a step of a playbook or a directive. Raises `TypeError` for a step of a pipeline."""
        if self.work is None or isinstance(self.work, Think | UseTool):
            return self.work
        from quire.plan.pipeline_work import PipelineWork

        if isinstance(self.work, PipelineWork):
            raise TypeError(f"{self.label} is a step of a pipeline")
        return self.work


def may_stop(step: Step) -> bool:
    """Tell whether a step can end its pipeline before the steps after it."""
    return _any_may_stop((step,))


def _any_may_stop(steps: Iterable[Step]) -> bool:
    waiting = [step.work for step in steps]
    for work in waiting:  # grows while it is gone through
        if work is not None and not work.is_leaf:
            if work.ends:
                return True
            waiting += [part.work for _, part in work.parts()]
    return False


class Sequence(Struct, frozen=True, gc=False):
    steps: tuple[Step, ...]


class Artifact(Struct, frozen=True):
    type: Template
    """Empty if the document names none."""
    source: str = ""
    """The output or the step whose result is the artifact; empty for the last step that ran."""


class Plan(Struct, frozen=True, dict=True):
    """A document, ready to run."""

    title: str
    format: typing.Literal["playbook", "directive", "pipeline"]
    inputs: tuple[Input, ...]
    body: Sequence
    system: str = ""
    description: str = ""
    artifact: Artifact | None = None
    schemas: Mapping[str, Schema] = field(default_factory=dict)
    declared: tuple[Field, ...] | None = None
    """The inputs that a pipeline declares; None if they are inferred. `inputs` are those of the other formats."""

    def steps(self) -> Iterator[tuple[str, Step]]:
        """Yield every step with its path, parents before their sub-steps."""
        return iter(self._steps)

    @cached_property
    def _steps(self) -> tuple[tuple[str, Step], ...]:
        """Walked through once: a start alone asks some twenty questions about the steps."""
        return tuple(walk(self.body))

    @cached_property
    def written(self) -> frozenset[str]:
        """The names that steps keep results under, at any depth."""
        return frozenset(step.capture.name for _, step in self.steps() if step.capture)

    @cached_property
    def matching_work(self) -> int:
        """The most instructions that a pattern of the declared inputs takes; 0 without patterns."""
        from quire.safe_regex import program_size
        from quire.schema import patterns

        fields = (self.declared or (), *(schema.fields for schema in self.schemas.values()))
        return max((program_size(pattern) for several in fields for pattern in patterns(several)), default=0)

    @property
    def infers_inputs(self) -> bool:
        """True for a pipeline without a declaration: it takes any input, and its steps tell which ones they read."""
        return self.format == "pipeline" and self.declared is None

    @property
    def has_call_cap(self) -> bool:
        """True if the settings say how many model calls a run may make: of a pipeline, which can fan out."""
        return self.format == "pipeline"

    @property
    def thread(self) -> Thread | None:
        """The thread that a directive is; None for the other formats."""
        if self.format != "directive":
            return None
        from quire.plan.thread import Thread

        return next((step.work for step in self.body.steps if isinstance(step.work, Thread)), None)

    def stops(self) -> dict[str, Step]:
        """Return the steps, by path, after which a run can stop or be forked: of a pipeline, its top-level ones; of a
        directive none, because its turns are known only in a run."""
        if self.thread:
            return {}
        if self.format == "pipeline":
            return {str(step.position): step for step in self.body.steps}
        return dict(self.steps())


def remembered(find: Callable[[Plan], T]) -> Callable[[Plan], T]:
    """Keep the result of a function about a plan with the plan, which never changes: many runs may start with it."""
    key = f"{find.__module__}.{find.__name__}"

    @wraps(find)
    def recall(plan: Plan) -> T:
        facts = plan.__dict__
        if key not in facts:
            facts[key] = find(plan)
        fact: T = facts[key]
        return fact

    return recall


@remembered
def may_stop_early(plan: Plan) -> bool:
    """Tell whether any step can end a pipeline before the steps after it."""
    return _any_may_stop(plan.body.steps)


def only_thinks(plan: Plan) -> bool:
    """Tell whether the steps of a plan do nothing but ask people, and models that have no tools: it needs no permission
    and calls no document."""
    works = [step.work for _, step in plan.steps() if step.work is not None]
    return all(type(work) is Think and work.preamble is None and work.cast is None for work in works)


def walk(sequence: Sequence, prefix: str = "") -> Iterator[tuple[str, Step]]:
    """Yield every step of a sequence with its path, parents before their sub-steps."""
    for step in sequence.steps:
        yield from _walk_step(step, f"{prefix}{step.position}")


def _walk_step(step: Step, path: str) -> Iterator[tuple[str, Step]]:
    yield path, step
    if step.match:
        for number, case in enumerate(step.match.cases, 1):
            yield from walk(case.body, f"{path}/case[{number}]/")
    for name, part in step.work.parts() if step.work else ():
        yield from _walk_step(part, f"{path}/{name}")
