"""One workspace with its store: start, drive and view runs."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from quire.engine.driver.drive import DriveResult
from quire.engine.driver.replay import Replay, replay
from quire.engine.interpreter.playbook.steps import WrongAnswer, checked_answer
from quire.engine.progress import Progress
from quire.engine.records import EffectRecord, NewRun, Question, RunRow, Status
from quire.errors import BadInputs, CannotStart, KeyReused, LimitReached, Refused, RunState
from quire.library.callees import Callees
from quire.library.library import Library
from quire.library.texts import ItemLoader, PromptLoader
from quire.plan.uses import LAUNCHES, has_agents, has_step_tools, has_threads, prompt_schemes, tool_calls
from quire.plan.vocabulary import typed_way
from quire.runs.adapters import PROGRAM, Models, WallClock, one_name
from quire.runs.drives import apply_amendments, drive_run
from quire.runs.outcome import RunView
from quire.runs.pins import PinnedRun, PinnedState, Texts, read_pinned
from quire.runs.spending import admission, most_cost
from quire.runs.start import new_run_id, prepare
from quire.runs.stored import StoredRuns, settings_of, shared_store_of, store_of
from quire.runs.workspace_gate import open_gate
from quire.stores.run_pages import with_subject
from quire.tools.builtin import NAMES
from quire.tools.gate import Gate
from quire.tools.registry import Connection, Connections
from quire.trust.capabilities import Grants, canonical
from quire.trust.secrets import Redactor
from quire.workspace.grants import default_grants
from quire.workspace.mcp_config import BUILT_IN
from quire.workspace.settings import AgentSettings, Settings

if TYPE_CHECKING:
    from quire.engine.driver.drive import Drive
    from quire.engine.interpreter.thread.compose import Bundle
    from quire.engine.ports import Clock, Model, People, Store, Tools
    from quire.library.directives import Directives
    from quire.library.document import Document
    from quire.library.registered import RegisteredPipelines as Pipelines
    from quire.models.choose import Choice
    from quire.plan.nodes import Plan
    from quire.runs.options import RunOptions
    from quire.runs.preflight import Start
    from quire.runs.proven import RunBounds
    from quire.stores.contract import History
    from quire.values import Value


class Runtime(StoredRuns):
    """The entry point to one workspace and its store.

    `model` and `tools` replace those that the settings would choose; a program passes them again each time it starts.
    With a `queue`, new runs belong to the cluster that serves it: their keys and tools are those of its workers and are
    not checked here. `hand_over` then gives the cluster a run that this process does not wait for. `notice` receives
    lines for people about slow work. `release` is called at the end instead of closing the store.
    """

    def __init__(
        self,
        settings: Settings,
        store: Store,
        *,
        environ: Mapping[str, str] | None = None,
        model: Model | None = None,
        tools: Tools | None = None,
        clock: Clock | None = None,
        identity: str = "default",
        repairs: int = 2,
        queue: str = "",
        hand_over: Callable[[str], Awaitable[None]] | None = None,
        notice: Callable[[str], None] = lambda line: None,
        release: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        super().__init__(settings, store, release)
        self.clock = clock or WallClock()
        self.identity, self.repairs, self.notice = identity, repairs, notice
        self.queue, self.hand_over = queue, hand_over
        self.tells_bounds = False
        """True to find out, also for a run that only asks, what it can do at most."""
        self.proven_with = settings
        """The settings that runs are proven with. Runtimes that share them share the proofs of their documents."""
        self.bounds: RunBounds | None = None
        """Of the run that was started last."""
        self.environ = os.environ if environ is None else environ
        self.models = Models(settings, self.environ, model)
        self._tools = tools
        self._last: tuple[tuple[object, ...], PinnedRun] | None = None
        self.library = Library(settings)
        self.accepted: tuple[str, ...] = ()
        """Codes of findings that the user accepts, though they stop runs."""
        self.allotted: dict[str, tuple[float, bool]] = {}
        """Budgets of runs that are about to be launched, by id, and whether they hold without a price too."""
        self.driven: dict[str, tuple[People | None, RunOptions]] = {}
        """For each run that is driven: the people it asks, and the options that runs which it launches inherit."""

    @classmethod
    def open(
        cls,
        start: Path | None = None,
        *,
        environ: Mapping[str, str] | None = None,
        model: Model | None = None,
        tools: Tools | None = None,
        shared: bool = False,
        settings: Settings | None = None,
    ) -> Runtime:
        """Return the runtime of the workspace around `start` (the current folder by default). Opens nothing yet.

        With `shared`, which needs a running event loop, runtimes of one workspace in one loop use one store. `settings`
        are those of the workspace, if they have just been read.
        """
        environ = os.environ if environ is None else environ
        settings = settings or settings_of(start, environ)
        if shared:
            sharing = shared_store_of(settings, environ)
            return cls(settings, sharing.store, environ=environ, model=model, tools=tools, release=sharing.release)
        return cls(settings, store_of(settings, environ), environ=environ, model=model, tools=tools)

    def choose_model(self, named: str | None, plan: Plan | None = None) -> Choice:
        """Return the model that a run started now would use, and the reason. A directive may state which one it
        wants."""
        if plan is not None and (thread := plan.thread):
            return self.models.choose(named, lambda: self.directives.model_of(thread))
        return self.models.choose(named)

    async def close(self) -> None:
        """Close the store, unless others share it, once the user's program has been told of all runs, and spans are
        sent."""
        if self.settings.notify is not None:
            from quire.runs.notify import all_told

            await all_told()
        if "quire.telemetry.exporter" in sys.modules:
            import asyncio

            from quire.runs.traces import exporter_of

            with contextlib.suppress(CannotStart):  # that of another workspace
                await asyncio.to_thread(exporter_of(self).flush, self.notice)
        await super().close()

    async def start(
        self,
        document: Document,
        inputs: Mapping[str, Value],
        options: RunOptions,
        choice: Choice | None = None,
        *,
        run_id: str = "",
        admitted: bool = False,
    ) -> str:
        """Check everything that can be checked, pin what the run needs, create its row and return its id. Nothing is
        performed yet. A request with a key that was made before returns its run of then. The money of an `admitted` run
        is part of that of another run."""
        if not options.key:
            new = await self.prepared(document, inputs, options, choice, run_id=run_id)
            await self.store.create(new, None if admitted else admission(self, new))
            return new.id
        from quire.runs.again import occurrence_of

        occurrence = occurrence_of(document, inputs, options)
        claim, is_new = await self.store.start_of(occurrence), False
        if claim is None:
            new = await self.prepared(document, inputs, options, choice, run_id=run_id)
            claim, is_new = await self.store.start_once(new, occurrence, admission(self, new))
        if claim.request != occurrence.request:
            raise KeyReused(f"the key {claim.key} was used for another request: it has started run {claim.run}")
        if not is_new:
            if await self.store.get(claim.run) is None:
                raise RunState(f"the key {claim.key} has started run {claim.run}, which was removed: use another key")
            # The row of a claim is not sealed: one that came with a store must not pass its run off as the user's.
            await self.store.check_seal(claim.run)
        return claim.run

    async def restore(self, run: NewRun, pins: PinnedState, history: History) -> None:
        """Create a run with a history, if the budgets admit what it may still cost."""
        run = replace(await with_subject(self.store, run), source=pins.source, reserved=most_cost(self, pins))
        await self.store.restore(run, history, admission(self, run))

    async def prepared(
        self,
        document: Document,
        inputs: Mapping[str, Value],
        options: RunOptions,
        choice: Choice | None = None,
        *,
        run_id: str = "",
    ) -> NewRun:
        """Do the same without creating the row: for runs that are created together with the claim of an occurrence."""
        pins, texts = await prepare(self, document, inputs, options, choice)
        now, title = self.clock.now(), document.runnable().title
        run = NewRun(
            run_id or new_run_id(now),
            title,
            document.format,
            document.name,
            now,
            pins.as_json(),
            texts,
            source=pins.source,
            reserved=most_cost(self, pins),
        )
        return await with_subject(self.store, run)

    drive = drive_run

    async def has_waited(
        self, run: str, tell: Callable[[str], None] = lambda words: None, is_stopped: Callable[[], bool] = lambda: False
    ) -> bool:
        """Wait until a run continues that waits by itself. Return False if it does not wait, if it is stopped, or if
        another process continues it: that of this store has a ticker, or takes the run meanwhile."""
        row = parked = await self.row(run)
        if row.parked and not self.store.process:
            tell(f"waiting {row.waits}")
        while row.wake_at is not None and row.epoch == parked.epoch and not self.store.process and not is_stopped():
            if (left := row.wake_at - self.clock.now()) <= 0:
                tell("")
                return True
            await self.clock.sleep(min(left, 1.0))
            row = await self.row(run)
        return False

    async def answer(
        self, run: str, label: str | None, value: str, *, by: str = PROGRAM, person: bool = True
    ) -> Question:
        """Store an answer to a question of a run, by its step or path if several ask. A yes or no needs a `person`."""
        questions = await self.store.questions(run)
        open_questions = [question for question in questions if label is None or question.is_named(label)]
        if not open_questions:
            row = await self.row(run)
            if row.status is Status.AWAITING_INPUT and not questions:
                raise RunState(f"run {run} has its answer already: `quire resume {run}` continues it")
            raise RunState(f"run {run} asks nothing{f' at step {label}' if label else ''} (it is {row.status.words})")
        if len(open_questions) > 1:
            ways = [question.way for question in open_questions]
            names = ways if len(set(ways)) == len(ways) else [question.path for question in open_questions]
            raise RunState(f"run {run} asks at several steps ({', '.join(names)}): say which")
        question = open_questions[0]
        if question.kind == "confirm" and not person:
            raise Refused(f"step {question.way} asks a person for a yes or no: a program does not answer it")
        try:
            answer = checked_answer(question.kind, question.options, value)
        except WrongAnswer as wrong:
            raise BadInputs([f"step {question.way}: {wrong}"]) from None
        await self.store.answer(run, question.path, question.hash, answer, one_name(by))
        return question

    async def view(self, run: str) -> RunView:
        """Return everything that is known about a run, from its journal alone."""
        row = await self.row(run)
        return await self.view_of(row, await self.store.effects(run), await self.store.questions(run))

    async def view_after(self, drive: Drive, run: str, ended: DriveResult) -> RunView:
        """Return the view of a run that this process has just driven. If it is complete, its records are at hand, and
        its progress if the drive followed it; the requests are not kept then."""
        if ended.status is not Status.COMPLETED:
            return await self.view(run)
        replayed = Replay(drive.progress, finished=True, result=ended.result) if drive.progress else None
        return await self.view_of(await self.row(run), drive.records, replayed=replayed)

    async def view_of(
        self,
        row: RunRow,
        effects: Sequence[EffectRecord],
        questions: Sequence[Question] = (),
        progress: Callable[[Plan], Progress] = Progress.of,
        replayed: Replay | None = None,
    ) -> RunView:
        """Return the view of a run with these records. `progress` makes the listener of the replay, which is left out
        if its outcome is known."""
        held = await self.stored(row)
        replayed = replayed or await self.replay_of(held, row, effects, progress)
        held = replace(held, pins=apply_amendments(held.pins, effects))
        thread = held.thread()
        if replayed.exhausted and row.status is Status.COMPLETED:
            raise LimitReached(replayed.exhausted)
        for question in questions:
            step = replayed.progress.step_of(question.path)
            if step:
                step.status = str(Status.AWAITING_INPUT)
        for record in effects:
            replayed.progress.add_effect(record)
        if row.status not in (Status.PENDING, Status.RUNNING, Status.COMPLETED):
            replayed.progress.settle(row.status)
        if thread is not None:
            replayed.progress.limits = thread.limits.as_value()
        if row.status in (Status.RUNNING, Status.INTERRUPTED) and replayed.open:
            # The row is written when an effect has ended; the effect under way comes after that.
            row = replace(row, position=replayed.open[0].label or row.position)
        documents = held.setting.documents
        rest = DriveResult(row.status, row.position, replayed.result, row.failure)
        parts = (held.pins, held.document, replayed, effects, thread, held.bundle, documents)
        return RunView(row, replayed.progress, rest, questions, *parts)

    def replay_of(
        self, held: PinnedRun, row: RunRow, effects: Sequence[EffectRecord], progress: Callable[[Plan], Progress]
    ) -> Coroutine[Any, Any, Replay]:
        """Return the replay of a run, to be awaited. It only computes, so a thread can do it as well."""
        held = replace(held, pins=apply_amendments(held.pins, effects))
        stands = row.ended_by if row.status is Status.PAUSED else ()
        breakpoints = frozenset(map(typed_way, held.pins.breakpoints))
        # A run that was never driven has done nothing, even if it could compute without an effect.
        untouched = row.status is Status.PENDING and not effects
        return replay(
            held.walk,
            effects,
            progress(held.plan),
            lambda boundary: boundary.path in stands or boundary.stops_at(breakpoints),
            pure_work=0 if untouched else self.settings.runs.pure_work,
        )

    async def stored(self, row: RunRow) -> PinnedRun:
        """Read a run from the store. The last one is kept, because a run is looked at after it was driven."""
        key = (row.id, row.format, row.document, row.pins)
        if self._last is None or self._last[0] != key:
            self._last = key, await self.pinned(row, self.store.text)
        return self._last[1]

    async def pinned(self, row: RunRow, text: Texts) -> PinnedRun:
        """Read a run from the pins of its row; `text` returns its texts by their hashes."""
        depth = self.settings.spawn.max_pipeline_fan_out_depth
        return await read_pinned(text, row, repairs=self.repairs, fan_out_depth=depth)

    def check_model(self, spec: str) -> None:
        """Raise `CannotStart` for a model that is not available, as far as that is known before the first call."""
        self.models.open(spec)

    def agents(self) -> Mapping[str, AgentSettings]:
        """Return the identities that agents can have here."""
        return {"default": AgentSettings(), **self.settings.agents}

    def registry(self) -> Pipelines:
        """Return the registered pipelines of the workspace, as its files are now."""
        return self.library.registry()

    def library_of(self, *, shelf: bool) -> Library:
        """Return the library in which a document of the workspace, or of the user's document list, looks up names."""
        return self.library.shelf if shelf else self.library

    def callees(self, *, one_model: bool = True, allow: Sequence[str] | None = None, shelf: bool = False) -> Callees:
        """Return the documents that others of the workspace, or of the user's document list, can call, by name.

        `allow` are the additional grants of a run; None for callers that only look.
        """

        def directive(name: str) -> Bundle | None:
            granted = None if allow is None else default_grants(self.settings, allow)
            return self.directives.gathering(one_model=one_model, granted=granted).called(name)

        return Callees(self.library_of(shelf=shelf), directive)

    def loader(self, run: str, pins: PinnedState, gate: Tools) -> ItemLoader:
        """Return the loader of the texts whose names a run learns only while it runs."""
        return ItemLoader(
            self.store,
            run,
            PromptLoader(
                self.library_of(shelf=pins.shelf).settings, Path(pins.folder) if pins.folder else None, gate.prompt
            ),
            lambda: self.directives.gathering(
                one_model=pins.one_model, granted=default_grants(self.settings, pins.allow)
            ),
            lambda: self.callees(one_model=pins.one_model, allow=pins.allow, shelf=pins.shelf),
            pins.files,
        )

    @cached_property
    def directives(self) -> Directives:
        from quire.library.directives import Directives

        return Directives(self.library, self.environ)

    def gate(self, plans: Sequence[Plan], grants: Grants, run: str = "") -> Tools:
        """Return the tools that a run with these plans can call under its grants. A `Gate` has to be entered first."""
        if self._tools is not None:
            return self._tools
        agents = any(profile.tools for profile in self.agents().values()) or any(map(has_step_tools, plans))
        quiet = not tool_calls(plans) and "mcp" not in prompt_schemes(plans[0]) and not agents
        if quiet and not has_threads(plans):
            return Gate(Connections({}), Grants.of(()), Redactor({}))
        open_here = partial(
            open_gate, self.settings, grants, self.environ, run=run, notice=self.notice, clock=self.clock.now
        )
        return open_here(others=self._launching(run, grants)) if has_threads(plans) else open_here()

    def _reaches_out(self, plans: Sequence[Plan]) -> bool:
        """Tell whether other than built-in tools may be called (also true if no tool is called). The code for other
        tools takes long to load."""
        from quire.workspace.consent import require_trusted

        calls = tool_calls(plans)
        if not calls or has_threads(plans) or has_agents(plans) or "mcp" in prompt_schemes(plans[0]):
            return True
        require_trusted(self.settings)  # as opening the gate does
        return any(place != BUILT_IN if place else canonical(tool) not in NAMES for place, tool in calls)

    def _launching(self, run: str, grants: Grants) -> Callable[[Grants], Mapping[str, Connection]]:
        """Return the launch tools of a run's threads."""
        from quire.runs.connections import LaunchConnection
        from quire.runs.launch import KnownTools, Launching

        tools = KnownTools(self.settings, grants, self.environ)
        launching = Launching(self, tools, shell=tools.shell, hint=tools.hint)
        return lambda held: {LAUNCHES: LaunchConnection(self, run, held, launching, tools)}

    async def preflight(self, start: Start) -> tuple[str, ...]:
        """Return warnings about problems that may occur. Raises `BadInputs`, `Denied` and `LimitReached` for problems
        that are certain. Every run is started through `prepare`, which calls this."""
        from quire.runs.preflight import built_in_gate, look_ahead

        plans = (start.plan, *start.documents.values())
        library = self.library_of(shelf=start.shelf)
        if self.queue:
            findings = await look_ahead(library, start, built_in_gate(self.settings, start.grants), None)
        else:
            gate = self.gate(plans, start.grants) if self._tools or self._reaches_out(plans) else None
            gate = gate or built_in_gate(self.settings, start.grants, self.environ)
            async with contextlib.AsyncExitStack() as stack:
                if isinstance(gate, Gate):
                    await stack.enter_async_context(gate)
                find = self.callees(shelf=start.shelf).find if start.bundles else None
                findings = await look_ahead(library, start, gate, self.models, find)
                if isinstance(gate, Gate) and not findings.wrong and not findings.denied:
                    gate.keep_servers()
        findings.raise_if_any()
        for notice in findings.notices:
            self.notice(f"warning: {notice}")
        return tuple(findings.warnings)

    async def warnings(self, run: str) -> tuple[str, ...]:
        """Return the warnings of the check before the start of a run."""
        return PinnedState.of((await self.row(run)).pins).warnings
