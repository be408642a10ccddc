"""What the interpreter asks the driver for.

A request is a value: it says what is wanted and where in the document, never how. Everything that
`content()` returns is covered by the hash that the journal keeps, so a replay that asks for something
else is noticed. (Those that a pure step makes are not frozen only because that is slow.)
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from msgspec import Struct, field

from quire.engine.earlier_results import SystemText
from quire.errors import Refused, StepFailed
from quire.plan.ways import last_label
from quire.values import Value, canonical_of_checked, clean

if TYPE_CHECKING:
    from quire.engine.interpreter.thread.limits import Limits
    from quire.engine.pure_work import PureWork

Walk: TypeAlias = "Generator[Request, Any, Value]"
"""An interpreter under way: yields requests, is sent their answers, returns its result."""

Steps: TypeAlias = "Generator[Request, Any, Any]"
"""A part of one, for its own interpreter alone: whatever it returns is no value of the run."""


MOST_CALLS = 200
"""Calls of one turn that are made; a model that wants more of them at once is told so."""


CUT_OFF = "the reply was cut off: it reached the longest that the model may write"
REPEATED = "the reply was stopped: the model repeated itself"


def early_end(reply: Mapping[str, Value]) -> str:
    """The warning about a reply that did not come to its own end, empty for one that did."""
    if reply.get("cut") is True:
        return CUT_OFF
    return REPEATED if reply.get("finish_reason") == "repetition" else ""


def too_many_calls(calls: int) -> StepFailed:
    message = f"{calls:,} calls in one turn are too many: only the first {MOST_CALLS} were made"
    return StepFailed(message, kind="too_many_calls")


class ToolUse(Struct, frozen=True):
    """A model's wish to call a tool; `id` ties the result to it. `problem` says that the arguments could not be read:
    then there are none, the tool is not called, and the model is told."""

    id: str
    name: str
    arguments: Mapping[str, Value]
    problem: str = ""

    @classmethod
    def of(cls, stored: Sequence[Any]) -> ToolUse:
        """From `as_record`."""
        return cls(*stored)

    def as_record(self) -> list[Value]:
        whole: list[Value] = [self.id, self.name, self.arguments]
        return [*whole, self.problem] if self.problem else whole


class Message(Struct, frozen=True):
    """`uses` are the tool calls of an assistant's message; a `tool` message answers the one with the id `answers`."""

    role: Literal["user", "assistant", "tool"]
    content: str
    uses: tuple[ToolUse, ...] = ()
    answers: str = ""

    def as_value(self) -> Value:
        if not self.uses and not self.answers:
            return [self.role, self.content]
        uses: list[Value] = [[use.id, use.name, use.arguments] for use in self.uses]
        return [self.role, self.content, uses, self.answers]


class Offered(Struct, frozen=True):
    """A tool as a model is offered it: its name, what it is for, the JSON Schema of its arguments.

    `id` is its canonical one, where the name does not say it."""

    name: str
    description: str
    schema: Mapping[str, Value]
    id: str = ""


class Money(Protocol):
    """What may be spent: read, and held back, in the moment in which a call is made."""

    @property
    def left(self) -> float: ...

    def hold(self, amount: float) -> None:
        """Sets so much aside; a negative amount gives it back."""
        ...


class Bounds(Struct, frozen=True):
    """What is left for one model call of a thread. Limits are those of now, so none of this is part of the request:
    a call that is recorded is never refused, and one that is refused is recorded as a failure of the kind `code`.

    `reached` is the limit that leaves nothing: its code and what to say. `money` is None where none is
    counted, `tokens` is how long the reply may be.
    """

    reached: tuple[str, str] | None = None
    money: Money | None = None
    tokens: int | None = None


