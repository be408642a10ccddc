"""Requests that the interpreter sends to the driver.

A request is a value: it says what is wanted and where in the document, never how. Everything that `content()` returns
is covered by the hash that the journal keeps, so a replay that requests something else is noticed. Requests that a pure
step creates are not frozen, because creating a frozen value is slow.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from msgspec import Struct, field

from quire.engine.records import add_costs
from quire.errors import Refused, StepFailed
from quire.plan.vocabulary import last_label
from quire.values import Value, clean

if TYPE_CHECKING:
    from quire.engine.conversation import Message, Offered
    from quire.engine.earlier_results import SystemText
    from quire.engine.interpreter.thread.budgets import Limits
    from quire.engine.premises import PureWork
    from quire.engine.records import EffectRecord

Walk: TypeAlias = "Generator[Request, Any, Value]"
"""A running interpreter: a generator that yields requests, is sent their answers, and returns its result."""

Steps: TypeAlias = "Generator[Request, Any, Any]"
"""A part of a walk, used only by its own interpreter: its return value is not a value of the run."""


TINY = 1e-9
"""Dollars that may be lost when fractions are added up: an amount below it counts as nothing."""


class Money(Protocol):
    """A budget that is read, and from which an amount is held back, at the moment when a call is made."""

    @property
    def left(self) -> float: ...

    def hold(self, amount: float) -> None:
        """Set an amount aside; a negative amount gives it back."""
        ...


class Bounds(Struct, frozen=True):
    """Limits that remain for one model call of a thread.

    Limits are those of the present moment, so bounds are not part of the hashed request: a recorded call is never
    refused, and a refused one is recorded as a failure whose kind is the limit's code.
    """

    reached: tuple[str, str] | None = None
    """The limit that leaves nothing: its code and its message."""
    money: Money | None = None
    """None if money is not counted."""
    tokens: int | None = None
    """Longest reply in tokens."""


class ModelRequest(Struct, frozen=True, gc=False):
    """One model call.

    The answer is a mapping with at least `text`; it has `uses` if the model wants tools called, and `cut` if the reply
    reached the longest that the model may write.
    """

    path: str
    label: str
    instructions: str | SystemText
    """The system text. Earlier results in it are shared with other requests."""
    messages: tuple[Message, ...]
    closing: Mapping[str, Value] | None = None
    """JSON Schema of an object that the reply has to end with; the prose before it is free."""
    schema: Mapping[str, Value] | None = None
    """JSON Schema of the whole reply."""
    tools: tuple[Offered, ...] = ()
    model: str = ""
    """Empty for the run's own model."""
    temperature: float | None = None
    """None, here and below, for that of the model's tier, or of the service."""
    max_tokens: int | None = None
    """Longest reply in tokens. If several limits hold, the smallest counts."""
    reasoning: str = ""
    """How much the model thinks before it answers: one of `REASONING`."""
    timeout: float | None = None
    """Seconds that a service may be silent. Not hashed: a reply does not depend on it."""
    identity: str = ""
    allow: tuple[str, ...] | None = None
    """The tools that the document leaves to the agent; None if it does not say."""
    bounds: Bounds | None = None
    """Say when the call must not be made."""
    known: int = 0
    """Number of leading messages that an earlier request of this thread already sent. They, the system text and the
    tools are left out of the hash, because that request's record covers them; so a long conversation is not hashed
    again every turn."""

    @property
    def system(self) -> str:
        return self.instructions if isinstance(self.instructions, str) else self.instructions.text()

    def content(self) -> Value:
        return self.content_with(self.system)

    def content_with(self, system: str) -> Value:
        """Return the content with another text in place of the system text."""
        if self.known:
            return {"known": self.known, "messages": [message.as_value() for message in self.messages[self.known :]]}
        content: dict[str, Value] = {
            "system": system,
            "messages": [message.as_value() for message in self.messages],
            "closing": self.closing,
        }
        if self.schema is not None:
            content["schema"] = self.schema
        if self.tools:
            content["tools"] = [[tool.name, tool.description, tool.schema] for tool in self.tools]
        if self.model:
            content["model"] = self.model
        if self.temperature is not None:
            content["temperature"] = self.temperature
        if self.max_tokens is not None:
            content["max_tokens"] = self.max_tokens
        if self.reasoning:
            content["reasoning"] = self.reasoning
        if self.identity:
            content["identity"] = self.identity
        return content


