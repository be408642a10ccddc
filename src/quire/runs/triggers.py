"""Triggers: runs that start at the times of the user's settings, once for each occurrence.

A trigger acts only while the store has the sealed consent of the user to its settings and to what its document may do.
Each fire reads the document as it is now and compares the two. A run is prepared first; the claim of the occurrence,
the limits that hold between runs, and the run itself are one transaction. A failure that may pass claims nothing: the
next look tries again, until the window of the trigger has passed.
"""

from __future__ import annotations

import asyncio
import itertools
import math
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from zoneinfo import ZoneInfo

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from quire.analysis.approvals import has_default
from quire.analysis.lock import file
from quire.analysis.lock.compare import compare_document
from quire.analysis.lock.difference_words import told
from quire.analysis.lock.read import read_lock
from quire.errors import (
    BadDocument,
    BadInputs,
    CannotStart,
    Fenced,
    LimitReached,
    QuireError,
    Refused,
    RunBusy,
    RunState,
)
from quire.expr import ExpressionError, compile, parse
from quire.library.interface import input_schema
from quire.library.lock_check import load_lock, lock_path, require_lock
from quire.library.lock_facts import LockableDocument, LockFacts
from quire.library.lookup import document_of
from quire.models.choose import PICODOLLARS
from quire.runs.notify import announce_refusal
from quire.runs.options import RunOptions
from quire.runs.proven import prove_run
from quire.runs.spending import admission
from quire.runs.stored import store_place
from quire.source import Source, relative_to_here
from quire.stores import is_server
from quire.stores.occurrences import EnabledTrigger, Occurrence, Start
from quire.trust.seal import same, user_seal
from quire.values import encode, fingerprint
from quire.wording import did_you_mean, nearest
from quire.workspace.configuration import load_settings
from quire.workspace.consent import require_trusted
from quire.workspace.grants import default_grants
from quire.workspace.settings import table_in

if TYPE_CHECKING:
    from quire.analysis.lock.file import Lock, LockedCapability, LockedDocument
    from quire.engine.records import NewRun
    from quire.library.document import Document
    from quire.runs.runtime import Runtime
    from quire.stores.occurrences import StartState
    from quire.stores.statements import Statements
    from quire.stores.transactions import Steps
    from quire.values import Value
    from quire.workspace.settings import Settings, TriggerSettings

PREFIX = "trigger:"
MOST_CAUGHT_UP = 100
MOST_WAITING = 20
"""Runs that wait for people before a trigger starts no more."""
ON_TIME = 60.0
"""The seconds within which an occurrence counts as on time."""


def source_of(name: str) -> str:
    return f"{PREFIX}{name}"


def time_text(time: float, zone: str = "UTC") -> str:
    """Return a time as keys and inputs have it."""
    return datetime.fromtimestamp(time, ZoneInfo(zone)).isoformat(timespec="seconds").replace("+00:00", "Z")


