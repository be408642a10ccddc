"""The model of a case: replies from its script, and keeps every prompt that it was sent.

A call is answered by the first entry, in the order of the file, whose conditions all hold and that has uses left; then
by the next entry without conditions; then by the default. A call that is made again at the same path, because a
process died before the reply was recorded, gets the same entry again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.engine.conversation import ToolUse
from quire.engine.ports import ModelCall, ModelReply
from quire.engine.records import Usage
from quire.engine.thread_progress import thread_of
from quire.errors import ModelFailed
from quire.patterns import late_pattern
from quire.plan.vocabulary import is_named
from quire.testing.observation import SeenPrompt
from quire.wording import cut

if TYPE_CHECKING:
    from quire.formats.test.syntax import Entry, Script
    from quire.testing.world.workspace import CaseProcess
    from quire.values import Value

_TURN = late_pattern(r"/turn\[(\d+)\]")
_ITEM = late_pattern(r"/(?:for_each|fold|repeat)\[(\d+)\]")
_FAR = 60


class ModelAsked(Struct):
    """A call of the model, as far as scripts can tell calls apart."""

    path: str
    way: str
    text: str
    """The whole prompt."""

    @property
    def turn(self) -> int | None:
        numbers = _TURN.findall(self.path)
        return int(numbers[-1]) if numbers else None

    @property
    def item(self) -> int | None:
        """The number of the innermost item, from 0."""
        numbers = _ITEM.findall(self.path)
        return int(numbers[-1]) if numbers else None


class _Uses:
    """An entry with the number of calls that it may still answer, and has answered."""

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self.left = entry.times
        self.answered = 0
        self.crashed = False

    def take(self) -> None:
        self.answered += 1
        if self.left is not None:
            self.left -= 1

    def give_back(self) -> None:
        self.answered -= 1
        if self.left is not None:
            self.left += 1


class Replies:
    """The replies of a case that are still to be given. `threads` maps the paths of threads to their directives."""

    def __init__(self, script: Script | None, threads: Mapping[str, str]) -> None:
        self._uses = [_Uses(entry) for entry in (script.entries if script else ())]
        self._threads = threads
        self._given: dict[str, _Uses] = {}

    def add(self, script: Script) -> None:
        """Put the entries of an act before those that are left."""
        self._uses[:0] = [_Uses(entry) for entry in script.entries]

    def take(self, call: ModelAsked) -> Entry | None:
        """Return the entry that answers a call, and use it up; None if there is none."""
        uses = self._find(call)
        if uses is None:
            return None
        uses.take()
        self._given[call.path] = uses
        return uses.entry

    def answers(self, call: ModelAsked) -> bool:
        """Tell whether an entry that names the call, and not just any, would answer it."""
        uses = self._find(call)
        return uses is not None and not uses.entry.is_default

    def dies(self, entry: Entry) -> bool:
        """Tell whether the process dies at this entry. It dies once: the call that is made again is answered."""
        uses = next(use for use in self._uses if use.entry is entry)
        first = entry.crash is not None and not uses.crashed
        uses.crashed = uses.crashed or first
        return first

    def forget(self, recorded: Collection[str]) -> None:
        """Take back the replies of a dead process that are not in the journal."""
        for path in [path for path in self._given if path not in recorded]:
            self._given.pop(path).give_back()

    def unused(self) -> list[Entry]:
        """Return the entries of the case itself that answered fewer calls than they say. A crash is an answer."""
        own = (use for use in self._uses if not use.entry.shared and not use.entry.is_default)
        return [uses.entry for uses in own if uses.left and not uses.crashed]

    def nearest(self, call: ModelAsked) -> tuple[Entry, str] | None:
        """Return the entry that comes closest to answering a call, and the reason why it does not. An entry that is
        only for another step is not close."""
        best: tuple[int, Entry, str] | None = None
        for uses in self._uses:
            if uses.entry.step and not is_named(call.way, (uses.entry.step,)):
                continue
            reasons = self._misfits(uses.entry, call)
            if not reasons and uses.left == 0:
                reasons = ["it was used already" if uses.entry.times == 1 else f"it was used {uses.answered} times"]
            if reasons and (best is None or len(reasons) < best[0]):
                best = len(reasons), uses.entry, reasons[0]
        return (best[1], best[2]) if best else None

    def _find(self, call: ModelAsked) -> _Uses | None:
        free = [uses for uses in self._uses if uses.left is None or uses.left > 0]
        free.sort(key=lambda uses: 1 if uses.entry.in_order else 2 if uses.entry.is_default else 0)
        return next((uses for uses in free if not self._misfits(uses.entry, call)), None)

    def _misfits(self, entry: Entry, call: ModelAsked) -> list[str]:
        """Return the reasons why an entry does not answer a call; none if it does."""
        reasons = []
        if entry.step and not is_named(call.way, (entry.step,)):
            reasons.append(f"it is for step {entry.step}")
        if entry.path and entry.path != call.path:
            reasons.append(f"it is for {entry.path}")
        if entry.thread and entry.thread not in self._thread(call.path):
            reasons.append(f"it is for the thread {entry.thread}")
        if entry.turn is not None and entry.turn != call.turn:
            reasons.append(f"it is for turn {entry.turn}, and this is {_said(call.turn, 'turn')}")
        if entry.item is not None and entry.item != call.item:
            reasons.append(f"it is for item {entry.item}, and this is {_said(call.item, 'item')}")
        if entry.contains and entry.contains not in call.text:
            reasons.append(f'the prompt does not contain "{cut(entry.contains, _FAR, _FAR - 1)}"')
        return reasons

    def _thread(self, path: str) -> tuple[str, ...]:
        """Return the names of the thread that a call belongs to: its path, its id, and the last part of the id."""
        place = thread_of(path)
        name = self._threads.get(place, "")
        return place, name, name.rpartition("/")[2]


def _said(number: int | None, what: str) -> str:
    return f"no {what}" if number is None else f"{what} {number}"


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
            messages = tuple((message.role, message.content) for message in call.messages)
            tools = tuple(tool.name for tool in call.tools)
            prompt = SeenPrompt(call.path, call.label, call.system, messages, tools)
            self.seen.append(prompt)
            return await self._reply(call, prompt, on_delta)

    async def _reply(self, call: ModelCall, prompt: SeenPrompt, on_delta: Callable[[str], None]) -> ModelReply:
        request = ModelAsked(call.path, call.label, prompt.text)
        entry = self.replies.take(request)
        if entry is None:
            self.missing.append((request, self.replies.nearest(request)))
            raise ModelFailed(f"the test has no reply for this call of step {prompt.label}", kind=NO_REPLY)
        dies = self.process is not None and self.replies.dies(entry)
        if dies and entry.crash == "before" and self.process is not None:
            self.process.die()
        await asyncio.sleep(entry.delay)  # also for 0: calls side by side begin before the first of them ends
        if dies and self.process is not None:
            self.process.die()
        if entry.error is not None:
            raise ModelFailed(entry.error.message, kind=entry.error.kind, transient=entry.error.transient)
        if entry.reply:
            on_delta(entry.reply)
        used = entry.usage
        tokens = int(used.get("input_tokens", 0)), int(used.get("output_tokens", 0))
        usage = Usage(*tokens, float(used.get("cost", 0.0)))
        return reply_of(call, NAME, entry.reply, entry.calls, entry.finish_reason, usage)


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
    uses = tuple(ToolUse(f"call_{earlier + n}", *use) for n, use in enumerate(calls, 1))
    return ModelReply(text, model, usage, finish_reason or ("tool_call" if uses else "stop"), uses=uses)
