"""The model of a case: replies from its script, and keeps every prompt that it was sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from quire.engine.conversation import ToolUse
from quire.engine.ports import ModelCall, ModelReply
from quire.engine.records import Usage
from quire.errors import ModelFailed
from quire.testing.observation import SeenPrompt
from quire.testing.world.replies import ModelAsked, Replies

if TYPE_CHECKING:
    from quire.formats.test.syntax import Entry
    from quire.testing.world.process import CaseProcess
    from quire.values import Value

NAME = "script"
NO_REPLY = "no_reply"
"""The kind of a failure of which the case is told: the script has no answer."""


class Meter:
    """Counts the effects that are under way, and the most that ever were."""

    def __init__(self) -> None:
        self.now = 0
        self.most = 0

    def __enter__(self) -> None:
        self.now += 1
        self.most = max(self.most, self.now)

    def __exit__(self, *_: object) -> None:
        self.now -= 1


class CaseModel:
    """The `Model` port. `missing` are the calls that the script had no answer for."""

    name = NAME

    def __init__(self, replies: Replies, meter: Meter) -> None:
        self.replies = replies
        self.seen: list[SeenPrompt] = []
        self.missing: list[tuple[ModelAsked, tuple[Entry, str] | None]] = []
        self.process: CaseProcess | None = None
        self._meter = meter

    async def complete(self, call: ModelCall, on_delta: Callable[[str], None]) -> ModelReply:
        with self._meter:
            if self.process is not None:
                self.process.must_live()
            seen = seen_prompt(call)
            self.seen.append(seen)
            return await self._reply(call, seen, on_delta)

    async def _reply(self, call: ModelCall, seen: SeenPrompt, on_delta: Callable[[str], None]) -> ModelReply:
        asked = ModelAsked(call.path, call.label, seen.text)
        entry = self.replies.take(asked)
        if entry is None:
            self.missing.append((asked, self.replies.nearest(asked)))
            raise ModelFailed(f"the test has no reply for this call of step {seen.label}", kind=NO_REPLY)
        dies = self.process is not None and self.replies.dies(entry)
        if dies and entry.crash == "before" and self.process is not None:
            self.process.die()
        if entry.delay:
            await asyncio.sleep(entry.delay)
        else:
            await asyncio.sleep(0)  # calls side by side begin before the first of them ends
        if dies and self.process is not None:
            self.process.die()
        if entry.error is not None:
            raise ModelFailed(entry.error.message, kind=entry.error.kind, transient=entry.error.transient)
        if entry.reply:
            on_delta(entry.reply)
        return reply_of(call, NAME, entry.reply, entry.calls, entry.finish_reason, usage_of(entry))


def seen_prompt(call: ModelCall) -> SeenPrompt:
    messages = tuple((message.role, message.content) for message in call.messages)
    return SeenPrompt(call.path, call.label, call.system, messages, tuple(tool.name for tool in call.tools))


def reply_of(
    call: ModelCall,
    model: str,
    text: str,
    calls: Sequence[tuple[str, Mapping[str, Value]]],
    finish_reason: str,
    usage: Usage,
) -> ModelReply:
    """Return a reply that was written or recorded. `calls` are the tools that it wants called."""
    earlier = sum(len(message.uses) for message in call.messages)
    uses = tuple(ToolUse(f"call_{earlier + n}", *one) for n, one in enumerate(calls, 1))
    return ModelReply(text, model, usage, finish_reason or ("tool_call" if uses else "stop"), uses=uses)


def usage_of(entry: Entry) -> Usage:
    used = entry.usage
    tokens = int(used.get("input_tokens", 0)), int(used.get("output_tokens", 0))
    return Usage(*tokens, float(used.get("cost", 0.0)))