class ToolRequest(Struct, gc=False):
    """One tool call. The answer is the tool's result.

    `form`, `grants`, `declared`, `limits`, `reads_only` and `money` are not hashed: the document's format determines
    the form, and the others are evaluated again on each drive.
    """

    path: str
    label: str
    connection: str
    """Where the document says that the tool lives; if empty, the name alone identifies the tool."""
    tool: str
    arguments: Mapping[str, Value]
    stdin: str | None = None
    """Input of a command."""
    grants: tuple[str, ...] | None = None
    """Everything that the requesting thread may do; None for everything that the run may do."""
    declared: str = ""
    """Where the grants are written down."""
    limits: Limits | None = None
    """The limits that the thread was started with."""
    form: Literal["text", "data", "either"] = "either"
    """The form of the result that is recorded: `text` for a playbook, `data` for a pipeline, `either` for a model (the
    output of a command decoded, that of a server as text)."""
    reads_only: bool = False
    """If true, the call is refused unless the tool only reads."""
    money: Money | None = None
    """The purse of the thread, for a call that launches a run; None if money is not counted."""

    def content(self) -> Value:
        content: dict[str, Value] = {"connection": self.connection, "tool": self.tool, "arguments": self.arguments}
        if self.stdin is not None:
            content["stdin"] = self.stdin
        return content


class HumanRequest(Struct, frozen=True):
    """One question to a person. The answer is text that fits the kind."""

    path: str
    label: str
    title: str
    kind: Literal["input", "confirm", "select"]
    prompt: str
    options: tuple[str, ...] = ()
    default: str | None = None
    explicit: bool = False
    """True for the tool `ask`: if no person can be asked, only its own default agrees to anything."""
    expiry: float | None = None
    """Seconds that the question waits, if that is less than what the run allows. Not hashed: it changes no answer."""

    def content(self) -> Value:
        return {"kind": self.kind, "prompt": self.prompt, "options": list(self.options), "default": self.default}


class Load(Struct, frozen=True):
    """Load a text whose name is known only when the step runs. The answer is the text, or None if it does not exist."""

    path: str
    label: str
    scheme: str
    where: str
    refuse: tuple[str, str] | None = None
    """A limit that leaves no room for the text: a kind and a message. Limits are those of the present moment, so a
    recorded load is never refused, and a refused one is recorded as a failure."""

    def content(self) -> Value:
        return {"scheme": self.scheme, "where": self.where}


class Offer(Struct, frozen=True):
    """Request the tools that an agent may use, in the form in which its model is told of them.

    The answer is a list of their names, descriptions and schemas. It is recorded once, so the offered tools do not
    change in the middle of a turn.
    """

    path: str
    label: str
    names: tuple[str, ...] = ()
    reads_only: bool = False
    """If true, tools that change something are left out."""
    grants: tuple[str, ...] | None = None
    """If given, all tools that these grants allow are offered, under the flat names that a thread uses, each with its
    id."""

    def content(self) -> Value:
        if self.grants is not None:
            return {"thread": True}
        return {"names": list(self.names), **({"reads_only": True} if self.reads_only else {})}


class WorkCheck(Struct, frozen=True):
    """Ask whether pure work may continue before the step at the path begins. The request returns nothing.

    The limit is that of the present moment, so it is not part of the request: only a refusal is recorded, as a failure.
    """

    path: str
    label: str
    work: PureWork

    def content(self) -> Value:
        return {}


BREAK = "/break"
"""The last segment of a boundary's path."""

UNCERTAIN = "/uncertain"
"""The last segment of the path of the question whether a tool may be called again."""


