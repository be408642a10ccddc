"""Threads against a real SQLite file: directives made of a few words, and a model that says what a table says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.engine.house import Clock, House, RecordingTools

from quire.engine.conversation import Offered, ToolUse
from quire.engine.driver.drive import Drive, DriveResult
from quire.engine.driver.walker import DriveLimits
from quire.engine.interpreter.thread.compose import Bundle
from quire.engine.interpreter.thread.loop import interpret_directive
from quire.engine.interpreter.thread.setup import set_up
from quire.engine.ports import ModelCall, ModelReply, Ports
from quire.engine.records import Usage
from quire.engine.requests import Load, ToolRequest, Walk
from quire.errors import Denied, ModelFailed
from quire.plan.thread import THREAD_PATH
from quire.trust.capabilities import Grants, flat_name
from quire.values import Value

Reply = str | Exception | tuple[str, list[tuple[str, dict[str, Value]]]]
"""Words, a failure, or words with calls of tools."""

TOOLS = ("rye/file-system/read", "rye/file-system/write", "rye/bash", "rye/web/fetch", "ask")


def directive(
    name: str, body: str = "Do it.", *, meta: str = "", permissions: str | None = None, more: str = ""
) -> str:
    """The text of a directive. `permissions` None gives it the file tools and threads."""
    if permissions is None:
        permissions = (
            "<execute><tool>rye.file-system.*</tool><tool>rye.agent.threads.*</tool><tool>ask</tool></execute>"
        )
    held = f"<permissions>{permissions}</permissions>" if permissions else ""
    return (
        f'# {name}\n\n```xml\n<directive name="{name}" version="1.0.0"><metadata><description>d</description>'
        f'<category></category><author>me</author><model tier="low" />{meta}{held}</metadata>{more}</directive>\n'
        f"```\n\n{body}\n"
    )


def calls(*uses: tuple[str, dict[str, Value]], text: str = "") -> Reply:
    return text, list(uses)


def ls(path: str = "x") -> tuple[str, dict[str, Value]]:
    return "rye_file_system_read", {"path": path}


def fork(name: str, **more: Value) -> tuple[str, dict[str, Value]]:
    return "rye_agent_threads_thread_directive", {"directive_id": name, **more}


def orchestrate(operation: str, **more: Value) -> tuple[str, dict[str, Value]]:
    return "rye_agent_threads_orchestrator", {"operation": operation, **more}


def give(**outputs: Value) -> tuple[str, dict[str, Value]]:
    return "directive_return", outputs


class SlowClock(Clock):
    """A second is a few turns of the event loop: whoever works meanwhile gets somewhere."""

    async def sleep(self, seconds: float) -> None:
        for _ in range(int(seconds * 10)):
            await asyncio.sleep(0)
        self.time += seconds


class Table:
    """Answers by the name of the directive and the number of the turn: the same after a restart."""

    name = "table"

    def __init__(self, replies: Mapping[str, Sequence[Reply]], cost: float | None = 0.0, tokens: int = 10) -> None:
        self.replies = replies
        self.cost = cost
        self.tokens = tokens
        self.estimated = cost
        self.calls: list[tuple[str, int]] = []
        self.asked: list[ModelCall] = []
        self.gates: dict[str, asyncio.Event] = {}

    def estimate(self, call: ModelCall) -> float | None:
        return self.estimated

    async def complete(self, call: ModelCall, on_delta: Callable[[str], None]) -> ModelReply:
        first = call.messages[0].content
        name = next(name for name in self.replies if f'<directive name="{name}">' in first)
        turn = sum(message.role == "assistant" for message in call.messages)
        self.calls.append((name, turn))
        self.asked.append(call)
        if name in self.gates:
            await self.gates[name].wait()
        else:
            await asyncio.sleep(0)
        replies = self.replies[name]
        reply = replies[turn] if turn < len(replies) else "done"
        if isinstance(reply, Exception):
            raise reply
        text, uses = (reply, []) if isinstance(reply, str) else reply
        on_delta(text)
        made = tuple(ToolUse(f"{name}-{turn}-{at}", tool, given) for at, (tool, given) in enumerate(uses))
        return ModelReply(text, self.name, Usage(self.tokens, self.tokens, self.cost), uses=made)


class GrantedTools(RecordingTools):
    """Tools that look at the grants of who asks."""

    async def offers_under(self, grants: Sequence[str]) -> Sequence[Offered]:
        held = Grants.of(grants)
        return [
            Offered(flat_name(one), one, {"type": "object"}, one)
            for one in TOOLS
            if held.allows("execute", "tool", one)
        ]

    async def call(self, request: ToolRequest, effect_id: str) -> Value:
        held = Grants.of(request.grants or ())
        if request.connection != "rye" and not held.allows("execute", "tool", request.tool):
            raise Denied(f"permission denied: {request.tool}")
        return await super().call(request, effect_id)


@dataclass
class Crew(House):
    """One run of a directive. `directives` are the texts by id, `replies` those of the model by name."""

    directives: dict[str, str] = field(default_factory=dict)
    table: Table = field(default_factory=lambda: Table({}))
    knowledge: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.tools = GrantedTools()
        self.loader.load = self._load  # type: ignore[method-assign]

    async def _load(self, request: Load) -> str | None:
        if request.scheme == "knowledge":
            return self.knowledge.get(request.where)
        return self.bundle(request.where).encoded() if request.where in self.directives else None

    def bundle(self, leaf: str) -> Bundle:
        return Bundle(leaf, self.directives, self.knowledge)

    def walk(self, given: Mapping[str, Value], limits: Mapping[str, Value]) -> Walk:
        return interpret_directive(set_up(self.bundle("main"), given, THREAD_PATH, overrides=limits))

    def ports(self) -> Ports:
        return Ports(self.store, self.table, self.tools, self.loader, self.people, self.clock)

    async def go(
        self,
        given: Mapping[str, Value] | None = None,
        terms: DriveLimits | None = None,
        began: Callable[[Drive], None] = lambda drive: None,
        **limits: Value,
    ) -> DriveResult:
        return await self.drive(self.walk(given or {}, limits), terms, began)

    def ended(self, thread: str = "main") -> Mapping[str, Any]:
        """The last words about a thread."""
        return next(
            one.data for one in reversed(self.events) if one.type == "thread_ended" and one.data["thread"] == thread
        )

    def results(self) -> list[str]:
        return [str(one.data["result"]) for one in self.events if one.type == "tool_told"]

    def warnings(self) -> list[str]:
        return [str(one.data["message"]) for one in self.events if one.type == "warning"]


def down(message: str = "no route") -> ModelFailed:
    return ModelFailed(message, kind="server")
