"""An observation: everything that was seen of a run in a case, from the view of the run and from the case's world.

Expectations, coverage and snapshots read it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct, field

from quire.engine.driver.drive import DriveResult
from quire.engine.proven_bounds import BROKEN
from quire.engine.thread_progress import path_order
from quire.plan.vocabulary import is_named, last_label, typed_way
from quire.runs.outcome import by_label, exit_of
from quire.trust.capabilities import denied_capability

if TYPE_CHECKING:
    from quire.engine.records import Event
    from quire.errors import QuireError
    from quire.runs.outcome import RunView
    from quire.testing.case_run import CaseWorld
    from quire.values import Value


class SeenPrompt(Struct):
    """One call of the model."""

    path: str
    way: str
    system: str
    messages: tuple[tuple[str, str], ...]
    """The role and the text of each message of the conversation, in order."""
    tools: tuple[str, ...] = ()
    """The names of the tools that were offered."""

    @property
    def label(self) -> str:
        return last_label(self.way)

    @property
    def text(self) -> str:
        """The whole prompt: the system text, then the messages."""
        return "\n\n".join(part for part in (self.system, *(text for _, text in self.messages)) if part)

    def is_of(self, step: str) -> bool:
        """Tell whether a name means the step of this call: its label, the way to it, or the path of the call."""
        return step == self.path or is_named(self.way, (typed_way(step),)) or self.path.startswith(f"{step}/")


class SeenQuestion(Struct):
    """One question to a person, and the answer if there was one."""

    path: str
    way: str
    kind: str
    prompt: str
    options: tuple[str, ...] = ()
    answer: str | None = None

    def is_of(self, step: str) -> bool:
        return step == self.path or is_named(self.way, (typed_way(step),))


class SeenCall(Struct):
    """One call of a tool that reached the gate."""

    path: str
    way: str
    tool: str
    """The canonical id: `rye/file-system/write`."""
    name: str
    """The name by which it was called."""
    arguments: Mapping[str, Value]
    result: Value = None
    failure: str = ""
    refused: str = ""
    """The capability that was missing; empty if the call was allowed."""


class Used(Struct):
    """The consumption of a run."""

    model_calls: int = 0
    tool_calls: int = 0
    threads: int = 0
    turns: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = 0.0
    seconds: float = 0.0
    """By the clock of the case."""
    parallel: int = 0
    """The most effects that were under way at the same moment."""

    def as_value(self) -> dict[str, Value]:
        return {name: getattr(self, name) for name in self.__struct_fields__}


class Observation(Struct):
    """A run of a case, when it rests or has ended."""

    status: str
    """The status of the run; `not_started` if it could not be started."""
    exit: int
    """The exit code that `quire run` would have."""
    output: Value = None
    artifact: str = ""
    error: Mapping[str, Value] | None = None
    """`kind`, `message` and `step`."""
    inputs: Mapping[str, Value] = field(default_factory=dict)
    named: Mapping[str, str] = field(default_factory=dict)
    stores: Mapping[str, Value] = field(default_factory=dict)
    outputs: Mapping[str, Value] = field(default_factory=dict)
    steps: Mapping[str, str] = field(default_factory=dict)
    """The status of each step by its label: completed, skipped, failed, waiting or pending."""
    prompts: list[SeenPrompt] = field(default_factory=list)
    asked: list[SeenQuestion] = field(default_factory=list)
    calls: list[SeenCall] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    hooks: Mapping[str, int] = field(default_factory=dict)
    """How often the actions of each hook ran, by the id of the hook."""
    files: Mapping[str, str | None] = field(default_factory=dict)
    """The files of the case's folder by path; None for one that is not text."""
    events: list[Event] = field(default_factory=list)
    """Without the pieces of replies, and without those that a replay repeats."""
    warnings: list[tuple[str, str]] = field(default_factory=list)
    """The label of the step, or an empty text, and the message."""
    used: Used = field(default_factory=Used)


NOT_STARTED = "not_started"
STATUSES = {"awaiting_input": "waiting", "running": "pending", "interrupted": "pending", "": "pending"}


def not_started(error: QuireError, inputs: Mapping[str, Value]) -> Observation:
    """Return the observation of a case whose document could not be started."""
    return Observation(NOT_STARTED, error.exit_code, error=error_value(error), inputs=inputs)


def error_value(error: QuireError) -> dict[str, Value]:
    return {"kind": type(error).__name__, "message": str(error), "step": ""}


def observe(view: RunView, world: CaseWorld, inputs: Mapping[str, Value]) -> Observation:
    """Return the observation of a run that rests or has ended."""
    row, outputs = view.row, view.details.get("outputs")
    # They are problems of their own, whether or not a case expects warnings.
    broken = {str(event.data.get("message", "")) for event in world.events if event.type == BROKEN}
    answered = {record.path: str(record.value) for record in view.effects if record.kind == "ask"}
    for path, question in world.people.seen.items():
        question.answer = answered.get(path, question.answer)
    return Observation(
        status=str(row.status),
        exit=exit_of(DriveResult(row.status, row.position, failure=view.rest.failure)),
        output=view.value,
        artifact=view.artifact,
        error=view.error,
        inputs={**inputs, **view.pins.inputs},
        named=dict(view.named),
        stores=dict(view.stores),
        outputs=outputs if isinstance(outputs, Mapping) else {},
        steps={label: STATUSES.get(step.status, step.status) for label, step in by_label(view.own_steps).items()},
        prompts=sorted(world.model.seen, key=lambda prompt: path_order(prompt.path)),
        asked=list(world.people.seen.values()),
        calls=list(world.tools.seen),
        refused=refused_in(world),
        hooks=Counter(str(event.data.get("hook", "")) for event in world.events if event.type == "hook_action"),
        files=world.folder.listing() if world.folder.is_made else {},
        events=world.events,
        warnings=[warning for warning in view.warnings if warning[1] not in broken],
        used=_used(view, world),
    )


def refused_in(world: CaseWorld) -> list[str]:
    """Return the capabilities that were missing, each once, in order."""
    capabilities = [call.refused for call in world.tools.seen if call.refused]
    for event in world.events:
        if event.type in ("tool_told", "agent_told") and event.data.get("kind") == "denied":
            capabilities.append(denied_capability(str(event.data.get("result", ""))))
    return list(dict.fromkeys(filter(None, capabilities)))


def _used(view: RunView, world: CaseWorld) -> Used:
    row, prompts = view.row, world.model.seen
    return Used(
        model_calls=len(prompts),
        tool_calls=len(world.tools.seen),
        threads=sum(event.type == "thread_started" for event in world.events),
        turns=sum("/turn[" in prompt.path for prompt in prompts),
        input_tokens=row.input_tokens,
        output_tokens=row.output_tokens,
        cost=row.cost,
        seconds=round(world.now() - row.created_at, 6),
        parallel=world.meter.most,
    )