class ModelRequest(Struct, frozen=True):
    """One model call. The answer is a mapping with at least `text`, `uses` where the model wants tools called, and
    `cut` where the reply reached the longest that the model may write.

    `closing` is the JSON Schema of an object that the reply has to end with; the prose before it is free. `schema`
    is that of the whole reply. `model` is the run's own where it is empty. `allow` are the tools that the document
    leaves to the agent, None where it says nothing. `bounds` say when the call may not be made. `known` of the messages
    stand in an earlier request of the same thread, and so do the system text and the tools: the journal has vouched for
    them there, and a long conversation is not hashed again at each turn. `instructions` are the system text; earlier
    results in it are shared with other requests.
    """

    path: str
    label: str
    instructions: str | SystemText
    messages: tuple[Message, ...]
    closing: Mapping[str, Value] | None = None
    schema: Mapping[str, Value] | None = None
    tools: tuple[Offered, ...] = ()
    model: str = ""
    identity: str = ""
    allow: tuple[str, ...] | None = None
    bounds: Bounds | None = None
    known: int = 0

    @property
    def system(self) -> str:
        return self.instructions if isinstance(self.instructions, str) else self.instructions.text()

    def content(self) -> Value:
        return self.content_with(self.system)

    def content_with(self, system: str) -> Value:
        """The content, with another text in place of the system's."""
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
        if self.identity:
            content["identity"] = self.identity
        return content


class ToolRequest(Struct):
    """One tool call. The answer is the tool's result.

    `connection` is where the document says the tool lives; where it is empty, the name alone says which tool is meant.
    `stdin` is what a command reads. `form` says which form of the result is recorded: a playbook takes `text`, a
    pipeline `data`, and a model is told `either` (the output of a command decoded, that of a server as text).
    `grants` are all that the asking thread may do, None for all that the run may, `declared` is where they are written
    down, and `limits` are those that the thread was started with. These four are not hashed: the document's format
    settles the form, and the others are looked at anew on each drive.
    """

    path: str
    label: str
    connection: str
    tool: str
    arguments: Mapping[str, Value]
    stdin: str | None = None
    grants: tuple[str, ...] | None = None
    declared: str = ""
    limits: Limits | None = None
    form: Literal["text", "data", "either"] = "either"

    def content(self) -> Value:
        content: dict[str, Value] = {
            "connection": self.connection,
            "tool": self.tool,
            "arguments": self.arguments,
        }
        if self.stdin is not None:
            content["stdin"] = self.stdin
        return content


class HumanRequest(Struct, frozen=True):
    """One question to a person. The answer is text that fits the kind.

    `explicit` is for the tool `ask`: where no person can be asked, only its default agrees to anything."""

    path: str
    label: str
    title: str
    kind: Literal["input", "confirm", "select"]
    prompt: str
    options: tuple[str, ...] = ()
    default: str | None = None
    explicit: bool = False

    def content(self) -> Value:
        return {"kind": self.kind, "prompt": self.prompt, "options": list(self.options), "default": self.default}


class Load(Struct, frozen=True):
    """A text that is named when the step runs. The answer is the text, or None where there is none.

    `refuse` is a limit that leaves no room for it, a kind and what to say: limits are those of now, so a load that is
    recorded is never refused, and one that is refused is recorded as a failure.
    """

    path: str
    label: str
    scheme: str
    where: str
    refuse: tuple[str, str] | None = None

    def content(self) -> Value:
        return {"scheme": self.scheme, "where": self.where}


class Offer(Struct, frozen=True):
    """The tools that an agent may use, as its model is to be told of them. The answer is a list of their
    names, descriptions and schemas, recorded once: what is offered does not change in the middle of a turn.

    With `grants` it is all that these allow, under the flat names that a thread uses, and each has its id as well."""

    path: str
    label: str
    names: tuple[str, ...] = ()
    grants: tuple[str, ...] | None = None

    def content(self) -> Value:
        return {"names": list(self.names)} if self.grants is None else {"thread": True}


class WorkCheck(Struct, frozen=True):
    """Asks whether pure work may go on, before the step at the path begins. There is no answer. The limit is that of
    now, so it is not part of the request: only a refusal is recorded, as a failure."""

    path: str
    label: str
    work: PureWork

    def content(self) -> Value:
        return {}


BREAK = "/break"
"""What the path of a boundary ends in."""


