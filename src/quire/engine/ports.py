"""Ports of the engine: the protocols through which it reaches stores, models, tools and people.

The code that builds a drive chooses the adapters behind them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from msgspec import Struct

from quire.plan.built_in_tools import EffectClass as EffectClass  # noqa: TC001  the port of tools names it

if TYPE_CHECKING:
    from pathlib import Path

    from quire.engine.conversation import Message, Offered, ToolUse
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
        WriteResult,
    )
    from quire.engine.requests import Load, ToolRequest
    from quire.engine.reused_replies import EarlierReplies
    from quire.stores.contract import History, KeptReply, Marks, Pruned, Spent
    from quire.stores.occurrences import EnabledTrigger, Occurrence, Process, Start, StartState
    from quire.stores.run_pages import JournalPages, RunFilters, RunPage, Sort
    from quire.stores.transactions import Admit
    from quire.values import Value

LONGEST_ERROR = 8_000
"""Characters of an error message that are recorded and sent to a model. It may quote texts of any length."""


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One call of a model.

    `run`, `label`, `path`, `identity` and `allow` say which step of which agent makes the call. They are for scripted
    replies and for limits; providers do not see them.
    """

    system: str
    messages: tuple[Message, ...]
    closing: Mapping[str, Value] | None = None
    """As in `ModelRequest`; a model that cannot force it simply answers."""
    max_tokens: int | None = None
    """The longest reply."""
    usual_tokens: bool = False
    """True if `max_tokens` is only `[runs] reply_tokens`: then `max_tokens` of a tier holds instead."""
    left_tokens: int | None = None
    """Tokens that a thread has left, which nothing raises."""
    temperature: float | None = None
    """None, here and below, for that of the service."""
    reasoning: str = ""
    timeout: float | None = None
    cache: str = ""
    """A name that calls with the same beginning share; empty if no other call has it."""
    schema: Mapping[str, Value] | None = None
    tools: tuple[Offered, ...] = ()
    run: str = ""
    label: str = ""
    path: str = ""
    """The path of the effect."""
    identity: str = ""
    allow: tuple[str, ...] | None = None
    on_retry: Callable[[float, str], None] | None = field(default=None, compare=False)
    """Called with (seconds, reason) for each wait before the call is made again."""
    on_wait: Callable[[str], None] | None = field(default=None, compare=False)
    """Called with the reason if the call waits for others because of a limit."""
    on_switch: Callable[[Mapping[str, Value]], None] | None = field(default=None, compare=False)
    """Called with `from`, `to` and `reason` if the next model of a list is asked."""
    on_reading: Callable[[int, int], None] | None = field(default=None, compare=False)
    """Called with (tokens read, tokens of the prompt) while a model of this process reads a long prompt."""
    untimed: Callable[[], AbstractContextManager[None]] = field(default=nullcontext, compare=False)
    """The context in which a call waits for others: that is not time of its own."""

    def cut_off(self, written: int, model: str) -> dict[str, Value]:
        """Return the record of a reply that was cut off after this number of tokens: the place, and the limit."""
        most, by = self.max_tokens, "[runs] reply_tokens" if self.usual_tokens else "max_tokens"
        if most is None or 0 < written < most:
            most, by = written, f"the most that {model} writes"
        elif most == self.left_tokens:
            by = "the limit of tokens"
        return {"cut": True, "cut_at": most, "cut_by": by}


class ModelReply(Struct, frozen=True):
    """A model's complete reply."""

    text: str
    model: str
    usage: Usage
    finish_reason: str = "stop"
    delays: tuple[float, ...] = ()
    """Waits before transport retries inside this call, in seconds."""
    uses: tuple[ToolUse, ...] = ()


class Model(Protocol):
    """A model that can be asked.

    Raises `ModelFailed` and no other error of its own. Cancelling the task stops the call at once.
    """

    @property
    def name(self) -> str: ...

    async def complete(self, call: ModelCall, on_delta: Callable[[str], None]) -> ModelReply:
        """Stream the text through `on_delta` piece by piece; the pieces joined are the reply's text."""
        ...


@runtime_checkable
class Priced(Protocol):
    """A model whose price is known before a call."""

    def estimate(self, call: ModelCall) -> float | None:
        """Return the most that a call may cost in dollars, with the longest reply allowed; None if unknown."""
        ...


