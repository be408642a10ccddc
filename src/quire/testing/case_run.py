"""Run one case: start its document in the case's own world, drive it, and do what its acts say.

The loader, the interpreter, the driver and the gate are those of every run. The model, the people, the clock, the
store and the tools that reach outside come from `quire.testing.world`.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, assert_never

from msgspec import Struct
from msgspec.structs import replace

from quire.engine.interpreter.callees import opener
from quire.engine.progress import Progress
from quire.engine.records import NewRun, Question, Status
from quire.errors import CannotStart, QuireError
from quire.formats.test.syntax import Act, ActKind, Case
from quire.runs.drives import Given
from quire.runs.options import RunOptions
from quire.runs.pins import PinnedRun, PinnedState
from quire.runs.runtime import Runtime
from quire.stores.sqlite.in_memory import Memory
from quire.testing.observation import error_value, not_started, observe
from quire.testing.virtual_loop import VirtualClock
from quire.testing.world.model import CaseModel, Meter, Replies
from quire.testing.world.scripts import Answers, CasePeople, ToolScripts
from quire.testing.world.tools import CaseTools
from quire.testing.world.workspace import CaseFolder, CaseProcess, Died, MortalStore
from quire.workspace.grants import default_grants, reaching

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quire.engine.driver.drive import Drive, DriveResult
    from quire.engine.interpreter.callees import Environment
    from quire.engine.interpreter.thread.compose import Bundle
    from quire.engine.interpreter.thread.setup import Setup
    from quire.engine.ports import People, Tools
    from quire.engine.records import Event, RunRow
    from quire.formats.test.expected import Expect
    from quire.library.document import Document
    from quire.plan.nodes import Plan
    from quire.plan.thread import Thread
    from quire.runs.pins import Texts
    from quire.testing.cassettes.cassette import Cassettes
    from quire.testing.coverage.report import CoverageMeter
    from quire.testing.observation import Observation
    from quire.testing.virtual_loop import VirtualLoop
    from quire.tools.registry import Connection
    from quire.trust.capabilities import Grants
    from quire.values import Value
    from quire.workspace.settings import Settings

START = 1_767_225_600.0
"""The moment at which cases begin: the first of January 2026, in UTC."""

MOST_ANSWERS = 1_000
"""Answers that come later which one case may wait for."""
_GOES_ON = (Status.PENDING, Status.INTERRUPTED, Status.AWAITING_INPUT)
"""How a run that a crash has stopped may be found. One that waits may have an answer that was not yet looked at."""


class Bench(Struct, frozen=True):
    """The things that all cases of a file share."""

    document: Document
    settings: Settings
    folder: Path
    """The folder of the test file."""
    loop: VirtualLoop
    shell: bool = False
    """True if commands may run for real: the user said `--allow shell`."""
    cassettes: Cassettes | None = None
    """The recorded replies of the file; None where they are not played."""
    coverage: CoverageMeter | None = None
    """Measures the runs of all cases; None if coverage is not asked for."""


class Stage(Struct, frozen=True):
    """The state of a case after its run, or after one of its acts."""

    act: Act | None
    observation: Observation
    refusal: str = ""
    """Why the act could not be done; then the error of the observation says it, too."""

    def expect(self, case: Case) -> Expect | None:
        """Return the expectations about this state; None if there are none."""
        return case.expect if self.act is None else self.act.expect


class ChangedRun(PinnedRun, frozen=True):
    """A run of a plan that may differ from its text. Its directive has the permissions of that plan and no others.

    Only the ancestors and the knowledge of a directive come from the texts of its bundle.
    """

    def _thread(self, setting: Environment) -> Setup:
        from quire.engine.interpreter.thread.setup import ParentContext, set_up
        from quire.plan.thread import THREAD_PATH

        bundle, thread = setting.bundles[""], self.plan.thread
        if thread is None:
            raise CannotStart("the directive has no thread")
        above = ParentContext(None, open_document=opener(setting))
        overrides, resolver = self.pins.limits, _PlanResolver(bundle, thread)
        return set_up(bundle, self.pins.inputs, THREAD_PATH, overrides=overrides, above=above, resolver=resolver)


class _PlanResolver:
    """Resolve the items of a directive: itself from its plan, all others from the texts of its bundle."""

    def __init__(self, bundle: Bundle, thread: Thread) -> None:
        from quire.engine.interpreter.thread.compose import BundleResolver

        self._item_id = bundle.item_id
        self._thread = thread
        self._others = BundleResolver(bundle)

    def directive(self, item_id: str) -> Thread | None:
        return self._thread if item_id == self._item_id else self._others.directive(item_id)

    def knowledge(self, item_id: str) -> str | None:
        return self._others.knowledge(item_id)


class PreparedStart(Struct, frozen=True):
    """The start of a case's run, made once. A run that begins with it is not checked again, and may have another plan
    (`with_plan`)."""

    new: NewRun
    run: PinnedRun

    def for_changed_plans(self, settings: Settings) -> PreparedStart:
        """Return the start for runs of changed plans: nothing is proven of them, and each request of a directive has
        the grants of its thread, which the gate narrows to what is granted here."""
        pins = replace(self.run.pins, proven={})
        if self.run.plan.thread:
            pins = replace(pins, grants=("*", *sorted(reaching(default_grants(settings, pins.allow)))))
        run = ChangedRun(pins, self.run.document, self.run.setting)
        return PreparedStart(replace(self.new, pins=pins.as_json()), run)

    def with_plan(self, plan: Plan) -> PreparedStart:
        """Return the start with another plan, whose steps get the models that the settings choose for them."""
        if steps := self.run.pins.steps.get(""):
            from quire.library.step_models import read_step_models, with_step_models

            plan = with_step_models(plan, read_step_models(steps))
        return replace(self, run=self.run.with_plan(plan))


class CaseRuntime(Runtime):
    """A runtime whose gate answers from the scripts of a case."""

    _run: PinnedRun | None = None
    """Taken in place of the stored texts; None to read these."""

    def __init__(
        self, settings: Settings, world: CaseWorld, process: CaseProcess, run: PinnedRun | None = None
    ) -> None:
        store = MortalStore(world.memory, world.now, process)
        super().__init__(settings, store, environ={}, model=world.model, clock=world)
        self._world = world
        self._run = run

    async def pinned(self, row: RunRow, text: Texts) -> PinnedRun:
        if self._run is None:
            return await super().pinned(row, text)
        return replace(self._run, pins=PinnedState.of(row.pins))

    def gate(self, plans: Sequence[Plan], grants: Grants, run: str = "") -> Tools:
        others: Callable[[Grants], Mapping[str, Connection]] = lambda held: {}  # noqa: E731
        if run and any(plan.thread for plan in plans):
            others = self._launching(run, grants)
        return self._world.tools.gate(self.settings, plans, grants, self.clock.now, others)

    def _reaches_out(self, plans: Sequence[Plan]) -> bool:
        return True


R = TypeVar("R", bound=CaseRuntime)
T = TypeVar("T")


class CaseWorld(VirtualClock):
    """The world that the processes of one case share. It is their clock, too."""

    def __init__(self, bench: Bench, case: Case) -> None:
        super().__init__(bench.loop)
        setting = case.setting
        self.threads: dict[str, str] = {}
        self.meter = Meter()
        self.memory = Memory()
        self.folder = CaseFolder(setting.files, bench.folder)
        self.model = self._model(bench, case)
        self.people = CasePeople(Answers(setting.answers))
        self.tools = CaseTools(ToolScripts(setting.tools), self.folder, self.meter, shell=bench.shell)
        self.events: list[Event] = []

    def _model(self, bench: Bench, case: Case) -> CaseModel:
        replies, which = Replies(case.setting.model, self.threads), case.setting.cassette
        if not which or bench.cassettes is None:
            return CaseModel(replies, self.meter)
        return bench.cassettes.player(which, case.name, replies, self.meter)

    def advance(self, seconds: float) -> None:
        self._loop.advance(seconds)

    def hear(self, event: Event) -> None:
        if event.replayed or event.type == "delta":
            return
        if event.type == "thread_started":
            self.threads[event.path] = str(event.data.get("thread", ""))
        self.events.append(event)

    def enter(self, process: CaseProcess) -> None:
        """Let the scripts know the process that they act in."""
        self.model.process = self.tools.process = process


class _Driven(Struct, frozen=True):
    """The last drive of a run, which has seen what a replay of the journal would see."""

    runtime: CaseRuntime
    drive: Drive
    ended: DriveResult


class CaseRun:
    """One case, or one row of it, that is being run.

    `dies_at` is the moment at which its first process dies; then a second one continues. 0 for never. With a `start`,
    the run begins there.
    """

    def __init__(self, bench: Bench, case: Case, dies_at: int = 0, start: PreparedStart | None = None) -> None:
        self.case = case
        self._prepared = start
        self.world = CaseWorld(bench, case)
        self.process = CaseProcess(dies_at)
        self._bench = bench
        self._run = ""
        self._driven: _Driven | None = None
        self._settings = bench.settings
        self._is_changed = False
        """True if the case has settings or documents of its own, so that the proof of another case does not hold."""
        self._document = bench.document

    @property
    def people(self) -> People:
        """The people that the run asks."""
        return self.world.people

    def play(self) -> list[Stage]:
        """Run the case to its end on the loop of the bench, and return its stages."""
        return self._on_loop(self._play())

    def prepare(self) -> PreparedStart | None:
        """Start the run without driving it; None if the document does not start so. Raises `QuireError`."""
        return self._on_loop(self._prepare_start())

    def _on_loop(self, main: Coroutine[Any, Any, T]) -> T:
        self._bench.loop.set_time(moment(self.case.setting.clock))
        try:
            return self._bench.loop.run(main)
        finally:
            self.world.folder.remove()
            self.world.memory.close()

    async def _prepare_start(self) -> PreparedStart | None:
        from quire.runs.fork import pinned_texts

        self._prepare()
        runtime = self._runtime()
        try:
            row = await runtime.row(await self._begin(runtime))
        except QuireError:
            return None
        run = await runtime.stored(row)
        texts = {digest: await runtime.store.text(digest) for digest in pinned_texts(run.pins)}
        new = NewRun(row.id, row.title, row.format, row.document, row.created_at, row.pins, texts)
        return PreparedStart(new, run)

    async def _play(self) -> list[Stage]:
        self._prepare()
        stages = [Stage(None, await self._start())]
        for act in self.case.then:
            if not self._run:
                break
            if act.model is not None:
                self.world.model.replies.add(act.model)
            self.world.tools.scripts.add(act.tools)
            stages.append(await self._after(act))
        return stages

    async def _after(self, act: Act) -> Stage:
        """Do an act, and look at the run. An act that is refused, such as an answer that does not fit, is seen, too."""
        try:
            await self._do(act)
        except QuireError as error:
            observation = replace(await self._look(), error=error_value(error), exit=error.exit_code)
            return Stage(act, observation, str(error))
        return Stage(act, await self._look())

    def _prepare(self) -> None:
        setting, folder = self.case.setting, self.world.folder
        folder.require_sources(setting.files)
        if setting.config:
            from quire.workspace.configuration import with_tables

            name = f"the config of the case {self.case.name!r}"
            self._settings = with_tables(self._settings, setting.config, name)
            self._is_changed = True
        if any(act.kind is ActKind.EDIT for act in self.case.then):
            self._move_into(folder)
        self._settings = replace(self._settings, user=folder.user)

    def _move_into(self, folder: CaseFolder) -> None:
        """Let the case have a copy of the workspace, because it edits documents."""
        from quire.library.document import load

        self._is_changed = True
        home = self._settings.workspace.folder
        workspace = folder.copy_workspace(home)
        self._settings = replace(self._settings, workspace=workspace)
        inner = Path(self._document.name).resolve().relative_to(home.resolve())
        self._document = replace(load(workspace.folder / inner), declared=self._document.declared)

    async def _start(self) -> Observation:
        runtime = self._runtime()
        try:
            self._run = await self._begin(runtime)
        except QuireError as error:
            return not_started(error, self.case.setting.inputs)
        await self._drive(runtime)
        return await self._look()

    async def _begin(self, runtime: CaseRuntime) -> str:
        """Create the run and return its id."""
        if self._prepared is not None:
            new = self._prepared.new
            if self._document is not self._bench.document:  # it is in a workspace of its own
                folder = {"folder": self._document.folder}
                new = replace(new, document=self._document.name, pins={**new.pins, **folder})
            await runtime.store.create(new)
            return new.id
        setting = self.case.setting
        # The command prints what would stop a run; a case says what people answer.
        options = RunOptions(force=True, unattended=bool(setting.unattended), says_yes=True, limits=setting.limits)
        self._require_limits_fit(setting.limits)
        if setting.allow:
            from quire.runs.allowed_names import require_known

            # Tools of servers that only the document or a script names are included.
            plain = [grant for grant in setting.allow if "/" not in grant and "__" not in grant]
            require_known(plain, self._settings, "allow")
        return await runtime.start(self._document, setting.inputs, replace(options, allow=setting.allow or ()))

    def _require_limits_fit(self, limits: Mapping[str, Value]) -> None:
        if limits and not self._document.runnable().thread:
            raise CannotStart(f"limits are for directives, and this is a {self._document.format}")

    def _runtime(self) -> CaseRuntime:
        return self._runtime_of(CaseRuntime)

    def _runtime_of(self, kind: type[R]) -> R:
        self.world.enter(self.process)
        run = None if self._prepared is None else self._prepared.run
        runtime = kind(self._settings, self.world, self.process, run)
        if not self._is_changed:
            runtime.proven_with = self._bench.settings
        return runtime

    async def _drive(
        self, runtime: CaseRuntime, overrides: Mapping[str, Value] | None = None, changes: Given | None = None
    ) -> None:
        """Drive the run until it rests or its process dies, and give the answers that come later."""
        plan = (await runtime.stored(await runtime.row(self._run))).plan
        process, begun = self.process, self.process.moments
        for _ in range(MOST_ANSWERS):
            drives: list[Drive] = []

            def began(drive: Drive, drives: list[Drive] = drives) -> None:
                drives.append(drive)
                drive.follow(Progress.of(plan))

            try:
                ended = await runtime.drive(
                    self._run,
                    people=self.people,
                    listen=self.world.hear,
                    overrides=overrides,
                    began=began,
                    attached=True,
                    given=changes or Given(),
                )
            except Died:
                await self._bury()
                if process.died_in_turn and await self._goes_on(process.moments - begun):
                    await self._drive(self._runtime(), overrides, changes)
                return
            self._driven = _Driven(runtime, drives[0], ended)
            overrides, changes = None, None
            if ended.status is not Status.AWAITING_INPUT or not await self._answer_later(runtime):
                return
        raise CannotStart(f"the case waits for more than {MOST_ANSWERS:,} answers")

    async def _goes_on(self, passed: int) -> bool:
        """Tell whether a run whose process died has to be driven again. `passed` are the moments of the last drive: the
        first is before its first write, so nothing has happened then, and an ended run was not yet resumed."""
        return passed <= 1 or (await self._runtime().row(self._run)).status in _GOES_ON

    async def _bury(self) -> None:
        """End a process that has died: its lock is free, and what it had not recorded has not happened."""
        self._driven = None
        self.world.memory.lose_owners()
        self.process = CaseProcess()
        store = MortalStore(self.world.memory, self.world.now, self.process)
        recorded = {record.path for record in await store.effects(self._run) if record.state != "intent"}
        self.world.model.replies.forget(recorded)
        self.world.tools.forget(recorded)

    async def _answer_later(self, runtime: CaseRuntime) -> bool:
        """Give the first of the answers that come later; return False if there is none."""
        people, waits = self.world.people, list[tuple[float, Question, str, str]]()
        for question in await runtime.store.questions(self._run):
            people.see(question)
            answer = people.answers.take(question.path, question.way, question.label)
            if answer is not None and answer.after is not None:
                waits.append((question.asked_at + answer.after, question, answer.value, answer.by))
        if not waits:
            return False
        at, question, value, by = min(waits, key=lambda wait: wait[0])
        self.world.advance(max(0.0, at - self.world.now()))
        if (await runtime.row(self._run)).status is not Status.AWAITING_INPUT:
            return False  # it has expired
        await runtime.answer(self._run, question.path, value, by=by or "test")
        return True

    async def _do(self, act: Act) -> None:
        self._driven = None
        runtime = self._runtime()
        match act.kind:
            case ActKind.ANSWER:
                self.world.people.answers.add(act.answers)
                await self._answer(runtime, act)
            case ActKind.RESUME:
                overrides, changes = _resumption(act.options)
                self._require_limits_fit(changes.limits)
                await self._drive(runtime, overrides, changes)
            case ActKind.FORK:
                await self._fork(runtime, act)
            case ActKind.CANCEL:
                await runtime.store.request_cancel(self._run)
            case ActKind.ADVANCE:
                self.world.advance(act.seconds)
            case ActKind.EDIT:
                self.world.folder.write(act.edits)
            case _:
                assert_never(act.kind)

    async def _answer(self, runtime: CaseRuntime, act: Act) -> None:
        """Answer open questions through the inbox, and let the run continue."""
        for name, answers in act.answers.items():
            answer = self.world.people.answers.take(name, name, name) or answers[0]
            if answer.after is not None:
                self.world.advance(answer.after)
            await runtime.answer(self._run, name, answer.value, by=answer.by or "test")
        await self._drive(runtime)

    async def _fork(self, runtime: CaseRuntime, act: Act) -> None:
        from quire.runs.fork import Changes, fork

        options = dict(act.options)
        sets = options.get("set")
        changes = Changes(sets if isinstance(sets, Mapping) else {}, force=True)
        self._run = (await fork(runtime, self._run, str(options["from"]), changes)).run
        await self._drive(runtime)

    async def _look(self) -> Observation:
        if (driven := self._driven) is not None:
            runtime = driven.runtime
            view = await runtime.view_after(driven.drive, self._run, driven.ended)
        else:
            runtime = self._runtime()
            view = await runtime.view(self._run)
        if self._bench.coverage is not None:
            await self._bench.coverage.see(await runtime.stored(view.row), view.row, view.effects)
        for question in view.questions:
            self.world.people.see(question)
        return observe(view, self.world, self.case.setting.inputs)


def _resumption(options: Mapping[str, Value]) -> tuple[Mapping[str, Value], Given]:
    """Return the values to set and the changes of a `resume`."""
    sets, limits, budget = options.get("set"), options.get("limit"), options.get("budget")
    changes = Given(
        limits=limits if isinstance(limits, Mapping) else {},
        budget=float(budget) if isinstance(budget, int | float) else None,
        unattended=options.get("unattended") is True,
    )
    return (sets if isinstance(sets, Mapping) else {}), changes


def moment(text: str) -> float:
    """Return the moment at which a case begins. The reader has checked it."""
    if not text:
        return START
    from datetime import UTC, datetime

    at = datetime.fromisoformat(text)
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
