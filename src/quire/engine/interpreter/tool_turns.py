"""Turns of a model that may use tools: its calls are made, it is told the results, until it answers without one.

Agents of pipelines and steps of playbooks share this. A failing call is a result too; the model has to deal with it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from quire.engine.conversation import Message, Offered, ToolUse, too_many_calls, uses_of
from quire.engine.premises import MAX_TURNS, MOST_CALLS
from quire.engine.requests import Emit, HumanRequest, ModelRequest, Request, ToolRequest
from quire.errors import StepFailed
from quire.plan.built_in_tools import ASK
from quire.values import Value, encode

if TYPE_CHECKING:
    from quire.engine.interpreter.callees import Profile

TOLD = 1000
"""Characters of a tool result that listeners are shown."""

SAME_FAILURES = 3
"""Identical failing calls in a row after which the model is warned; one more ends the step."""

AskPerson = Callable[[Mapping[str, Value], str, str, str], HumanRequest]
"""Builds the request of the tool `ask` from its arguments, its path, its label and the path that is blamed."""


class ToolTurns(Struct):
    """The turns of one step. The first call is at `PATH/model`, that of turn 2 at `PATH/turn[2]/model`."""

    path: str
    label: str
    profile: Profile
    offered: tuple[Offered, ...]
    request: Callable[[str, list[Message]], ModelRequest]
    """Builds the model call at a path from the messages so far."""
    ask: AskPerson | None = None
    """None if the tool `ask` is not among the tools."""
    reads_only: bool = False
    """If true, a tool that changes something is refused."""
    last: str = ""
    """The path of the last model call."""
    failing: tuple[object, int] = ((), 0)

    def run(self, messages: list[Message]) -> Generator[Request, Any, Mapping[str, Value]]:
        """Return the first reply without tool calls. Messages are added to the list."""
        self.last = f"{self.path}/model"
        reply: Mapping[str, Value] = yield self.request(self.last, messages)
        most = self.profile.turns or MAX_TURNS
        for turn in range(1, most + 1):
            uses = uses_of(reply)
            if not uses:
                return reply
            text = str(reply["text"])
            messages.append(Message("assistant", text, tuple(uses)))
            for number, use in enumerate(uses):
                if number < MOST_CALLS:
                    result = yield from self._use_tool(use, turn, number, text if number == 0 else "")
                else:
                    result = encode({"error": too_many_calls(len(uses)).message})
                messages.append(Message("tool", self._noticed(use, result), answers=use.id))
            self.last = f"{self.path}/turn[{turn + 1}]/model"
            reply = yield self.request(self.last, messages)
        raise StepFailed(f"the agent used tools for {most} turns and did not answer", kind="turns", path=self.last)

    def _noticed(self, use: ToolUse, result: str) -> str:
        """Return the result, with a warning if the call has failed in the same way several times.

        Raises `StepFailed` if the model was warned and makes the call once more.
        """
        if not self.profile.stops_repetition:
            return result
        call = (use.name, encode(dict(use.arguments)), result)
        if not result.startswith('{"error":'):
            self.failing = ((), 0)
            return result
        same, times = self.failing
        times = times + 1 if same == call else 1
        self.failing = (call, times)
        if times > SAME_FAILURES:
            message = (
                f"the agent made the same call of {use.name} {times} times, and it failed each time: {result[:500]}"
            )
            raise StepFailed(message, kind="repeated", path=self.last)
        if times < SAME_FAILURES:
            return result
        advice = "Do not make it again: do something else, or answer."
        return f"{result}\nThis call has failed {times} times in the same way. {advice}"

    def _use_tool(self, use: ToolUse, turn: int, number: int, text: str) -> Generator[Request, Any, str]:
        """Return the result as the model is told it. `text` is that of its reply, at the first call of a turn."""
        path = f"{self.path}/turn[{turn}]"
        at, label = f"{path}/tool[{number}]", self.label
        data: dict[str, Value] = {"tool": use.name, "arguments": use.arguments, "turn": turn}
        if text.strip():
            data["text"] = text[:TOLD]
        yield Emit("agent_called", at, label, data, kept=False)
        kind = ""
        try:
            self._require_offered(use)
            if use.name == ASK and self.ask is not None:
                result: Value = yield self.ask(use.arguments, f"{path}/ask[{number}]", label, path)
            else:
                result = yield ToolRequest(at, label, "", use.name, use.arguments, reads_only=self.reads_only)
            content = encode(result)
        except StepFailed as error:
            content, kind = encode({"error": error.message}), error.kind
        yield Emit("agent_told", at, label, {"tool": use.name, "result": content[:TOLD], "kind": kind}, kept=False)
        return content

    def _require_offered(self, use: ToolUse) -> None:
        """Raise `StepFailed` for a call that cannot be made: unreadable arguments, or a tool that was not offered."""
        if use.problem:
            raise StepFailed(use.problem, kind="arguments")
        names = [tool.name for tool in self.offered]
        if use.name not in names:
            raise StepFailed(f"there is no tool {use.name} (known: {', '.join(names) or 'none'})", kind="unknown_tool")