@runtime_checkable
class Scripted(Protocol):
    """A model whose replies are written for certain steps."""

    @property
    def ways(self) -> Sequence[str]:
        """Return the ways to steps of called documents that some replies are for."""
        ...


@runtime_checkable
class Rehearsed(Protocol):
    """A model whose replies may have an order."""

    def pass_over(self, call: ModelCall) -> None:
        """Use up the reply to a call that is not made."""
        ...


class Tools(Protocol):
    """The one gate to tools: checks what it dispatches, dispatches what it checked, redacts the results."""

    def effect_class(self, request: ToolRequest) -> EffectClass:
        """Classify the effect that a crash during this call would leave behind; an unknown tool counts as writing."""
        ...

    async def call(self, request: ToolRequest, effect_id: str) -> Value:
        """Call the tool.

        Raises `ToolFailed` or `Denied`. `effect_id` is the same after a crash, so a tool can deduplicate.
        """
        ...

    async def offers(self, names: Sequence[str]) -> Sequence[Offered]:
        """Return the tools of these names that the run may use, in order.

        Raises `ToolFailed` for a name that is not a tool.
        """
        ...

    async def offers_under(self, grants: Sequence[str]) -> Sequence[Offered]:
        """Return all tools that a thread with these grants may use, under flat names, each with its id."""
        ...

    async def prompt(self, server: str, name: str) -> str:
        """Return the text of a prompt that a server offers. Raises `StepFailed` or `Denied`."""
        ...


class LaunchedRuns(Protocol):
    """Runs that calls of tools launch, by the id of the effect."""

    async def budget_of(self, effect_id: str) -> float | None:
        """Return the budget of a run that was launched before a crash; None if there is none yet."""
        ...

    def allot(self, effect_id: str, dollars: float, *, strictly: bool) -> None:
        """Set the budget of the run that is launched next. A run whose price is not known is launched without it unless
        it holds strictly."""
        ...

    async def halve(self, effect_id: str) -> float:
        """Take back half of the remaining money of a run at rest, and return its budget."""
        ...

    async def spent(self, effect_id: str) -> Usage | None:
        """Return the cost of a run that has ended; None if it may spend more by itself."""
        ...


class Loader(Protocol):
    async def load(self, request: Load) -> str | None:
        """Return the text, or None if it does not exist. Raises `StepFailed` for a place that may not be read."""
        ...


class People(Protocol):
    async def ask(self, question: Question, problem: str) -> str | None:
        """Return an answer from a person who is present now, or None: then the question waits in the inbox.

        `problem` says what was wrong with the previous answer, or is empty.
        """
        ...


@runtime_checkable
class Attributed(Protocol):
    """People whose answers name their author."""

    def answered_by(self, question: Question) -> str:
        """Return the author of the last answer to this question."""
        ...


@runtime_checkable
class Present(Protocol):
    """People who take time to answer.

    Meanwhile their question is in the inbox as well: the first answer from anywhere counts, and `ask` is cancelled if
    the answer came from elsewhere.
    """

    def is_here(self, question: Question) -> bool:
        """Return True if a person would be shown this question now."""
        ...

    def overtaken(self, question: Question, value: str) -> None:
        """Tell the people that this question was answered elsewhere, with this value."""
        ...


