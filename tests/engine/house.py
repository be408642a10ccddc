"""Stand-ins for what is outside the engine, and a harness that drives a walk against a real SQLite file."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from quire.engine.conversation import Offered, ToolUse
from quire.engine.driver.drive import Drive, DriveResult
from quire.engine.driver.journal import Journal
from quire.engine.driver.replay import expanded
from quire.engine.driver.walker import DriveLimits
from quire.engine.ports import EffectClass, ModelCall, ModelReply, Ports, Store
from quire.engine.records import Batch, Event, NewRun, Question, RunUpdate, Status, Usage
from quire.engine.requests import Load, ToolRequest, Walk
from quire.errors import ModelFailed
from quire.values import Value


class Clock:
    def __init__(self) -> None:
        self.time = 1_000_000.0

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.time += seconds
        await asyncio.sleep(0)


class EchoModel:
    """Answers `reply to TEXT`, or what `replies` has for the text; an exception there is raised."""

    name = "echo"

    def __init__(self) -> None:
        self.calls: list[ModelCall] = []
        self.replies: dict[str, str | Exception] = {}
        self.reply_default = ""
        self.uses: dict[str, list[tuple[str, dict[str, Value]]]] = {}
        self.gate: asyncio.Event | None = None
        self.cost: float | None = 0.0

    async def complete(self, call: ModelCall, on_delta: Callable[[str], None]) -> ModelReply:
        self.calls.append(call)
        if self.gate:
            await self.gate.wait()
        asked = call.messages[-1].content
        uses = tuple(
            ToolUse(f"use-{number}", name, arguments)
            for number, (name, arguments) in enumerate(self.uses.get(asked, []))
        )
        if uses:
            return ModelReply("", self.name, Usage(10, 5, self.cost), uses=uses)
        reply = self.replies.get(asked, self.reply_default or f"reply to {asked}")
        if isinstance(reply, Exception):
            raise reply
        on_delta(reply)
        return ModelReply(reply, self.name, Usage(10, 5, self.cost))

    def asked(self) -> list[str]:
        return [call.messages[-1].content for call in self.calls]


class RecordingTools:
    """Every call is kept; `act` says what a call does."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Mapping[str, Value], str]] = []
        self.kind: EffectClass = "write"
        self.live = self.most_live = 0
        self.offered: dict[str, str] = {}
        self.act: Callable[[ToolRequest], Value] = lambda request: f"did {request.tool}"
        self.gate: asyncio.Event | None = None

    def effect_class(self, request: ToolRequest) -> EffectClass:
        return self.kind

    async def call(self, request: ToolRequest, effect_id: str) -> Value:
        self.calls.append((request.tool, request.arguments, effect_id))
        self.live += 1
        self.most_live = max(self.live, self.most_live)
        try:
            await asyncio.sleep(0)
            if self.gate:
                await self.gate.wait()
            return self.act(request)
        finally:
            self.live -= 1

    async def offers_under(self, grants: Sequence[str]) -> Sequence[Offered]:
        return []

    async def offers(self, names: Sequence[str]) -> Sequence[Offered]:
        return [Offered(name, self.offered[name], {"type": "object"}) for name in names]

    async def prompt(self, server: str, name: str) -> str:
        return f"prompt {name} of {server}"

    def names(self) -> list[str]:
        return [name for name, _, _ in self.calls]


class Answers:
    """Answers by label, in turn; nobody is there for the rest."""

    def __init__(self) -> None:
        self.given: dict[str, list[str]] = {}
        self.problems: list[str] = []

    async def ask(self, question: Question, problem: str) -> str | None:
        if problem:
            self.problems.append(problem)
        left = self.given.get(question.label)
        return left.pop(0) if left else None


class Texts:
    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.loads: list[str] = []

    async def load(self, request: Load) -> str | None:
        name = f"{request.scheme}:{request.where}"
        self.loads.append(name)
        return self.texts.get(name)


@dataclass
class House:
    """One run in one database; `drive` is what a process would do with it."""

    store: Store
    model: EchoModel = field(default_factory=EchoModel)
    tools: RecordingTools = field(default_factory=RecordingTools)
    people: Answers = field(default_factory=Answers)
    loader: Texts = field(default_factory=Texts)
    clock: Clock = field(default_factory=Clock)
    events: list[Event] = field(default_factory=list)
    run: str = "run-1"

    async def create(self) -> None:
        await self.store.create(NewRun(self.run, "T", "playbook", "t.md", self.clock.now(), {}, {}))

    def ports(self) -> Ports:
        return Ports(self.store, self.model, self.tools, self.loader, self.people, self.clock)

    async def drive(
        self, walk: Walk, terms: DriveLimits | None = None, began: Callable[[Drive], None] = lambda drive: None
    ) -> DriveResult:
        lease = await self.store.acquire(self.run)
        try:
            row = await self.store.get(self.run)
            assert row is not None
            records = list(await self.store.effects(self.run))
            again = tuple(expanded(row.ended_by, [record.path for record in records]))
            records = [record for record in records if record.path not in again]
            answers = await self.store.answers(self.run)
            drive = Drive(lease, Journal(records), self.ports(), terms or DriveLimits(), self.events.append, answers)
            began(drive)
            return await drive.until_rest(walk, Batch(supersede=again, update=RunUpdate(status=Status.RUNNING)))
        finally:
            await self.store.release(lease)

    async def status(self) -> Status:
        row = await self.store.get(self.run)
        assert row is not None
        return row.status

    async def paths(self) -> list[str]:
        return sorted(record.path for record in await self.store.effects(self.run))

    async def answer(self, path: str, value: str) -> None:
        (question,) = [question for question in await self.store.questions(self.run) if question.path == path]
        await self.store.answer(self.run, path, question.hash, value)

    def types(self) -> list[str]:
        return [event.type for event in self.events]


def failing(message: str) -> ModelFailed:
    return ModelFailed(message, kind="server")


async def until_stopping() -> None:
    """Returns once somebody has begun to stop a task."""
    while not any(task.cancelling() for task in asyncio.all_tasks()):
        await asyncio.sleep(0)
