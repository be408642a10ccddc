"""A model that says what a script says: for `--script FILE`, for document tests, for trying a run without a key.

An entry is a text, or a mapping with `reply`, `error`, `default`, or `tool_calls` (each with `name` and `input`, and
beside them the `text` that the model says with them). A `finish_reason` of `length` makes it a reply that was cut off.
For each call the first of these answers: an entry whose `step` is the way to the call's step (`3 › 1`, or `3>1`, in a
callee); one whose `step` is its label; one whose `contains` stands in the prompt; the next entry in order that has
neither; the `default`. Entries for one step, or with one `contains`, are used one after the other and the last of them
stays. `delay_ms` waits before the answer; an entry that is only a delay belongs to the one after it.

A script stands for the whole run: when a run is resumed, the entries that its calls took, failed ones too, are passed
over (`pass_over`), and the next call gets the entry that it would have got without the interruption.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from quire.engine.ports import ModelCall, ModelReply
from quire.engine.requests import ToolUse
from quire.errors import ModelFailed
from quire.models.script import Entry, entries_of, read_script
from quire.plan.ways import JOINT, last_label
from quire.values import Value

NO_REPLY = "the script has no reply for"


SHORT = 60
"""Characters of a reply that comes in two pieces."""


class ScriptedModel:
    """`calls` are the calls that it got, in order; those of a long run are large together, so they need not be kept."""

    def __init__(
        self,
        entries: Sequence[Value] | Sequence[Entry],
        *,
        name: str = "script",
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        keep_calls: bool = True,
    ) -> None:
        parsed = entries_of(entries)
        self.calls: list[ModelCall] = []
        self._name = name
        self._sleep = sleep
        self._keep_calls = keep_calls
        self._count = 0
        self._queue = deque(entry for entry in parsed if entry.in_order)
        self._matching = [entry for entry in parsed if not entry.in_order and not entry.is_default]
        self._default = next((entry for entry in parsed if entry.is_default), None)

    @classmethod
    def from_file(cls, path: Path, *, keep_calls: bool = True) -> ScriptedModel:
        return cls(read_script(path), name=f"script:{path}", keep_calls=keep_calls)

    @property
    def name(self) -> str:
        return self._name

    @property
    def ways(self) -> list[str]:
        """Steps of callees that entries are for."""
        return [entry.step for entry in self._matching if entry.step is not None and JOINT in entry.step]

    def pass_over(self, call: ModelCall) -> None:
        """Takes the entry that answered this call in an earlier drive of the run."""
        with contextlib.suppress(ModelFailed):
            self._next(call)

    async def complete(self, call: ModelCall, on_delta: Callable[[str], None]) -> ModelReply:
        self._count += 1
        if self._keep_calls:
            self.calls.append(call)
        entry, delay_ms = self._next(call)
        if delay_ms:
            await self._sleep(delay_ms / 1000)
        if entry.error is not None:
            kind, message, transient = entry.error
            raise ModelFailed(message, kind=kind, transient=transient)
        for piece in _pieces(entry.reply):
            on_delta(piece)
            await asyncio.sleep(0)
        earlier = sum(len(message.uses) for message in call.messages)
        uses = tuple(ToolUse(f"call_{earlier + n}", *one) for n, one in enumerate(entry.calls, 1))
        finish = entry.finish_reason or ("tool_call" if uses else "stop")
        return ModelReply(entry.reply, self._name, entry.usage, finish, uses=uses)

    def _next(self, call: ModelCall) -> tuple[Entry, float]:
        reads = any(entry.contains is not None for entry in self._matching)
        prompt = "\n".join((call.system, *(message.content for message in call.messages))) if reads else ""
        for step in (call.label, last_label(call.label), None):
            fitting = [entry for entry in self._matching if entry.fits(step, prompt)]
            if not fitting:
                continue
            entry = fitting[0]
            if any(other.same_rule(entry) for other in fitting[1:]):
                self._matching.remove(entry)
            return entry, entry.delay_ms
        delay = 0.0
        while self._queue:
            entry = self._queue.popleft()
            delay += entry.delay_ms
            if not entry.only_delay:
                return entry, delay
        if self._default is not None:
            return self._default, delay + self._default.delay_ms
        where = f"step {call.label}" if call.label else f"call {self._count}"
        raise ModelFailed(f"{NO_REPLY} {where}", kind="script")


def _pieces(text: str) -> list[str]:
    """A few pieces, cut between words, that joined are the text: two of a short one, four of others."""
    words = re.findall(r"\s*\S+\s*", text) or ([text] if text else [])
    size = max(1, -(-len(words) // (4 if len(text) > SHORT else 2)))
    return ["".join(words[at : at + size]) for at in range(0, len(words), size)]
