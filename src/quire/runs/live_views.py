"""Views of runs for a process that lives long: kept until the run changes, and made once for all that ask.

A view comes from a replay of the whole journal, which takes a quarter of a second for 10,000 effects. So `of` keeps the
last views, makes a new one only after the run has changed, and replays a long journal in a thread. `head` needs no
replay at all for a run that this process drives: its events keep a progress up to date.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from quire.engine.driver.drive import DriveResult
from quire.engine.driver.replay import Replay
from quire.errors import QuireError
from quire.runs.drives import apply_amendments
from quire.runs.fan_items import Recorded, add_values, explain
from quire.runs.outcome import RunView
from quire.runs.run_tree import RunTree
from quire.runs.stored import run_without_loop
from quire.runs.why import ProvenanceProgress

if TYPE_CHECKING:
    from quire.engine.driver.drive import Drive
    from quire.engine.ports import Store
    from quire.engine.progress import Progress
    from quire.engine.records import Event, Question, RunRow
    from quire.plan.nodes import Plan
    from quire.runs.pins import PinnedRun
    from quire.runs.runtime import Runtime

MOST_RUNS = 64
MOST_EFFECTS = 200_000
"""The views that are kept, and the effects in all of them together. The last one is kept, however large it is."""

MOST_TREES = 8
IN_THREAD = 500
"""Effects from which on a journal is replayed in a thread: fewer take less time than an event loop may be held up."""


class Version(Struct, frozen=True):
    """The state of a run that a view shows. `seq` is the number of its last event in the store."""

    epoch: int
    seq: int
    updated_at: float
    status: str
    told: int = 0
    """The number of the last event that the view shows, if that is not written yet."""

    @property
    def tag(self) -> str:
        """Return a text that differs for every state of the run."""
        return f"{self.epoch}.{self.seq}.{self.told}.{self.status}.{self.updated_at!r}"


class SeenView(Struct, frozen=True):
    """A view, and the state of the run that it shows."""

    view: RunView
    version: Version


class SeenTree(Struct):
    """The tree of a run, and the state of the run that it shows."""

    tree: RunTree
    row: RunRow
    tag: str
    partial: bool
    """True while a replay may still add to it."""
    driven: bool = False


class Following:
    """A run that this process drives: its progress is the sum of the events of the drive.

    `began` and `listen` are for `Runtime.drive`, `written` for the drive.
    """

    def __init__(self, held: PinnedRun) -> None:
        self.held = held
        self.progress: Progress = ProvenanceProgress.of(held.plan)
        self.tree = RunTree(held.plan, held.setting.documents)
        self.drive: Drive | None = None
        self.seq = 0
        self.told = 0

    def began(self, drive: Drive) -> None:
        for record in drive.records:
            self.progress.add_effect(record)
            self.tree.add(record)
        self.drive = drive

    def listen(self, event: Event) -> None:
        self.progress.apply(event)
        self.tree.apply(event)
        self.told = max(self.told, event.seq)

    def written(self, events: Sequence[Event]) -> None:
        self.seq = max((event.seq for event in events), default=self.seq)


class LiveViews:
    """The views of the runs in one store. All calls belong to one event loop."""

    def __init__(self, runtime: Runtime, *, runs: int = MOST_RUNS, effects: int = MOST_EFFECTS) -> None:
        self._runtime = runtime
        self._most_runs = runs
        self._most_effects = effects
        self._kept: OrderedDict[str, SeenView] = OrderedDict()
        self._making: dict[tuple[str, Version], asyncio.Task[RunView]] = {}
        self._driven: dict[str, Following] = {}
        self._trees: OrderedDict[str, SeenTree] = OrderedDict()
        self._explaining: set[asyncio.Task[None]] = set()
        self.replays = 0
        """The number of replays so far."""

    async def of(self, run: str) -> SeenView:
        """Return the view of a run as it is now. Raises `NoSuchRun`, and the errors of a replay."""
        row = await self._runtime.row(run)
        view = self._kept.get(run)
        seq = await last_event(self._runtime.store, run)
        version = Version(row.epoch, seq, row.updated_at, str(row.status))
        if view is not None and view.version == version:
            self._kept.move_to_end(run)
            return await self._with_questions(view, row)
        key = (run, version)
        task = self._making.get(key)
        if task is None:
            task = self._making[key] = asyncio.create_task(self._replayed(row))
            task.add_done_callback(lambda done: self._made(key, done))
        # A caller that goes away must not stop the replay for the others.
        return SeenView(await asyncio.shield(task), version)

    async def head(self, run: str) -> SeenView:
        """Return a view for the head of a run. Of a run that this process drives, it has neither requests nor the
        origins of values, and changes while the run continues: read it at once."""
        driven = self._driven.get(run)
        if driven is None or driven.drive is None:
            return await self.of(run)
        row = await self._runtime.row(run)
        view = _live_view(driven, driven.drive, row, await self._runtime.store.questions(run))
        return SeenView(view, Version(row.epoch, driven.seq, row.updated_at, str(row.status), driven.told))

    async def tree(self, run: str, *, whole: bool = False) -> SeenTree:
        """Return the tree of a run as it is now. That of a long run is partial until its replay has ended, which
        `whole` waits for."""
        row = await self._runtime.row(run)
        driven = self._driven.get(run)
        if driven is not None and driven.drive is not None:
            add_values(driven.tree, _live_view(driven, driven.drive, row, ()))
            tag = f"{row.epoch}.{driven.told}.{row.status}.{len(driven.tree.opened)}"
            return SeenTree(driven.tree, row, tag, partial=False, driven=True)
        seq = await last_event(self._runtime.store, run)
        version = Version(row.epoch, seq, row.updated_at, str(row.status))
        tree = self._trees.get(run)
        if tree is None or tree.tag != version.tag:
            tree = self._trees[run] = SeenTree(await self._built(row), row, version.tag, partial=True)
        self._trees.move_to_end(run)
        if len(self._trees) > MOST_TREES:
            self._trees.popitem(last=False)
        if tree.partial:
            explaining = asyncio.create_task(self._explain(tree))
            self._explaining.add(explaining)
            explaining.add_done_callback(self._explaining.discard)
            if whole or len(tree.tree.leaves) < IN_THREAD:
                await explaining
        return tree

    async def _built(self, row: RunRow) -> RunTree:
        """Return the tree of the events and the effects in the store."""
        store = self._runtime.store
        held = await self._runtime.stored(row)
        tree = RunTree(held.plan, held.setting.documents)
        for event in await store.events(row.id, 0):
            tree.apply(event, effects=False)
        for brief in await store.journal().effects(row.id):
            tree.add(brief.record)
        for question in await store.questions(row.id):
            tree.begin(question.path, question.asked_at)
        if row.failure and row.failed_at and not row.failed_at.endswith("*"):
            tree.fail(row.failed_at, row.failure.message)
        return tree

    async def _explain(self, tree: SeenTree) -> None:
        # The journal can be shown even if it cannot be replayed.
        with contextlib.suppress(QuireError):
            view = await self.of(tree.row.id)
            if view.version.tag == tree.tag:
                explain(tree.tree, view.view)
        tree.partial = False

    @contextlib.asynccontextmanager
    async def driving(self, run: str) -> AsyncIterator[Following]:
        """Follow a run while this process drives it."""
        held = await self._runtime.stored(await self._runtime.row(run))
        following = self._driven[run] = Following(held)
        for event in await self._runtime.store.events(run, 0):
            following.tree.apply(event, effects=False)
            following.seq = max(following.seq, event.seq)
        try:
            yield following
        finally:
            if self._driven.get(run) is following:
                del self._driven[run]

    def forget(self, run: str) -> None:
        """Drop the view of a run that was removed."""
        self._kept.pop(run, None)
        self._trees.pop(run, None)

    async def _with_questions(self, kept: SeenView, row: RunRow) -> SeenView:
        """Return a kept view with the questions that are open and the names that the run has now: neither an answer
        that waits nor a new name is an event."""
        questions = await self._runtime.store.questions(row.id)
        if row == kept.view.row and list(questions) == list(kept.view.questions):
            return kept
        return SeenView(replace(kept.view, row=row, questions=questions), kept.version)

    async def _replayed(self, row: RunRow) -> RunView:
        runtime = self._runtime
        effects = await runtime.store.effects(row.id)
        questions = await runtime.store.questions(row.id)
        held = await runtime.stored(row)
        self.replays += 1

        def recorded(plan: Plan) -> Recorded:
            return Recorded.of(plan).knowing(effects)

        if len(effects) < IN_THREAD:
            return await runtime.view_of(row, effects, questions, recorded)
        with _uncollected():
            replayed = await asyncio.to_thread(run_without_loop, runtime.replay_of(held, row, effects, recorded))
            return await runtime.view_of(row, effects, questions, replayed=replayed)

    def _made(self, key: tuple[str, Version], done: asyncio.Task[RunView]) -> None:
        self._making.pop(key, None)
        if done.cancelled() or done.exception() is not None:
            return
        run, version = key
        self._kept[run] = SeenView(done.result(), version)
        self._kept.move_to_end(run)
        total = sum(len(view.view.effects) for view in self._kept.values())
        while len(self._kept) > 1 and (len(self._kept) > self._most_runs or total > self._most_effects):
            _, dropped = self._kept.popitem(last=False)
            total -= len(dropped.view.effects)


def _live_view(driven: Following, drive: Drive, row: RunRow, questions: Sequence[Question]) -> RunView:
    held, progress = driven.held, driven.progress
    effects = drive.records
    pins = apply_amendments(held.pins, effects)
    thread = held.thread()
    if thread is not None:
        progress.limits = thread.limits.as_value()
    rest = DriveResult(row.status, row.position, None, row.failure)
    parts = (pins, held.document, Replay(progress), effects, thread, held.bundle, held.setting.documents)
    return RunView(row, progress, rest, questions, *parts)


_uncollecting = 0


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Keep Python's collector of cycles from running. A replay makes very many objects that stay, and looking through
    all of them again and again takes longer than the replay itself."""
    global _uncollecting
    was_on = gc.isenabled() or _uncollecting > 0
    _uncollecting += 1
    gc.disable()
    try:
        yield
    finally:
        _uncollecting -= 1
        if was_on and not _uncollecting:
            gc.enable()


async def last_event(store: Store, run: str) -> int:
    """Return the number of the last kept event of a run; 0 without one."""
    events = await store.journal().event_page(run, limit=1)
    return max((event.seq for event in events), default=0)
