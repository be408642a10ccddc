"""Rebuild the whole conversation of a thread from the journal of its run: messages, calls and results, with child
threads inside.

None of it is stored as such: the last request of a thread contains all messages before it, the record of its reply the
last one, and the results that were not sent yet come from a replay.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.engine.conversation import Message, ToolUse
from quire.engine.requests import ModelRequest
from quire.engine.thread_progress import HookView, ThreadView, reply_of_turn, turn_number, turn_of
from quire.plan.built_in_tools import RETURN

if TYPE_CHECKING:
    from quire.runs.outcome import RunView
    from quire.values import Value


class TranscriptCall(Struct, frozen=True):
    """A tool call in the transcript."""

    name: str
    arguments: Mapping[str, Value]
    result: str | None
    """None if the call was not answered."""
    error: str
    threads: tuple[Transcript, ...]
    """The threads that the call started."""


class Turn(Struct, frozen=True):
    """One turn of a thread."""

    number: int
    before: tuple[str, ...]
    """Messages to the thread just before the turn: a nudge, a note of a hook, text from a person."""
    text: str
    calls: tuple[TranscriptCall, ...]
    hooks: tuple[HookView, ...]
    threads: tuple[Transcript, ...]


class Transcript(Struct, frozen=True):
    """The conversation of one thread."""

    thread: str
    path: str
    system: str
    message: str
    tools: tuple[str, ...]
    turns: tuple[Turn, ...]
    hooks: tuple[HookView, ...]
    """The hooks before its first turn and after its last."""
    ended: Mapping[str, Value]
    """Empty while the thread continues."""


def transcripts(view: RunView) -> tuple[Transcript, ...]:
    """Return the transcript of every outermost thread of a run: one for a directive, one for each directive that
    another document called."""
    reading = _Reading(view)
    return tuple(reading.transcript(path) for path in _outermost(reading.threads))


class _Reading:
    def __init__(self, view: RunView) -> None:
        self._view = view
        self.threads: Mapping[str, ThreadView] = view.replay.progress.threads
        self._requests: dict[str, dict[int, ModelRequest]] = {}
        for path, request in view.replay.asked.items():
            turn = turn_of(path)
            if isinstance(request, ModelRequest) and turn and path.startswith(f"{turn}/model"):
                self._requests.setdefault(turn.rpartition("/")[0], {})[turn_number(turn)] = request

    def transcript(self, path: str) -> Transcript:
        thread, requests = self.threads[path], self._requests.get(path, {})
        last = requests[max(requests)] if requests else None
        messages = list(last.messages) if last else []
        first, rest = (messages[0].content, messages[1:]) if messages else ("", [])
        turns = self._turns(path, [*rest, *self._unsent(path, max(requests, default=0))])
        loose = [hook for hook in thread.hooks if not turn_of(hook.path).startswith(f"{path}/turn")]
        return Transcript(
            thread.id, path, last.system if last else "", first, thread.tools, turns, tuple(loose), thread.ended or {}
        )

    def _unsent(self, path: str, number: int) -> Iterable[Message]:
        """Yield the reply to the last request, and the results that no later request contains."""
        turn = f"{path}/turn[{number}]"
        replies = (
            reply_of_turn(record, turn) for record in self._view.effects if record.path.startswith(f"{turn}/model")
        )
        reply = next(filter(None, replies), None)
        if reply is None:
            return
        text, calls = reply
        yield Message(
            "assistant", text, tuple(ToolUse(str(at), view.name, view.arguments) for at, view in calls.items())
        )
        step = self._view.replay.progress.steps.get(turn)
        for at, call in step.calls.items() if step else ():
            if call.result is not None:
                yield Message("tool", call.result, answers=str(at))

    def _turns(self, path: str, messages: Sequence[Message]) -> tuple[Turn, ...]:
        results = _results(messages)
        turns: list[Turn] = []
        before: list[str] = []
        for at, message in enumerate(messages):
            if message.role == "user":
                before.append(message.content)
            if message.role != "assistant":
                continue
            number = len(turns) + 1
            turns.append(self._turn(path, number, tuple(before), message, results.get(at, {})))
            before = []
        if before:
            turns.append(self._turn(path, len(turns) + 1, tuple(before), None, {}))
        return tuple(turns)

    def _turn(
        self, path: str, number: int, before: tuple[str, ...], message: Message | None, results: Mapping[str, str]
    ) -> Turn:
        at = f"{path}/turn[{number}]"
        step = self._view.replay.progress.steps.get(at)
        calls = []
        working = 0
        for use in message.uses if message else ():
            threads: tuple[Transcript, ...] = ()
            kind = ""
            if use.name != RETURN:
                threads = self._started(f"{at}/tool[{working}]")
                view = step.calls.get(working) if step else None
                kind = view.kind if view else ""
                working += 1
            calls.append(TranscriptCall(use.name, use.arguments, results.get(use.id), kind, threads))
        hooks = tuple(hook for hook in self.threads[path].hooks if turn_of(hook.path) == at)
        # The path of the first action of a hook begins those of its other actions.
        by_hooks = {thread.path: thread for hook in hooks for thread in self._started(hook.path)}
        return Turn(number, before, message.content if message else "", tuple(calls), hooks, tuple(by_hooks.values()))

    def _started(self, path: str) -> tuple[Transcript, ...]:
        """Return the transcripts of the threads directly below a call or a hook."""
        inside = [thread for thread in self.threads if thread.startswith(f"{path}/")]
        return tuple(self.transcript(thread) for thread in _outermost(inside))


def _results(messages: Sequence[Message]) -> dict[int, dict[str, str]]:
    """Return the results of the calls of each reply, by the position of the reply, because ids need not be unique in a
    run."""
    results: dict[int, dict[str, str]] = {}
    at = -1
    for number, message in enumerate(messages):
        if message.role == "assistant":
            at = number
        elif message.role == "tool":
            results.setdefault(at, {})[message.answers] = message.content
    return results


def _outermost(paths: Collection[str]) -> list[str]:
    return [path for path in paths if not any(path.startswith(f"{other}/") for other in paths)]