class Boundary(Struct):
    """The end of a step: where a run may stop for a breakpoint or an interrupt.

    The answer is the map of values that the person overrode there. Nothing is recorded unless the run stopped.
    `inner` is for a step of a called pipeline: a run stops there only where a breakpoint names the whole way to it.
    """

    path: str
    label: str
    inner: bool = False

    @classmethod
    def after(cls, path: str, label: str, *, inner: bool = False) -> Boundary:
        """That of the step at a path."""
        return cls(f"{path}{BREAK}", label, inner)

    def stops_at(self, breakpoints: Collection[str]) -> bool:
        """Whether one of these names the step; all of them are as `typed_way` gives them."""
        return self.label in breakpoints or (not self.inner and last_label(self.label) in breakpoints)

    def content(self) -> Value:
        return {"boundary": last_label(self.label)}


class Emit(Struct):
    """Something to tell the readers of the run. `data` is kept; `live` is for those who watch now.

    With `kept` false the whole event is only for those who watch."""

    type: str
    path: str
    label: str = ""
    data: Mapping[str, Value] = field(default_factory=dict)
    live: Mapping[str, Value] = field(default_factory=dict)
    kept: bool = True


class Outcome(Struct, frozen=True):
    """How one child of a fan ended: `failure` is None where it has a value."""

    value: Value = None
    failure: StepFailed | None = None


class Fan(Struct, frozen=True):
    """Children that run side by side, at most `limit` at once; drawn from the iterator only when there is room.

    The answer is a list of outcomes in the order of the children. With `stop_on_first_failure` the others are
    stopped and the first failure is thrown.
    """

    path: str
    children: Iterator[Walk]
    limit: int = 8
    stop_on_first_failure: bool = False


class Spawn(Struct, frozen=True):
    """A child that goes on beside its parent, in the same run. There is no answer: `Join` waits for it by this path."""

    path: str
    child: Walk


class Join(Struct, frozen=True):
    """Waits for children, at most `seconds` where that is said. The answer has for each of them its state (`done`,
    `failed`, `stopped` or `running`) and its value or its failure; it is recorded, since it depends on the moment."""

    path: str
    label: str
    children: tuple[str, ...]
    seconds: float | None = None

    def content(self) -> Value:
        return {"children": list(self.children), "seconds": self.seconds}


class Halt(Struct, frozen=True):
    """Stops children, wherever they are. The answer lists their paths; it is recorded, and a replay stops them too."""

    path: str
    label: str
    children: tuple[str, ...]

    def content(self) -> Value:
        return {"children": list(self.children)}


class Metering(Struct, frozen=True):
    """What the effects at these paths have used, and for each path of `below` all effects below it together. The answer
    is a list of `Meter`s, read from their records."""

    paths: tuple[str, ...] = ()
    below: tuple[str, ...] = ()


class Meter(Struct, frozen=True):
    """`cost` is None where nobody knows the price."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = 0.0
    elapsed: float = 0.0


Effect: TypeAlias = ModelRequest | ToolRequest | HumanRequest | Load | Offer | Boundary | Join | Halt
Recorded: TypeAlias = Effect | WorkCheck
"""What the journal can hold a record of."""

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


KINDS: Mapping[type[Recorded], str] = {
    ModelRequest: "model",
    ToolRequest: "tool",
    HumanRequest: "ask",
    Load: "load",
    Offer: "offer",
    Boundary: "break",
    Join: "join",
    Halt: "halt",
    WorkCheck: "work",
}


def request_hash(request: Recorded) -> str:
    return hashed_request(request)[0]


def hashed_request(request: Recorded) -> tuple[str, int]:
    """The hash that the journal keeps, and how many bytes were hashed for it."""
    if isinstance(request, ModelRequest) and isinstance(request.instructions, SystemText):
        return _hashed_in_pieces(request, request.instructions)
    written = canonical_of_checked([KINDS[type(request)], request.content()])
    return hashlib.sha256(written).hexdigest(), len(written)


def _hashed_in_pieces(request: ModelRequest, instructions: SystemText) -> tuple[str, int]:
    """The same hash, without writing the earlier results as JSON again. Keys are sorted; an empty text stands in."""
    written = canonical_of_checked([KINDS[ModelRequest], request.content_with("")])
    at = written.rindex(_SYSTEM) + len(_SYSTEM)
    hashed = hashlib.sha256(written[:at])
    length = instructions.update(hashed)
    hashed.update(written[at:])
    return hashed.hexdigest(), len(written) + length


_SYSTEM = b'"system":"'