class Boundary(Struct, gc=False):
    """The end of a step, where a run may stop for a breakpoint or an interrupt.

    The answer maps names to the values that a person overrode there. A record is written only if the run stopped.
    """

    path: str
    label: str
    inner: bool = False
    """True for a step of a called pipeline: a run stops there only at a breakpoint that names the whole way to it."""

    @classmethod
    def after(cls, path: str, label: str, *, inner: bool = False) -> Boundary:
        """Return the boundary of the step at a path."""
        return cls(f"{path}{BREAK}", label, inner)

    def stops_at(self, breakpoints: Collection[str]) -> bool:
        """Return True if one of the breakpoints, all in the form that `typed_way` returns, names the step."""
        return self.label in breakpoints or (not self.inner and last_label(self.label) in breakpoints)

    def content(self) -> Value:
        return {"boundary": last_label(self.label)}


class Emit(Struct, gc=False):
    """An event for the readers of the run."""

    type: str
    path: str
    label: str = ""
    data: Mapping[str, Value] = field(default_factory=dict)
    """Kept with the event."""
    live: Mapping[str, Value] = field(default_factory=dict)
    """Only for listeners; not kept."""
    kept: bool = True
    """If False, the whole event is only for listeners."""


class Outcome(Struct, frozen=True):
    """The end of one child of a fan; `failure` is None if the child returned a value."""

    value: Value = None
    failure: StepFailed | None = None


class Fan(Struct, frozen=True):
    """Run children concurrently, at most `limit` at once; they are taken from the iterator only when there is room.

    The answer is a list of outcomes in the order of the children. With `stop_on_first_failure` the others are stopped
    and the first failure is thrown into the walk.
    """

    path: str
    children: Iterator[Walk]
    limit: int = 8
    stop_on_first_failure: bool = False


class Spawn(Struct, frozen=True):
    """Start a child that runs beside its parent, in the same run.

    There is no answer: `Join` waits for it by this path.
    """

    path: str
    child: Walk


class Join(Struct, frozen=True):
    """Wait for children, at most `seconds` if given.

    The answer holds the state of each child (`done`, `failed`, `stopped` or `running`) and its value or failure. It is
    recorded, since it depends on the moment.
    """

    path: str
    label: str
    children: tuple[str, ...]
    seconds: float | None = None

    def content(self) -> Value:
        return {"children": list(self.children), "seconds": self.seconds}


class Halt(Struct, frozen=True):
    """Stop children at any place. The answer lists their paths; it is recorded, and a replay stops them too."""

    path: str
    label: str
    children: tuple[str, ...]

    def content(self) -> Value:
        return {"children": list(self.children)}


class Metering(Struct, frozen=True):
    """Read what the effects at `paths` used and, for each path in `below`, the total of all effects below it.

    The answer is a list of `Meter`s, taken from the records.
    """

    paths: tuple[str, ...] = ()
    below: tuple[str, ...] = ()
    superseded: bool = False
    """Read also, as the last of the list, what the effects of this run cost whose records a resume has removed."""


class Meter(Struct, frozen=True):
    """Tokens, money and time of one effect or of a group of effects. `cost` is None if the price is unknown."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = 0.0
    elapsed: float = 0.0

    @classmethod
    def of(cls, record: EffectRecord) -> Meter:
        """Return the usage of an effect as it is recorded."""
        if record.usage is None:
            return cls(elapsed=record.elapsed)
        return cls(record.usage.input_tokens, record.usage.output_tokens, record.usage.cost, record.elapsed)

    def plus(self, other: Meter) -> Meter:
        return Meter(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            add_costs(self.cost, other.cost),
            self.elapsed + other.elapsed,
        )

    def as_value(self) -> dict[str, Value]:
        return {
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cost": self.cost,
            "elapsed": round(self.elapsed, 3),
        }


Effect: TypeAlias = ModelRequest | ToolRequest | HumanRequest | Load | Offer | Boundary | Join | Halt
Recorded: TypeAlias = Effect | WorkCheck
"""Requests that the journal can hold a record of."""

Request: TypeAlias = Recorded | Emit | Fan | Spawn | Metering


class Failure(Struct, frozen=True):
    """A failure as the journal keeps it."""

    kind: str
    message: str

    @classmethod
    def of(cls, error: StepFailed | Refused) -> Failure:
        if isinstance(error, StepFailed):
            return cls(error.kind, clean(error.message))
        return cls("denied", clean(str(error)))

    def raised(self, path: str) -> StepFailed:
        return StepFailed(self.message, kind=self.kind, path=path)