def _every(trigger: TriggerSettings, after: float) -> Iterator[float]:
    step = int(trigger.every or 1)
    return map(float, itertools.count((int(after // step) + 1) * step, step))


def _cron(trigger: TriggerSettings, after: float) -> Iterator[float]:
    from cronsim import CronSim, CronSimError

    try:
        zone = UTC if trigger.zone == "UTC" else ZoneInfo(trigger.zone)
        # Local times are counted from an hour before: in the hour that clocks repeat, one of them means two times.
        back = 3600 if zone is not UTC and len(trigger.cron.split()) == 5 else 0
        for at in CronSim(trigger.cron, datetime.fromtimestamp(after - back, zone)):
            if (due := at.timestamp()) > after:
                yield due
    except CronSimError as error:
        raise CannotStart(f"cron {trigger.cron}: {error}") from None
    except (OSError, ValueError, KeyError):
        raise CannotStart(f"zone {trigger.zone} does not exist: a zone is written like Europe/Berlin") from None


class Kind(NamedTuple):
    """A kind of source."""

    names: tuple[str, ...]
    """The names that expressions may read."""
    times: Callable[[TriggerSettings, float], Iterator[float]]
    """Yields the due times after a time. Raises `CannotStart` for settings that are wrong."""


KINDS: Mapping[str, Kind] = {"cron": Kind(("due",), _cron), "every": Kind(("due",), _every)}


def kind_of(trigger: TriggerSettings) -> Kind:
    return next(kind for name, kind in KINDS.items() if getattr(trigger, name))


def look(trigger: TriggerSettings, cursor: float, now: float) -> tuple[tuple[float, float] | None, tuple[float, ...]]:
    """Return the due times since the cursor that start runs. Those beyond the window, or left out by `catch_up`, are
    before them: the first comes first, with the time until which all start nothing."""
    times = kind_of(trigger).times
    first = next(times(trigger, cursor), math.inf)
    if first > now:
        return None, ()
    since = now - (min(trigger.window, ON_TIME) if trigger.catch_up == "none" else trigger.window)
    due: deque[float] = deque(maxlen=MOST_CAUGHT_UP if trigger.catch_up == "all" else 1)
    # Due times are whole seconds: half of one lies between two.
    due.extend(itertools.takewhile(lambda time: time <= now, times(trigger, max(cursor, since - 0.5))))
    until = due[0] - 0.5 if due else since
    return None if first > until else (first, until), tuple(due)


def inputs_of(trigger: TriggerSettings, facts: Mapping[str, Value]) -> dict[str, Value] | None:
    """Return the inputs of a run; None if `when` is false. Raises `BadInputs` with all problems."""
    inputs, problems = dict[str, Any](trigger.inputs), list[str]()
    named = {**trigger.inputs, _WHEN: {"expr": trigger.when or "true"}}
    for name, expression in named.items():
        if isinstance(expression, Mapping) and [*expression] == ["expr"]:
            try:
                inputs[name] = compile(parse(str(expression["expr"]), dialect=True)).evaluate(facts)
            except ExpressionError as error:
                problems.append(f"{name}: {error}")
    if not isinstance(when := inputs.pop(_WHEN, True), bool):
        problems.append(f"{_WHEN} is not true or false")
    if problems:
        raise BadInputs(problems)
    return inputs if when else None


_WHEN = "the expression of when"


class Consent(Struct, frozen=True):
    """The consent of a user to the document of a trigger: the column `authority`."""

    key: str
    """Of the document in the next."""
    lock: str
    accepted: tuple[str, ...] = ()
    """Codes of findings that stop other runs."""


class Proposal(Struct, frozen=True):
    """A trigger as it would be enabled now, with all reasons against that."""

    problems: tuple[str, ...]
    authority: str = ""
    digest: str = ""
    may: tuple[str, ...] = ()
    model: str = ""
    most: float | None = None
    """The dollars that are proven to be the most of one run; None if that is not known."""
    document: str = ""
    """The path of the document in the workspace."""
    needs: tuple[LockedCapability, ...] = ()
    """Its capabilities, with how far each goes."""


class Triggers:
    """The triggers of a workspace. `report` gets lines for the user; `door` is the mark of the runs that they start."""

    def __init__(self, runtime: Runtime, report: Callable[[str], None] = lambda line: None, door: str = "") -> None:
        self._runtime, self._store, self._report, self._door = runtime, runtime.store, report, door
        self._seal = user_seal(runtime.settings.user, runtime.environ)
        self._failed: set[str] = set()

    @property
    def settings(self) -> Settings:
        """The settings as the files have them now."""
        return load_settings(self._runtime.settings.workspace, self._runtime.environ)

    def trigger(self, name: str) -> TriggerSettings:
        triggers = self.settings.triggers
        if name not in triggers:
            known = f": there are {', '.join(sorted(triggers))}" if triggers else ": quire.toml has no [triggers.NAME]"
            raise CannotStart(f"unknown trigger {name}" + did_you_mean(nearest(name, triggers), known, lead=": "))
        return triggers[name]

    async def rows(self) -> dict[str, tuple[EnabledTrigger, TriggerSettings | None, str]]:
        """Return the enabled triggers with their settings, and why a row starts nothing: empty if it holds."""
        triggers, rows = self.settings.triggers, await self._store.triggers()
        return {row.name: (row, triggers.get(row.name), self._why_off(row, triggers.get(row.name))) for row in rows}

    def _why_off(self, row: EnabledTrigger, trigger: TriggerSettings | None) -> str:
        if not same(row.seal, self._sealed(row)):
            return "it was not enabled by you: its seal is of another user or folder"
        if trigger is None:
            return "its settings are gone"
        return "" if row.digest == _digest(trigger, row.authority) else "its settings have changed since it was enabled"

    def _sealed(self, row: EnabledTrigger) -> str:
        """Return the seal of a row. One of a file in a workspace is worth nothing in a copy of it."""
        settings = self._runtime.settings
        place = "" if is_server(store_place(settings)) else str(settings.workspace.folder)
        return self._seal.facts("trigger", place, row.name, row.digest, row.authority, row.enabled_at, row.enabled_by)

    async def propose(self, name: str, accepted: tuple[str, ...] = ()) -> Proposal:
        """Look for everything that would keep a trigger from starting its document."""
        trigger, settings, now, problems = self.trigger(name), self.settings, self._runtime.clock.now(), list[str]()
        try:
            if next(kind_of(trigger).times(trigger, now), None) is None:
                problems.append(f"cron {trigger.cron} never fires")
        except CannotStart as error:
            problems.append(str(error))
        try:
            document = self._document(name, trigger)
            key, lock, locked = await asyncio.to_thread(_locked, settings, document)
            facts = dict.fromkeys(kind_of(trigger).names, time_text(now))
            inputs = inputs_of(trigger, facts) or inputs_of(replace(trigger, when=""), facts) or {}
        except QuireError as error:
            return Proposal((*problems, str(error)))
        required = cast("list[str]", input_schema(document).get("required", []))
        problems += [f"input {input} is not mapped" for input in required if input not in trigger.inputs]
        may = tuple(dict.fromkeys(entry.capability for entry in locked.may))
        if not document.runnable().thread:  # the grants of a directive are in its signature
            grants = default_grants(settings, trigger.allow)
            problems += [
                f"{needed} is not granted: allow names its tool" for needed in may if not grants.includes(needed)
            ]
        problems += [f"{unknown}, which it calls, was not found" for unknown in locked.unknown]
        authority = encode(msgspec.to_builtins(Consent(key, lock, accepted)))
        proposal = Proposal(
            (), authority, _digest(trigger, authority), may, document=key.partition("#")[0], needs=locked.may
        )
        try:
            pins = (await self._runtime.prepared(document, inputs, self._options(name, trigger, accepted))).pins
        except QuireError as error:
            problems += getattr(error, "problems", None) or [str(error)]
            return replace(proposal, problems=tuple(dict.fromkeys(problems)))
        model = str(pins["model"])
        proof = prove_run(document, settings, inputs, model=model, one_model=bool(pins["one_model"]))
        if trigger.questions == "default":
            asked = (question.place.way for question in proof.proof.questions if not has_default(question))
            problems += [f"step {way} asks without a default, and questions is default" for way in asked]
        money, picodollars = proof.quantity("money"), proof.most("money")
        most = None if picodollars is None else picodollars / PICODOLLARS
        if money is not None and money.unpriced:
            problems += [f"day_budget: {why}" for why in money.unpriced if trigger.day_budget is not None]
        elif money is not None and most != 0 and trigger.budget is None:
            problems.append("it needs a budget, because its model has a price")
        elif most is not None and trigger.budget is not None and most > trigger.budget:
            problems.append(f"a run may cost ${most:.2f}, which is more than its budget of ${trigger.budget:.2f}")
        return replace(proposal, problems=tuple(dict.fromkeys(problems)), model=model, most=most)

    async def enable(self, name: str, seen: str, by: str, accepted: tuple[str, ...] = ()) -> None:
        """Remember that the user agrees to a trigger as `seen`, the digest of a proposal. Raises `Refused`."""
        proposal, now = await self.propose(name, accepted), self._runtime.clock.now()
        if proposal.problems:
            raise Refused("\n".join([f"trigger {name} is refused:", *proposal.problems]))
        if proposal.digest != seen:
            raise Refused(f"trigger {name} is not what was shown: look at it again")
        row = EnabledTrigger(name, seen, proposal.authority, now, now, by, "")
        await self._store.enable(replace(row, seal=self._sealed(row)))

    def _document(self, name: str, trigger: TriggerSettings) -> Document:
        if name in table_in(self.settings.requested, "triggers"):
            require_trusted(self.settings)
        folder = self._runtime.settings.workspace.folder
        file = folder / trigger.run
        document = document_of((relative_to_here(file) or str(file)) if file.is_file() else trigger.run, folder)
        document.runnable()
        return document

    def _options(self, name: str, trigger: TriggerSettings, accepted: tuple[str, ...]) -> RunOptions:
        return RunOptions(
            model=trigger.model,
            unattended=trigger.questions == "default",
            allow=trigger.allow,
            budget=trigger.budget,
            door=self._door,
            accepted=accepted,
            source=source_of(name),
            lane="" if trigger.overlap == "allow" else source_of(name),
        )

    async def fire(
        self, name: str, key: str, *, due: float = 0.0, facts: Mapping[str, Value] | None = None, moves: bool = False
    ) -> tuple[Start, bool]:
        """Start a run for an occurrence, and tell whether this call has claimed it. Nothing is driven. With `moves` the
        cursor moves to the due time. Raises `RunState` for a trigger that is not enabled."""
        row, trigger, why = (await self.rows()).get(name, (None, self.trigger(name), "it is not enabled"))
        if row is None or trigger is None or why:
            raise RunState(f"trigger {name} starts nothing: {why}")
        due, new, reason = due or self._runtime.clock.now(), None, "when is false"
        state: StartState = "skipped"
        try:
            inputs = inputs_of(trigger, {"due": time_text(due, trigger.zone), **(facts or {})})
            if inputs is not None:
                document, consent = self._document(name, trigger), msgspec.json.decode(row.authority, type=Consent)
                await asyncio.to_thread(_require_covered, self.settings, document, consent)
                options = self._options(name, trigger, consent.accepted)
                new = await self._runtime.prepared(document, inputs, options)
                admission(self._runtime, new, trigger.day_budget)
                state, reason = "started", ""
        except (Refused, BadDocument, BadInputs, LimitReached) as error:
            new, state, reason = None, "refused", str(error)
        admit = partial(self._admit, row, trigger, new, due if moves else None)
        occurrence = Occurrence(source_of(name), key, due=due)
        start, is_new = await self._store.start_once(new, occurrence, admit, state=state, reason=reason)
        if moves and not is_new:
            await self._store.move_trigger(name, row.cursor, max(row.cursor, due))
        if is_new and state == "refused":
            self._report(f"trigger {name} is refused: {reason}")
            announce_refusal(self._runtime, name, reason)
        return start, is_new

    def _admit(
        self, row: EnabledTrigger, of: TriggerSettings, new: NewRun | None, due: float | None, sql: type[Statements]
    ) -> Steps[str]:
        """Decide in the transaction of the claim. The row of the trigger is locked until its end."""
        held = yield sql.HELD_TRIGGER, (row.name,)
        if not held or held[0][0] != row.seal or (due is not None and due <= held[0][1]):
            raise RunState("another process has settled or changed it")
        if due is not None:
            yield sql.MOVE_TRIGGER, (due, row.name, held[0][1])
        if new is None:
            return ""
        runs = yield sql.UNENDED_OF, (source_of(row.name), self._runtime.clock.now())
        under_way = [run for run, status in runs if status in ("pending", "running")]
        if under_way and of.overlap == "skip":
            return f"run {under_way[0]} is under way"
        if len(runs) - len(under_way) >= MOST_WAITING:
            return f"{MOST_WAITING} of its runs wait"
        money = admission(self._runtime, new, of.day_budget)
        return (yield from money(sql)) if money is not None else ""

    async def tick(self, now: float, drive: Callable[[str], Awaitable[object]]) -> list[str]:
        """Settle all due times, and drive the runs that have just started, or, where they may not overlap, the oldest
        that waits while none is under way. Return them."""
        runs: list[str] = []
        for row, trigger, why in (await self.rows()).values():
            if trigger is not None and not why:
                await self._tried(row.name, self._settle(row, trigger, now, runs))
        lanes: dict[str, list[tuple[str, str]]] = {}
        for lane, run, status in await self._store.under_way():
            lanes.setdefault(lane, []).append((run, status))
        for lane, waits in lanes.items():
            if lane.startswith(PREFIX) and all(status == "pending" for _, status in waits):
                runs.append(waits[0][0])
        for run in runs:
            await self._tried(run, drive(run))
        return runs

    async def _tried(self, name: str, work: Awaitable[object]) -> None:
        """Report the first failure of a trigger or a run. The next tick tries it again."""
        try:
            await work
            self._failed.discard(name)
        except (RunBusy, Fenced):
            return
        except QuireError as error:
            if name not in self._failed:
                self._report(f"{name} has failed, and is tried again: {error}")
            self._failed.add(name)

    async def _settle(self, row: EnabledTrigger, trigger: TriggerSettings, now: float, runs: list[str]) -> None:
        """Settle the due times of one trigger, and add the runs that need not wait for others."""
        if row.cursor > now + ON_TIME:  # the clock was wrong; claims stay
            return await self._store.move_trigger(row.name, row.cursor, now)
        missed, times = look(trigger, row.cursor, now)
        if missed is not None:
            first, until = missed
            occurrence = Occurrence(source_of(row.name), f"{time_text(first)}..{time_text(until)}", due=first)
            admit = partial(self._admit, row, trigger, None, until)
            reason = "nothing started them in time"
            await self._store.start_once(None, occurrence, admit, state="missed", reason=reason)
        for time in times:
            start, is_new = await self.fire(row.name, time_text(time), due=time, moves=True)
            runs += [start.run] if is_new and start.run and trigger.overlap == "allow" else []


def _digest(trigger: TriggerSettings, authority: str) -> str:
    return fingerprint([msgspec.to_builtins(trigger), authority])


def _locked(settings: Settings, document: Document, old: Lock | None = None) -> tuple[str, str, LockedDocument]:
    """Return the key of a document, its lock as text, and its facts; with the tools and prices of an earlier lock."""
    reading = None if old else load_lock(lock_path(settings.workspace))
    tools = old.tools if old else reading.lock.tools if reading and reading.lock else {}
    facts = LockFacts(settings.workspace, tools, old.prices if old else None)
    key = facts.key_of(Path(document.name))
    if key is None:
        raise Refused(f"{document.name} is outside of this workspace, whose documents triggers start")
    key += f"#{document.declared}" if document.declared else ""
    lock = facts.lock([LockableDocument(key, document.source, document.runnable())])
    return key, file.written(lock), lock.documents[key]


def _require_covered(settings: Settings, document: Document, consent: Consent) -> None:
    """Raise `Refused` if a document may do or cost more than the user agreed to."""
    old = require_lock(read_lock(Source.of(consent.lock, "the consent")))
    key, _, now = _locked(settings, document, old)
    changes = compare_document(key, old.documents.get(consent.key), now, old.tools)
    if wider := [told(change) for change in changes if change.direction == "wider"]:
        raise Refused("\n".join([f"{key} may do or cost more than when the trigger was enabled:", *wider]))