class Clock(Protocol):
    def now(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...


class Store(Protocol):
    """Runs, effects, events and the inbox. Every method is one transaction; failures are `StoreError`.

    Readers see statuses as they are now: a wait past its `expires_at` is `expired`, `running` without a live owner is
    `interrupted`.
    """

    async def create(self, run: NewRun, admit: Admit | None = None) -> None: ...

    async def restore(self, run: NewRun, history: History | None, admit: Admit | None = None) -> None:
        """Create a run with all of its history in one transaction. Raises `StoreError` if the id is taken, and
        `LimitReached` if `admit` has a reason against it."""
        ...

    async def reserve(self, run: str, most: float | None, admit: Admit) -> None:
        """Set the most that a run may cost, which `admit` has not counted. Raises `LimitReached` with its reason."""
        ...

    process: str
    """The id under which the process reports itself with `beat`; empty if it does not. It is noted in runs it drives.
    """
    observers: list[Callable[[Lease, Batch, float], None]]
    """Called after each write of a drive, with the seconds that it took. They must not fail."""
    claims: Counter[tuple[str, str]]
    """The claims that this process has made with `start_once`, by source and state."""

    async def start_once(
        self,
        run: NewRun | None,
        occurrence: Occurrence,
        admit: Admit | None = None,
        *,
        state: StartState = "started",
        reason: str = "",
    ) -> tuple[Start, bool]:
        """Claim an occurrence and create its run in one transaction. Return its claim, and True if this call made it;
        the claim of an earlier call names the run of that call, and nothing is created.

        `admit` decides inside the transaction; with its reason the claim is `skipped`. Without a run only the claim is
        kept, in the given state.
        """
        ...

    async def start_of(self, occurrence: Occurrence) -> Start | None:
        """Return the claim of an occurrence, if there is one."""
        ...

    async def starts(self, source: str = "", state: str = "", limit: int = 100) -> Sequence[Start]:
        """Return claims, newest first."""
        ...

    async def triggers(self) -> Sequence[EnabledTrigger]:
        """Return the triggers that a row enables. The caller checks the seals."""
        ...

    async def enable(self, trigger: EnabledTrigger) -> None: ...

    async def disable(self, name: str) -> None: ...

    async def move_trigger(self, name: str, cursor: float, to: float) -> None:
        """Move the cursor of a trigger, if it still stands there."""
        ...

    async def under_way(self) -> Sequence[tuple[str, str, str]]:
        """Return source, id and status of the pending and running runs of triggers, by source and age."""
        ...

    async def beat(self, process: Process) -> None:
        """Report a process that serves or drives runs."""
        ...

    async def leave(self, process: str) -> None:
        """Forget a process that ends."""
        ...

    async def processes(self) -> Sequence[Process]:
        """Return the processes that have reported themselves within an hour, the oldest first."""
        ...

    async def due(self, now: float) -> Sequence[str]:
        """Return the paused runs whose time to continue has come."""
        ...

    async def get(self, run: str) -> RunRow | None: ...

    async def find(self, prefix: str) -> Sequence[str]:
        """Return the ids that begin with the prefix, newest first, at most 10."""
        ...

    async def list(self, *, status: Status | None = None, limit: int = 50) -> Sequence[RunRow]:
        """Return runs, newest first."""
        ...

    async def page(
        self, filters: RunFilters, after: str | None = None, limit: int = 100, sort: Sort = "started", pins: bool = True
    ) -> RunPage:
        """Return the first runs, or those that follow a cursor: the newest, longest or most expensive first, or by
        subject. Rows without `pins` take less time. Raises `ValueError` for a text that is not a cursor of this order.
        """
        ...

    async def named(self, runs: Sequence[str]) -> Sequence[RunRow]:
        """Return those of the named runs that exist, in no order."""
        ...

    async def counts(self, filters: RunFilters) -> Mapping[Status, int]:
        """Return the number of runs of each status, ignoring the statuses of the filters; at most `MOST_COUNTED` + 1
        each."""
        ...

    async def count(self, filters: RunFilters) -> int:
        """Return the number of runs, at most `MOST_COUNTED` + 1."""
        ...

    async def written_since(self, at: float) -> Sequence[RunRow]:
        """Return the runs that were changed at or after a time, and all that are running."""
        ...

    async def foreign_writes(self) -> int | None:
        """Return a number that changes when another process has written; None if only a look at the rows can tell."""
        ...

    async def marks(self) -> Marks: ...

    async def spent(self, since: float, until: float = inf) -> Spent:
        """Add up the costs of the runs that were started from a time on, before another, without reading the runs."""
        ...

    async def waited(self, since: float) -> Sequence[tuple[float, float]]:
        """Return when answered questions were asked and the seconds they waited, of the newest since a time."""
        ...

    async def recent_inputs(self, document: str, limit: int) -> Sequence[Mapping[str, Value]]:
        """Return the inputs of the newest runs of a document, without runs whose pins are large."""
        ...

    async def label(self, run: str, changes: Mapping[str, str | float | None]) -> None:
        """Set the `name`, `note` or `seen_at` of a run, also of one that is being driven. Nothing else changes."""
        ...

    async def text(self, sha256: str) -> str: ...

    async def effects(self, run: str) -> Sequence[EffectRecord]: ...

    async def events(self, run: str, after: int = 0) -> Sequence[Event]: ...

    def journal(self) -> JournalPages:
        """Return the reader of parts of journals."""
        ...

    async def questions(self, run: str | None = None) -> Sequence[Question]:
        """Return the open questions of runs that still wait, oldest first."""
        ...

    async def oldest_questions(
        self, limit: int, after: tuple[float, str, str] | None = None
    ) -> tuple[Sequence[Question], int]:
        """Return the open questions that were asked first, or those that follow a place (the time, run and path of a
        question), and the number of all open ones, at most `MOST_QUESTIONS` + 1. The others are not read."""
        ...

    async def expiring(self, since: float, until: float) -> Sequence[str]:
        """Return the first of the waiting runs that expire from a time on, before another. Times in the past give runs
        whose rows do not say yet that they have expired."""
        ...

    async def answers(self, run: str) -> Sequence[Answer]:
        """Return answers that a driver has not taken yet."""
        ...

    async def answer(self, run: str, path: str, hash: str, value: str, by: str = "") -> None:
        """Store an answer given by `by`.

        Raises `RunState` if the question is no longer open or was worded differently.
        """
        ...

    async def answered(self) -> Sequence[str]:
        """Return the runs that are waiting although an answer is stored that no process has taken yet, oldest first."""
        ...

    async def letters(self, recipient: str | None = None) -> Sequence[Letter]:
        """Return received letters, oldest first; without a recipient, the letters to all recipients."""
        ...

    async def request_cancel(self, run: str) -> bool:
        """Return True if the run is cancelled now; False if its live owner has been asked to cancel it."""
        ...

    async def acquire(self, run: str, *, after: int | None = None) -> Lease:
        """Take the next epoch and the owner's lock.

        Raises `RunBusy` while another process drives the run, `Fenced` if another process has owned it since the epoch
        `after`, in which the caller saw it, and `BrokenSeal` if the run is not as its user wrote it.
        """
        ...

    async def evict(self, run: str, epoch: int) -> bool:
        """Take the lock from an owner that is considered dead, if the run is still at that epoch. Return False if it is
        at another epoch.

        A stopped process, or one behind a broken network, still holds its lock. The epoch prevents it from writing once
        the next owner has begun.
        """
        ...

    async def check_seal(self, run: str, *, whole: bool = True) -> None:
        """Raise `BrokenSeal` unless the run is as its user wrote it.

        Checks its pins and, if `whole`, its journal, questions and answers too.
        """
        ...

    async def reseal(self, run: str) -> None:
        """Seal the run as it is stored now. Only the user can confirm that it is theirs."""
        ...

    async def write(self, lease: Lease, batch: Batch) -> WriteResult:
        """Write a batch. Raises `Fenced` if another process has taken the run over."""
        ...

    async def park(self, lease: Lease, batch: Batch) -> bool:
        """Do as `write`, unless an answer waits to be taken: then write nothing and return False."""
        ...

    async def release(self, lease: Lease) -> None: ...

    async def prune(self, before: float, statuses: Collection[Status], *, dry_run: bool, vacuum: bool) -> Pruned:
        """Remove runs that ended before a moment, and the texts that no run refers to any more. For a run that came
        with its history, the moment of its arrival counts if that is later than its end."""
        ...

    async def remove(self, runs: Sequence[str], *, dry_run: bool) -> Pruned:
        """Remove these runs, as far as they have ended and no process is about to drive them, and the texts that no
        run refers to any more."""
        ...

    async def backup(self, to: Path) -> int:
        """Write a complete and consistent copy while other processes continue writing, and return its size in bytes.
        Never overwrites a file."""
        ...

    async def claim_key(self, key: str, request: str) -> KeptReply | str:
        """Claim an idempotency key of the HTTP API for a request with this hash. Return the mark of the claim, or the
        reply to the request that has claimed the key before. Replies hold no authority: each only repeats an earlier
        one."""
        ...

    async def keep_reply(self, key: str, claim: str, reply: str | None) -> None:
        """Keep the reply of a claimed key; without a reply, give the key back."""
        ...

    async def close(self) -> None: ...


class Ports(Struct, frozen=True):
    """All ports of one drive."""

    store: Store
    model: Model
    tools: Tools
    loader: Loader
    people: People
    clock: Clock
    other_model: Callable[[str], Model] | None = None
    """Opens the model that an agent's profile names."""
    launched_runs: LaunchedRuns | None = None
    earlier: EarlierReplies | None = None
    """Replies of another run that are taken where the model would be asked the same."""
