"""The work of the steps of pipelines: nodes of the Plan, beside those of playbooks in `plan/nodes.py`."""

from __future__ import annotations

import typing
from collections.abc import Mapping

from msgspec import Struct

from quire.plan.nodes import StepWork
from quire.source import NOWHERE, Span

if typing.TYPE_CHECKING:
    from quire.expr import Compiled
    from quire.plan.nodes import Sequence, Step, Template
    from quire.values import Value


@typing.final
class Formula(Struct, frozen=True):
    """An expression, compiled once."""

    text: str
    compiled: Compiled
    span: Span = NOWHERE
    """Where its text is in the document."""


@typing.final
class Literal(Struct, frozen=True):
    """A value of the document, passed on unchanged."""

    value: Value


def listed_items(source: Literal | Formula | None) -> int:
    """Return how many items a list that stands in the document has; 0 for any other source."""
    return len(source.value) if isinstance(source, Literal) and isinstance(source.value, list | tuple) else 0


class Transform(StepWork, frozen=True):
    """A pure step: its value is the value of the expression."""

    value: Formula
    is_leaf: typing.ClassVar[bool] = True


class Invoke(StepWork, frozen=True):
    """One call of a tool by its name.

    For the tool `shell`, the argument `command` is either a text, run by a shell, or a list, run without a shell.
    """

    tool: str
    arguments: tuple[tuple[str, Literal | Formula], ...] = ()
    schema: str | None = None
    """Name of the schema that the result must match, if there is one."""
    piped: bool = True
    """True if a command is given the incoming pipe to read; false if its step names its input."""
    is_leaf: typing.ClassVar[bool] = True

    def tool_calls(self) -> tuple[tuple[str, str], ...]:
        return (("", self.tool),)


class AgentStepSettings(Struct, frozen=True):
    """The settings that a step gives its model call in place of those of its profile: None where it gives none."""

    model: str = ""
    """A tier or the id of a model; empty for that of the profile."""
    turns: int | None = None
    max_tokens: int | None = None
    temperature: float | None = None


class Agent(StepWork, frozen=True):
    """One turn of an agent. The references of the prompt are dotted paths and insert only values."""

    prompt: Template
    identity: str | None = None
    tools: tuple[str, ...] | None = None
    """Restricts the tools that the agent may use: None keeps those of its profile, an empty tuple allows none."""
    schema: str | None = None
    file: str = ""
    """The file that the prompt is read from when the step runs; then `prompt` is empty."""
    settings: AgentStepSettings | None = None
    asks_model: typing.ClassVar[bool] = True
    is_leaf: typing.ClassVar[bool] = True


class Call(StepWork, frozen=True):
    """A call of another document by its static name."""

    document: str
    passes: tuple[tuple[str, Formula], ...] = ()
    """All values of the caller that the callee can see."""

    def calls(self) -> tuple[Call, ...]:
        return (self,)


class Block(StepWork, frozen=True):
    """Several steps in place of one, on the same stores. Its value is that of its last step."""

    body: Sequence
    shares_stores: typing.ClassVar[bool] = True

    def parts(self) -> tuple[tuple[str, Step], ...]:
        return tuple((f"steps/{step.position}", step) for step in self.body.steps)


class Select(StepWork, frozen=True):
    """Run the call or the block whose label equals the text of a value."""

    on: Formula
    cases: tuple[tuple[str, Call | Block], ...]
    default: Call | Block | Formula | None = None
    """The call, the block or the value for a label that no case has. None fails the step."""
    shares_stores: typing.ClassVar[bool] = True

    def targets(self) -> tuple[Call | Block, ...]:
        """Return everything that may be run."""
        last = (self.default,) if isinstance(self.default, Call | Block) else ()
        return (*(target for _, target in self.cases), *last)

    def calls(self) -> tuple[Call, ...]:
        return tuple(target for target in self.targets() if isinstance(target, Call))

    def parts(self) -> tuple[tuple[str, Step], ...]:
        return tuple(
            (f"match[{number}]/{step.position}", step)
            for number, target in enumerate(self.targets(), 1)
            if isinstance(target, Block)
            for step in target.body.steps
        )


