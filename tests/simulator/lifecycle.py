"""What happens to one run from its start to its end: processes drive it, one after the other or against each other,
people answer whenever they like, and faults strike when they are due."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from tests.simulator.databases import Shelf
from tests.simulator.fakes import World
from tests.simulator.faults import Fault
from tests.simulator.loop import ServerLoop, VirtualClock
from tests.simulator.observer import Witness
from tests.simulator.ports import Present, SeenLoader, SimulatedModel, SimulatedTools
from tests.simulator.process import Died, MortalStore, Pace, Process
from tests.simulator.scenario import Scenario

from quire.engine.driver.drive import Drive
from quire.engine.ports import Store
from quire.engine.records import EffectRecord, Event, Question, RunRow, Status
from quire.errors import Fenced, QuireError, RunBusy, RunState, StoreError
from quire.library.document import load
from quire.runs.options import RunOptions
from quire.runs.runtime import Runtime
from quire.values import Value

MOST_DRIVES = 150


@dataclass(slots=True)
class Lived:
    """How it ended, and all that can be looked at afterwards."""

    row: RunRow
    value: Value
    records: Sequence[EffectRecord]
    events: Sequence[Event]
    witness: Witness
    processes: list[Process]
    trace: list[str]
    folder: Path


class _Runtime(Runtime):
    """One whose loads are seen."""

    seen: Pace
    process: Process
    witness: Witness

    def loader(self, *given: Any) -> Any:
        return SeenLoader(super().loader(*given), self.process, self.witness, self.seen)


@dataclass
class Life:
    """`attended` is true where somebody sits at every terminal; otherwise questions wait in the inbox."""

    scenario: Scenario
    folder: Path
    shelf: Shelf
    faults: tuple[Fault, ...]
    loop: ServerLoop
    witness: Witness
    pace: Pace
    attended: bool = False
    world: World = field(default_factory=World)
    processes: list[Process] = field(default_factory=list)
    trace: list[str] = field(default_factory=list)
    struck: set[Fault] = field(default_factory=set)
    run: str = ""

    async def live(self) -> Lived:
        self.settings = self.scenario.settle(self.folder)
        self.clock = VirtualClock(self.loop)
        self.reader = self._open()
        people = asyncio.create_task(self._people())
        try:
            await self._until_the_end()
        finally:
            people.cancel()
            await asyncio.gather(people, return_exceptions=True)
            await self.reader.close()
        if people.done() and not people.cancelled() and (error := people.exception()) is not None:
            self.witness.blame(f"a person met {error!r}")
        for lost in self.loop.lost:
            if not isinstance(lost, Died | asyncio.CancelledError):
                self.witness.blame(f"nobody heard of {lost!r}")
        return await self._look()

    async def _until_the_end(self) -> None:
        number = failed = 0
        last = max((fault.process for fault in self.faults), default=-1)
        while True:
            await self._generation(number)
            number += 1
            status = await self._status()
            if status is Status.COMPLETED:
                return
            failed += status is Status.FAILED and number > last
            if failed > self.scenario.resumes or self.witness.problems:
                return
            if number > MOST_DRIVES:
                self.witness.blame(f"the run is {status} after {number} drives")
                return
            # Most of the time somebody drives it because there is an answer; now and then for no reason.
            patient = status is Status.AWAITING_INPUT and self.pace.one_of([True, True, True, False])
            if patient:
                await self._somebody_answers()

    async def _somebody_answers(self) -> None:
        while not await self.reader.answers(self.run):  # the people are another process
            await asyncio.sleep(self.pace.person())

    async def _generation(self, number: int) -> None:
        """One process, and whoever meddles with it."""
        faults = [fault for fault in self.faults if fault.process == number]
        dies_at = next((fault.at for fault in faults if fault.kind == "crash"), 0)
        failing = next((fault.at for fault in faults if fault.kind == "write_fails"), 0)
        process = Process(number, dies_at, failing)
        begun: list[Drive] = []
        driving = asyncio.create_task(self._process(process, begun))
        others = [asyncio.create_task(self._meddle(fault, process, driving, begun)) for fault in faults]
        await asyncio.wait({driving})
        self._tell(process, driving)
        for fault, other in zip(faults, others, strict=True):
            if fault not in self.struck:
                other.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        for other in others:
            if not other.cancelled() and (error := other.exception()) is not None:
                self.witness.blame(f"whoever meddled met {error!r}")

    async def _process(self, process: Process, begun: list[Drive]) -> str:
        """Starts the run where there is none, and drives it until it rests."""
        self.processes.append(process)
        inner = self._open()
        try:
            store = MortalStore(inner, process, self.witness, self.pace)
            runtime = self._runtime(cast("Store", store), process)
            if not self.run:
                rows = await inner.list()
                self.run = rows[0].id if rows else ""
            if not self.run:
                document = load(self.settings.workspace.folder / self.scenario.document)
                self.run = await runtime.start(document, self.scenario.inputs, RunOptions(allow=("*",)))
            present = Present(process, self.witness, self.pace, self.scenario.cast) if self.attended else None
            ended = await runtime.drive(self.run, people=present, listen=process.hear, began=begun.append)
            return str(ended.status)
        finally:
            await inner.close()

    def _runtime(self, store: Store, process: Process) -> Runtime:
        model = SimulatedModel(process, self.witness, self.pace, self.world, self.scenario.cast)
        tools = SimulatedTools(process, self.witness, self.pace, self.world, self.scenario.cast)
        runtime = _Runtime(self.settings, store, environ={}, model=model, tools=tools, clock=self.clock)
        runtime.process, runtime.witness, runtime.seen = process, self.witness, self.pace
        return runtime

    def _tell(self, process: Process, driving: asyncio.Task[str]) -> None:
        """Notes how a process ended, and whether it may have ended so."""
        if driving.cancelled():
            self.trace.append(f"process {process.number} was interrupted")
            return
        error = driving.exception()
        how = driving.result() if error is None else f"{type(error).__name__} {error}"
        self.trace.append(f"process {process.number} ended: {how} {process.died_at}".rstrip())
        legal: tuple[type[BaseException], ...] = (Died, Fenced, RunBusy, RunState)
        if process.failing_write:
            legal += (StoreError,)
        if error is not None and not isinstance(error, legal):
            self.witness.blame(f"process {process.number} met {error!r}")
        if isinstance(error, RunState) and "cannot continue" not in str(error):
            self.witness.blame(f"process {process.number} met {error!r}")

    async def _meddle(self, fault: Fault, process: Process, driving: asyncio.Task[str], begun: list[Drive]) -> None:
        if fault.kind in ("crash", "write_fails"):
            return
        await asyncio.sleep(fault.at / 10)
        if driving.done() or not self.run:
            return
        self.struck.add(fault)
        match fault.kind:
            case "takeover" | "duplicate":
                await self._second(fault)
            case "cancel":
                await self._cancel(process)
            case "stop" if begun:
                begun[0].stop()
            case "interrupt":
                process.disturbed = True
                driving.cancel()

    async def _second(self, fault: Fault) -> None:
        """A second process drives the same run. Where it does not see the first one's lock, it takes the run over."""
        if fault.kind == "takeover":
            await self.shelf.lose_owner(self.run, self.clock.now)
            for process in self.processes:
                process.disturbed = True
        second = Process(1000 + len(self.processes))
        driving = asyncio.create_task(self._process(second, []))
        await asyncio.wait({driving})
        self._tell(second, driving)

    async def _cancel(self, process: Process) -> None:
        process.disturbed = True
        inner = self._open()
        store = MortalStore(inner, Process(-2), self.witness, self.pace)
        with contextlib.suppress(RunState):
            await store.request_cancel(self.run)
        await inner.close()

    async def _people(self) -> None:
        """Somebody elsewhere, who looks into the inbox now and then."""
        inner = self._open()
        store = MortalStore(inner, Process(-1), self.witness, self.pace)
        try:
            while True:
                await asyncio.sleep(self.pace.person())
                if not self.run:
                    continue
                for question in await store.questions(self.run):
                    if self.pace.one_of([True, True, False]):
                        with contextlib.suppress(RunState):  # it was taken back, or answered, a moment ago
                            await store.answer(self.run, question.path, question.hash, self._answer(question))
                        await asyncio.sleep(self.pace.one_of([0, 0, 1.0]))
        finally:
            await inner.close()

    def _answer(self, question: Question) -> str:
        """Whether a tool may be called again, nobody's script says."""
        return "yes" if question.path.endswith("/uncertain") else self.scenario.cast.answer(question)

    def _open(self) -> Store:
        return self.shelf.open(self.clock.now)

    async def _status(self) -> Status:
        row = await self.reader.get(self.run) if self.run else None
        return row.status if row else Status.PENDING

    async def _look(self) -> Lived:
        if not self.run:
            raise AssertionError(f"{self.scenario.name} never started: {self.witness.problems}")
        inner = self._open()
        try:
            runtime = self._runtime(inner, Process(-3))
            row = await runtime.row(self.run)
            value: Value = None
            try:
                view = await runtime.view(self.run)
                value = view.value
                if row.status is Status.COMPLETED and not view.replay.finished:
                    asked = ", ".join(request.path for request in view.replay.open)
                    self.witness.blame(f"the run is completed, and its journal ends before its end: at {asked}")
            except QuireError as error:
                self.witness.blame(f"the run cannot be looked at: {error}")
            records, events = await inner.effects(self.run), await inner.events(self.run)
            left = [one.path for one in await inner.questions(self.run)]
            if left and row.status in (Status.COMPLETED, Status.FAILED):
                self.witness.blame(f"questions are left behind: {left}")
            return Lived(row, value, records, events, self.witness, self.processes, self.trace, self.folder)
        finally:
            await inner.close()
