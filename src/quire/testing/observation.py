"""An observation: everything that was seen of a run in a case. Expectations, coverage and snapshots read it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct, field

from quire.plan.ways import is_named, last_label, typed_way

if TYPE_CHECKING:
    from quire.engine.records import Event
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
