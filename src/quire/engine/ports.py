"""The doors of the engine. What stands behind each is chosen by whoever builds a runtime."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from msgspec import Struct

if TYPE_CHECKING:
    from quire.engine.records import (
        Answer,
        Batch,
        EffectRecord,
        Event,
        Lease,
        Letter,
        NewRun,
        Question,
        RunRow,
        Status,
        Usage,
        Written,
    )
    from quire.engine.requests import Load, Message, Offered, ToolRequest, ToolUse
    from quire.values import Value

LONGEST_REPLY = 4096
"""Tokens that one reply may have where nobody asks for fewer, and that are reserved for it."""

MAX_REPLY_CHARACTERS = 4_000_000
"""A reply beyond it is a server gone wrong."""

MAX_PROMPT_CHARACTERS = 8_000_000
"""About two million tokens: more than models read. A call beyond it is not made, so nothing is paid for it."""

EffectClass = Literal["read", "idempotent", "write"]


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One call of a model. `closing` as in `ModelRequest`; a model that cannot force it just answers.

    `label`, `identity` and `allow` say which step of which agent asks, for scripted replies: no provider sees them.
    `on_retry(seconds, reason)` is told of each wait before the call is made again.
    """

    system: str
    messages: tuple[Message, ...]
    closing: Mapping[str, Value] | None = None
    max_tokens: int | None = None
    schema: Mapping[str, Value] | None = None
    tools: tuple[Offered, ...] = ()
    label: str = ""
    identity: str = ""
    allow: tuple[str, ...] | None = None
    on_retry: Callable[[float, str], None] | None = field(default=None, compare=False)


class ModelReply(Struct, frozen=True):
    """`delays` are the waits before transport retries inside this call, in seconds."""

    text: str
    model: str
    usage: Usage
    finish_reason: str = "stop"
    delays: tuple[float, ...] = ()
    uses: tuple[ToolUse, ...] = ()


class Model(Protocol):
    """Raises `ModelFailed`, nothing else of its own. Cancelling the task stops the call at once."""

    @property
    def name(self) -> str: ...

    async def complete(self, call: ModelCall, on_delta: Callable[[str], None]) -> ModelReply:
        """Streams the text through `on_delta` piece by piece; the pieces joined are the reply's text."""
        ...


@runtime_checkable
class Priced(Protocol):
    """A model whose price is known before a call."""

    def estimate(self, call: ModelCall) -> float | None:
        """What a call may cost in dollars, its reply as long as `max_tokens` allows; None where nobody knows."""
        ...


@runtime_checkable
class Scripted(Protocol):
    """A model whose replies are written for certain steps."""

    @property
    def ways(self) -> Sequence[str]:
        """The ways to steps of callees that some are for."""
        ...


class Tools(Protocol):
    """The one gate: checks what it dispatches, dispatches what it checked, redacts what comes back."""

    def effect_class(self, request: ToolRequest) -> EffectClass:
        """What a crash in the middle of this call would leave behind; unknown tools write."""
        ...

    async def call(self, request: ToolRequest, effect_id: str) -> Value:
        """Raises `ToolFailed` or `Denied`. `effect_id` is the same after a crash, so a tool can deduplicate."""
        ...

    async def offers(self, names: Sequence[str]) -> Sequence[Offered]:
        """The tools of these names that the run may use, in order. Raises `ToolFailed` for a name that is none."""
        ...

    async def offers_under(self, grants: Sequence[str]) -> Sequence[Offered]:
        """All tools that a thread with these grants may use, under flat names, each with its id."""
        ...

    async def prompt(self, server: str, name: str) -> str:
        """The text of a prompt that a server offers. Raises `StepFailed` or `Denied`."""
        ...


class Loader(Protocol):
    async def load(self, request: Load) -> str | None:
        """The text, or None where there is none. Raises `StepFailed` for a place that may not be read."""
        ...


class People(Protocol):
    async def ask(self, question: Question, problem: str) -> str | None:
        """An answer from somebody who is here now, or None: then the question waits in the inbox.

        `problem` says what was wrong with the answer before, or is empty.
        """
        ...


@runtime_checkable
class Attributed(Protocol):
    """People who say which of them has answered."""

    def answered_by(self, question: Question) -> str:
        """Who has given the last answer to this question."""
        ...


@runtime_checkable
class Present(Protocol):
    """People who think before they answer. Meanwhile their question stands in the inbox as well: the first answer from
    anywhere counts, and `ask` is cancelled when it was not theirs."""

    def is_here(self, question: Question) -> bool:
        """Whether somebody would be shown this question now."""
        ...

    def overtaken(self, question: Question, value: str) -> None:
        """Somebody else has answered it so."""
        ...


class Clock(Protocol):
    def now(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...


class Store(Protocol):
    """Runs, effects, events and the inbox. Every method is one transaction; failures are `StoreError`.

    Readers see statuses as they are now: a wait past its `expires_at` is `expired`, `running` without a live
    owner is `interrupted`.
    """

    async def create(self, run: NewRun) -> None: ...

    async def get(self, run: str) -> RunRow | None: ...

    async def find(self, prefix: str) -> Sequence[str]:
        """Ids that begin with the prefix, newest first, at most 10."""
        ...

    async def list(self, *, status: Status | None = None, limit: int = 50) -> Sequence[RunRow]:
        """Newest first."""
        ...

    async def text(self, sha256: str) -> str: ...

    async def effects(self, run: str) -> Sequence[EffectRecord]: ...

    async def events(self, run: str, after: int = 0) -> Sequence[Event]: ...

    async def questions(self, run: str | None = None) -> Sequence[Question]:
        """The open ones of runs that still wait, oldest first."""
        ...

    async def answers(self, run: str) -> Sequence[Answer]:
        """Given and not yet taken by a driver."""
        ...

    async def answer(self, run: str, path: str, hash: str, value: str, by: str = "") -> None:
        """`by` is who gives it. Raises `RunState` when that question is not open any more or was worded differently."""
        ...

    async def letters(self, recipient: str | None = None) -> Sequence[Letter]:
        """Those that came in, oldest first; without a recipient, those to everybody."""
        ...

    async def request_cancel(self, run: str) -> bool:
        """True when the run is cancelled now; False when its live owner has been asked to do it."""
        ...

    async def acquire(self, run: str, *, after: int | None = None) -> Lease:
        """Takes the next epoch and the owner's lock. Raises `RunBusy` while another process drives the run, `Fenced`
        when somebody has had it since the epoch `after`, in which the caller has seen it, and `BrokenSeal` for a run
        that is not as its user wrote it."""
        ...

    async def check_seal(self, run: str, *, whole: bool = True) -> None:
        """Raises `BrokenSeal` unless the run is as its user wrote it: what it was started with, and on the `whole` its
        journal, questions and answers too."""
        ...

    async def reseal(self, run: str) -> None:
        """Seals the run as it stands there now. Only the user can say that it is theirs."""
        ...

    async def write(self, lease: Lease, batch: Batch) -> Written:
        """Raises `Fenced` when the epoch is no longer the lease's."""
        ...

    async def park(self, lease: Lease, batch: Batch) -> bool:
        """As `write`, unless an answer waits to be taken: then writes nothing and returns False."""
        ...

    async def release(self, lease: Lease) -> None: ...

    async def close(self) -> None: ...


class Ports(Struct, frozen=True):
    """All the doors of one drive. `other_model` opens the model that an agent's profile names."""

    store: Store
    model: Model
    tools: Tools
    loader: Loader
    people: People
    clock: Clock
    other_model: Callable[[str], Model] | None = None
