"""Triggers: runs that start at times, for deliveries of webhooks or for files, once for each occurrence.

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
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, TypeAlias, cast
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
    PriceUnknown,
    QuireError,
    Refused,
    RunBusy,
    RunState,
)
from quire.expr import ExpressionError, compile, parse, reads
from quire.library.interface import input_schema
from quire.library.library import Library
from quire.library.lock_check import load_lock, lock_path, require_lock
from quire.library.lock_facts import LockableDocument, LockFacts
from quire.library.lookup import document_of
from quire.library.proven_findings import ProvenFindings
from quire.models.choose import PICODOLLARS
from quire.plan.built_in_tools import FETCH
from quire.runs.notify import announce_refusal
from quire.runs.options import RunOptions
from quire.runs.proven import prove_run
from quire.runs.spending import admission
from quire.runs.ticker import is_own
from quire.runs.trigger_files import WatchedFiles
from quire.source import Source, relative_to_here
from quire.stores.occurrences import PREFIX, EnabledTrigger, Occurrence, Start
from quire.trust.capabilities import capability
from quire.trust.private_files import shared_secret
from quire.trust.seal import same, user_seal
from quire.values import encode, fingerprint
from quire.wording import did_you_mean, nearest
from quire.workspace.configuration import load_settings
from quire.workspace.consent import require_trusted
from quire.workspace.grants import default_grants, reach_of
from quire.workspace.settings import table_in

if TYPE_CHECKING:
    from quire.analysis.lock.file import Lock, LockedCapability, LockedDocument
    from quire.diagnostics import Diagnostic
    from quire.engine.records import NewRun
    from quire.library.document import Document
    from quire.runs.runtime import Runtime
    from quire.stores.occurrences import StartState
    from quire.stores.statements import Statements
    from quire.stores.transactions import Steps
    from quire.values import Value
    from quire.workspace.settings import HookSecret, Settings, TriggerSettings

MOST_CAUGHT_UP, MOST_BACKFILLED = 100, 1000
MOST_WAITING = 20
"""Runs that wait for people before a trigger starts no more."""
ON_TIME = 60.0
"""The seconds within which an occurrence counts as on time."""
Facts: TypeAlias = "Mapping[str, Value]"
NO_FACTS: Facts = {}


def source_of(name: str) -> str:
    return f"{PREFIX}{name}"


def time_text(time: float, zone: str = "UTC") -> str:
    """Return a time as keys and inputs have it."""
    return datetime.fromtimestamp(time, ZoneInfo(zone)).isoformat(timespec="seconds").replace("+00:00", "Z")


def due_times(trigger: TriggerSettings, after: float) -> Iterator[float]:
    """Yield the due times after a time: none for webhooks and files. Raises `CannotStart` for settings that are
    wrong."""
    if step := int(trigger.every or 0):
        return map(float, itertools.count((int(after // step) + 1) * step, step))
    return _cron(trigger, after) if trigger.cron else iter(())


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


def look(trigger: TriggerSettings, cursor: float, now: float) -> tuple[tuple[float, float] | None, tuple[float, ...]]:
    """Return the due times since the cursor that start runs. Those beyond the window, or left out by `catch_up`, are
    before them: the first comes first, with the time until which all start nothing."""
    first = next(due_times(trigger, cursor), math.inf)
    if first > now:
        return None, ()
    since = now - (min(trigger.window, ON_TIME) if trigger.catch_up == "none" else trigger.window)
    due: deque[float] = deque(maxlen=MOST_CAUGHT_UP if trigger.catch_up == "all" else 1)
    # Due times are whole seconds: half of one lies between two.
    due.extend(itertools.takewhile(lambda time: time <= now, due_times(trigger, max(cursor, since - 0.5))))
    until = due[0] - 0.5 if due else since
    return None if first > until else (first, until), tuple(due)


def inputs_of(trigger: TriggerSettings, facts: Mapping[str, Value]) -> dict[str, Value] | None:
    """Return the inputs of a run; None if `when` is false. Raises `BadInputs` with all problems."""
    inputs, problems = dict[str, Any](trigger.inputs), list[str]()
    for name, expression in _expressions(trigger).items():
        try:
            inputs[name] = compile(parse(expression, dialect=True)).evaluate(facts)
        except ExpressionError as error:
            problems.append(f"{name}: {error}")
    if not isinstance(when := inputs.pop(_WHEN, True), bool):
        problems.append(f"{_WHEN} is not true or false")
    if problems:
        raise BadInputs(problems)
    return inputs if when else None


_WHEN, _KEY = "the expression of when", "the expression of key"


def _expressions(trigger: TriggerSettings) -> dict[str, str]:
    """Return the expressions of the inputs and of `when`."""
    named = {**trigger.inputs, _WHEN: {"expr": trigger.when or "true"}}
    return {
        name: str(expression["expr"])
        for name, expression in named.items()
        if isinstance(expression, Mapping) and [*expression] == ["expr"]
    }


def outside_inputs(trigger: TriggerSettings) -> tuple[str, ...]:
    """Return the inputs that get text from outside. Raises `BadInputs` for wrong expressions, also of others."""
    outside, problems = list[str](), list[str]()
    facts = ("due", "body", "headers") if trigger.webhook else ("due", "file") if trigger.files else ("due",)
    for name, expression in {**_expressions(trigger), _KEY: trigger.key or "body"}.items():
        # Headers are not signed: a delivery that is sent again with others must not be a new one.
        names = facts if name != _KEY else ("body",)
        try:
            paths = {read.path[0] for read in reads(parse(expression, dialect=True))}
        except ExpressionError as error:
            problems.append(f"{name}: {error}")
            continue
        problems += [f"{name}: {path} is unknown; it can read {', '.join(names)}" for path in sorted(paths - {*names})]
        outside += [name] if paths - {"due"} and name in trigger.inputs else []
    if problems:
        raise BadInputs(problems)
    return tuple(outside)


def key_of(expression: str, body: Value) -> str:
    """Return the key of a delivery; empty if its body has none."""
    key: Value = None
    with suppress(ExpressionError):
        key = compile(parse(expression, dialect=True)).evaluate({"body": body})
    return str(key) if isinstance(key, str | int) else ""


def _sample(schema: Mapping[str, Any], shared: Mapping[str, Any]) -> Value:
    """Return a small value that fits a schema: with it the rest of a start is checked before there is a delivery."""
    schema = shared.get(schema.get("$ref", "").rpartition("/")[2], schema)
    if schema.get("type") == "object" and "default" not in schema:
        return {name: _sample(schema["properties"][name], shared) for name in schema.get("required", [])}
    simple = {"number": schema.get("minimum", 0), "boolean": False, "array": []}
    sample: Value = schema.get("default", schema.get("enum", [simple.get(schema.get("type", ""), "text")])[0])
    return sample


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
        self._failed: dict[str, str] = {}
        """The last failures, by trigger and by run."""
        self._watched: dict[str, WatchedFiles] = {}
        """By the digests of the triggers."""
        self.polls = False
        """True if the last tick has looked at files."""

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
        """Return the seal of a row. It is worth nothing in a copy of the workspace, or in another one of the store."""
        settings = self._runtime.settings
        place = settings.cluster.task_queue if settings.cluster.temporal else str(settings.workspace.folder)
        return self._seal.facts("trigger", place, row.name, row.digest, row.authority, row.enabled_at, row.enabled_by)

    async def propose(self, name: str, accepted: tuple[str, ...] = ()) -> Proposal:
        """Look for everything that would keep a trigger from starting its document."""
        trigger, settings, now, problems = self.trigger(name), self.settings, self._runtime.clock.now(), list[str]()
        try:
            if trigger.cron and next(_cron(trigger, now), None) is None:
                problems.append(f"cron {trigger.cron} never fires")
            if trigger.files:
                WatchedFiles(settings, trigger.files, self._report)
            for hook in trigger.webhook:
                hook_secret(name, hook, self._runtime.environ)
        except QuireError as error:
            problems.append(str(error))
        try:
            document = self._document(name, trigger)
            outside = outside_inputs(trigger)
            key, lock, locked = await asyncio.to_thread(_locked, settings, document, outside)
            own = {input: value for input, value in trigger.inputs.items() if input not in outside}
            inside = replace(trigger, inputs=own, when="" if trigger.webhook or trigger.files else trigger.when)
            facts = {"due": time_text(now)}
            inputs = inputs_of(inside, facts) or inputs_of(replace(inside, when=""), facts) or {}
            grants = default_grants(settings, trigger.allow)
        except QuireError as error:
            return Proposal((*problems, str(error)))
        schema = cast("Any", input_schema(document))
        required, properties = schema.get("required", []), schema.get("properties", {})
        problems += [f"input {input} is not mapped" for input in required if input not in trigger.inputs]
        may = tuple(dict.fromkeys(entry.capability for entry in locked.may))
        if not document.runnable().thread:  # the grants of a directive are in its signature
            hosts = {capability("execute", "tool", FETCH)} if reach_of(grants).hosts else set[str]()
            lacking = [needed for needed in may if not grants.includes(needed) and needed not in hosts]
            problems += [f"{needed} is not granted: allow names its tool" for needed in lacking]
        problems += [f"{unknown}, which it calls, was not found" for unknown in locked.unknown]
        authority = encode(msgspec.to_builtins(Consent(key, lock, accepted)))
        proposal = Proposal(
            (), authority, _digest(trigger, authority), may, document=key.partition("#")[0], needs=locked.may
        )
        for finding in await asyncio.to_thread(_findings, settings, document, outside):
            if finding.code.id not in accepted:
                problems.append(f"{finding.code.id}: {finding.message}: --accept {finding.code.id} lets it")
        try:
            samples = {input: _sample(properties.get(input, {}), schema.get("$defs", {})) for input in outside}
            options = self._options(name, trigger, accepted)
            pins = (await self._runtime.prepared(document, {**inputs, **samples}, options)).pins
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
        most = 0.0 if money is None else most  # no model is asked
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
        trigger = self.trigger(name)
        if trigger.files and not trigger.existing:
            watched = WatchedFiles(self.settings, trigger.files, self._report)
            await asyncio.to_thread(watched.look)
            while files := await asyncio.to_thread(watched.look):
                for file in files:
                    occurrence, reason = Occurrence(source_of(name), file.key), "found when the trigger was enabled"
                    await self._store.start_once(None, occurrence, state="skipped", reason=reason)
                    watched.settled[file.path] = file.mark
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
        )

    async def fire(
        self, name: str, key: str, *, due: float = 0.0, facts: Facts = NO_FACTS, moves: bool = False, late: bool = False
    ) -> tuple[Start, bool]:
        """Start a run for an occurrence, and tell whether this call has claimed it. Nothing is driven. With `moves` the
        cursor moves to the due time; with `late` the overlap is `queue`. Raises `RunState` for a trigger that is not
        enabled."""
        row, trigger, why = (await self.rows()).get(name, (None, self.trigger(name), "it is not enabled"))
        if row is None or trigger is None or why:
            raise RunState(f"trigger {name} starts nothing: {why}")
        if not moves and (earlier := await self._store.start_of(Occurrence(source_of(name), key))) is not None:
            return earlier, False
        trigger = replace(trigger, overlap="queue") if late else trigger
        due, new, reason = due or self._runtime.clock.now(), None, "when is false"
        state: StartState = "skipped"
        try:
            inputs = inputs_of(trigger, {"due": time_text(due, trigger.zone), **facts})
            if inputs is not None:
                document, consent = await self._covered(row, trigger)
                options = self._options(name, trigger, consent.accepted)
                new = await self._runtime.prepared(document, inputs, options)
                admission(self._runtime, new, trigger.day_budget)
                state, reason = "started", ""
        except (Refused, BadDocument, BadInputs, PriceUnknown, LimitReached) as error:
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

    async def _covered(self, row: EnabledTrigger, trigger: TriggerSettings) -> tuple[Document, Consent]:
        """Return the document as it is now, with what the user agreed to. Raises `Refused` if it may do more."""
        document, consent = self._document(row.name, trigger), msgspec.json.decode(row.authority, type=Consent)
        await asyncio.to_thread(_require_covered, self.settings, document, consent, outside_inputs(trigger))
        return document, consent

    async def problems(self) -> dict[str, str]:
        """Return for each enabled trigger why it would start nothing now; an empty text if it would."""
        problems = dict[str, str]()
        for name, (row, trigger, why) in (await self.rows()).items():
            problems[name] = why
            if trigger is not None and not why:
                try:
                    _, consent = await self._covered(row, trigger)
                    problems[name] = "\n".join((await self.propose(name, consent.accepted)).problems)
                except QuireError as error:
                    problems[name] = str(error)
        return problems

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
        """Settle all due times and files, and drive the pending runs of triggers. Return them."""
        rows = await self.rows()
        self.polls = any(trigger is not None and trigger.files and not why for _, trigger, why in rows.values())
        for row, trigger, why in rows.values():
            if trigger is not None and not why:
                await self._tried(row.name, self._settle(row, trigger, now))
        return await self.begin(drive)

    async def begin(self, drive: Callable[[str], Awaitable[object]]) -> list[str]:
        """Drive the pending runs of triggers, where they may not overlap the oldest while none is under way, until none
        is left that need not wait. Return them."""
        runs, triggers = list[str](), self.settings.triggers
        while True:
            fresh: list[str] = []
            for source, waits in itertools.groupby(await self._store.under_way(), lambda each: each[0]):
                trigger, states = triggers.get(source.removeprefix(PREFIX)), {run: status for _, run, status in waits}
                pending = [run for run, status in states.items() if status == "pending"]
                overlaps = trigger is not None and trigger.overlap == "allow"
                fresh += pending if overlaps else pending[:1] if len(pending) == len(states) else []
            others = [row.id for row in await self._store.named(fresh) if not is_own(self._runtime, row)]
            fresh = [run for run in fresh if run not in (*runs, *others)]
            if not fresh:
                return runs
            for run in fresh:
                await self._tried(run, drive(run))
            runs += fresh

    async def _tried(self, name: str, work: Awaitable[object]) -> None:
        """Report the first failure of a trigger or a run. The next tick tries it again."""
        try:
            await work
            self._failed.pop(name, None)
        except (RunBusy, Fenced):
            return
        except Exception as error:  # it holds up no other trigger
            failure = str(error) if isinstance(error, QuireError) else f"a mistake of Quire: {error!r}"
            if name not in self._failed:
                self._report(f"{name} has failed, and is tried again: {failure}")
            self._failed[name] = failure

    async def _settle(self, row: EnabledTrigger, trigger: TriggerSettings, now: float) -> None:
        """Settle the due times and the files of one trigger."""
        if row.cursor > now + ON_TIME:  # the clock was wrong; claims stay
            return await self._store.move_trigger(row.name, row.cursor, now)
        missed, times = look(trigger, row.cursor, now)
        if missed is not None:
            first, until = missed
            occurrence = Occurrence(source_of(row.name), f"{time_text(first)}..{time_text(until)}", due=first)
            admit = partial(self._admit, row, trigger, None, until)
            reason = ": ".join(filter(None, ("nothing started them in time", self._failed.get(row.name))))
            await self._store.start_once(None, occurrence, admit, state="missed", reason=reason)
        for time in times:
            await self.fire(row.name, time_text(time), due=time, moves=True)
        if trigger.files:
            fresh = WatchedFiles(self._runtime.settings, trigger.files, self._report)
            watched = self._watched.setdefault(row.digest, fresh)
            for file in await asyncio.to_thread(watched.look):
                facts: Value = {"path": file.path, "name": PurePath(file.path).name, "size": file.size}
                await self.fire(row.name, file.key, facts={"file": facts})
                watched.settled[file.path] = file.mark

    async def holes(self, name: str, since: str, until: str) -> list[float]:
        """Return the due times of a time span that nothing has claimed."""
        trigger = self.trigger(name)
        try:
            zone, times = ZoneInfo(trigger.zone), [datetime.fromisoformat(text) for text in (since, until)]
            first, last = (time.replace(tzinfo=time.tzinfo or zone).timestamp() for time in times)
        except (OSError, ValueError, KeyError) as error:
            raise CannotStart(f"a time is written like 2026-11-01 or 2026-11-01T06:00: {error}") from None
        last = min(last, self._runtime.clock.now())
        due = itertools.takewhile(lambda time: time <= last, due_times(trigger, first - 0.5))
        all_due, source = list(itertools.islice(due, MOST_BACKFILLED + 1)), source_of(name)
        if not (trigger.cron or trigger.every) or len(all_due) > MOST_BACKFILLED:
            raise CannotStart(f"only {MOST_BACKFILLED:,} due times of cron or every are filled at once")
        return [time for time in all_due if not await self._store.start_of(Occurrence(source, time_text(time)))]


def hook_secret(name: str, hook: HookSecret, environ: Mapping[str, str]) -> bytes:
    """Return the secret of a webhook. Raises `CannotStart` or `Refused`."""
    encoded = hook.scheme == "standard"
    return shared_secret(f"[triggers.{name}]", hook.secret_env, hook.secret_file, environ, encoded=encoded)


def _digest(trigger: TriggerSettings, authority: str) -> str:
    return fingerprint([msgspec.to_builtins(trigger), authority])


def _findings(settings: Settings, document: Document, outside: tuple[str, ...]) -> list[Diagnostic]:
    """Return the findings about text from outside that some inputs bring into a document. Comments in it allow none."""
    findings = ProvenFindings(Library(settings).snapshot()).of(document.source, outside) if outside else ()
    return [finding for finding in findings if finding.code.id.startswith("TA")]


def _locked(
    settings: Settings, document: Document, outside: tuple[str, ...], old: Lock | None = None
) -> tuple[str, str, LockedDocument]:
    """Return the key of a document, its lock as text, and its facts; with the tools and prices of an earlier lock."""
    reading = None if old else load_lock(lock_path(settings.workspace))
    tools = old.tools if old else reading.lock.tools if reading and reading.lock else {}
    facts = LockFacts(settings.workspace, tools, old.prices if old else None)
    key = facts.key_of(Path(document.name))
    if key is None:
        raise Refused(f"{document.name} is outside of this workspace, whose documents triggers start")
    key += f"#{document.declared}" if document.declared else ""
    lock = facts.lock([LockableDocument(key, document.source, document.runnable(), outside=outside)])
    return key, file.written(lock), lock.documents[key]


def _require_covered(settings: Settings, document: Document, consent: Consent, outside: tuple[str, ...]) -> None:
    """Raise `Refused` if a document may do or cost more than the user agreed to."""
    old = require_lock(read_lock(Source.of(consent.lock, "the consent")))
    key, _, now = _locked(settings, document, outside, old)
    changes = compare_document(key, old.documents.get(consent.key), now, old.tools)
    if wider := [told(change) for change in changes if change.direction == "wider"]:
        raise Refused("\n".join([f"{key} may do or cost more than when the trigger was enabled:", *wider]))