class OnError(Struct, frozen=True):
    """The policy for a failure."""

    policy: typing.Literal["continue", "abort", "retry"]
    times: int = 0
    survives: bool = False
    """True for `retry(N), continue`: when the last attempt has failed too, the run continues."""

    @property
    def goes_on(self) -> bool:
        """Tell whether the run continues after the last failure."""
        return self.survives or self.policy == "continue"

    def __str__(self) -> str:
        """Return the policy as it is written in a document."""
        if self.policy != "retry":
            return self.policy
        return f"retry({self.times}), continue" if self.survives else f"retry({self.times})"


class Guard(Struct, frozen=True):
    """The conditions around the work of a step in the Quire dialect: its `when`, its time and its retries."""

    when: Formula | None = None
    on_error: OnError | None = None
    default: Formula | None = None
    """The value of a step whose failure was survived; None for null."""
    timeout: float | None = None
    """In seconds."""

    @property
    def goes_on(self) -> bool:
        """Tell whether the run continues after a failure of the step."""
        return self.on_error is not None and self.on_error.goes_on


class Fold(StepWork, frozen=True):
    """Run one step for each item in order, each time with the value of the previous iteration."""

    source: Literal | Formula | None
    """None means the incoming pipe."""
    init: Formula
    do: Step
    max_items: int | None = None
    binds: typing.ClassVar[Mapping[str, tuple[str, ...]]] = {"fold": ("item", "acc")}

    def parts(self) -> tuple[tuple[str, Step], ...]:
        return (("fold", self.do),)


class ForEach(StepWork, frozen=True):
    """Run one step for each item in parallel, then `collect` on the results in order."""

    source: Literal | Formula | None
    do: Step
    collect: Step
    on_error: OnError
    max_parallel: int = 8
    max_items: int | None = None
    default: Formula | None = None
    """The value of an item that failed; without it such an item is left out."""
    sees_loops: bool = False
    """True in the Quire dialect: the steps in it see `acc` and `round` of a loop around it."""
    binds: typing.ClassVar[Mapping[str, tuple[str, ...]]] = {"for_each": ("item",), "collect": ("pipe", "errors")}

    def parts(self) -> tuple[tuple[str, Step], ...]:
        return (("for_each", self.do), ("collect", self.collect))


class Parallel(StepWork, frozen=True):
    """Run named branches in parallel, then `collect` on their results by name."""

    branches: tuple[tuple[str, Step], ...]
    collect: Step
    on_error: OnError
    default: Formula | None = None
    """The value of a branch that failed; without it such a branch is left out."""
    sees_loops: bool = False
    binds: typing.ClassVar[Mapping[str, tuple[str, ...]]] = {"parallel": (), "collect": ("pipe", "errors")}

    def parts(self) -> tuple[tuple[str, Step], ...]:
        return (*((f"parallel[{name}]", branch) for name, branch in self.branches), ("collect", self.collect))


class Repeat(StepWork, frozen=True):
    """Run one step round after round until an expression holds, each time with the value of the round before."""

    init: Formula | None
    """The value before the first round; None for null."""
    do: Step
    until: Formula
    max: int
    keeps_last: bool = False
    """True to keep the last value if the expression never holds; false to fail the step."""
    binds: typing.ClassVar[Mapping[str, tuple[str, ...]]] = {"repeat": ("acc", "round")}

    def parts(self) -> tuple[tuple[str, Step], ...]:
        return (("repeat", self.do),)


class Fail(StepWork, frozen=True):
    """Fail with a message of the document."""

    message: Literal | Formula


class Stop(StepWork, frozen=True):
    """End the pipeline well, before its last step."""

    value: Formula | None
    """The result of the pipeline; None for the incoming pipe."""
    ends: typing.ClassVar[bool] = True


PipelineWork: typing.TypeAlias = (
    Transform | Invoke | Agent | Call | Select | Block | Fold | ForEach | Parallel | Repeat | Fail | Stop
)
