"""Progress of threads. The plan does not list turns, so a step is created for each turn when it starts.

Tool calls come from the record of the model's reply, their results from the events of the thread; whichever arrives
first creates the entry and the other completes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from msgspec import Struct, field

from quire.engine.conversation import uses_of
from quire.patterns import late_pattern
from quire.plan.built_in_tools import RETURN

if TYPE_CHECKING:
    from quire.engine.records import EffectRecord
    from quire.values import Value

START, END = "start", "end"
"""Labels of the time in a thread before its first turn and after its last."""

_TURN = late_pattern(r"(?:^|/)thread/turn\[(\d+)\]")
_CALL = late_pattern(r"/tool\[(\d+)\]")
_REPLY = late_pattern(r"/model(?:/retry\[\d+\])?")
_AGENT_TURN = late_pattern(r"/turn\[(\d+)\]/tool\[\d+\]$")
_ITEM = late_pattern(r"(?:for_each|fold|parallel|repeat)\[([^\]]+)\]")
_NUMBERED = late_pattern(r"\[(\d+)\]")


class CallView(Struct):
    """One tool call."""

    name: str = ""
    arguments: Mapping[str, Value] = field(default_factory=dict)
    tool: str = ""
    result: str | None = None
    """The text that the model was told; None before that."""
    kind: str = ""
    """Empty for a call that succeeded, `denied` for one that was not allowed."""
    path: str = ""
    """Set for a call of an agent: `2/for_each[0]/turn[1]/tool[0]`."""
    said: str = ""
    """Text that an agent wrote before the first call of a turn."""

    @property
    def turn(self) -> int:
        """The number of an agent's turn; 0 for a call of a thread, which belongs to the step of its turn."""
        numbers = _AGENT_TURN.findall(self.path)
        return int(numbers[-1]) if numbers else 0

    @property
    def item(self) -> str:
        """The item or branch that an agent works for: `0`, `3/best`. Empty outside of fans and loops."""
        return "/".join(_ITEM.findall(self.path))


class HookView(Struct):
    """An action of a hook: its path, the hook, the event, the item and its parameters."""

    path: str
    hook: str
    event: str
    item_id: str
    parameters: Mapping[str, Value]


class ThreadView(Struct):
    """A thread that has started."""

    path: str
    id: str = ""
    depth: int = 0
    tools: tuple[str, ...] = ()
    hooks: list[HookView] = field(default_factory=list)
    ended: Mapping[str, Value] | None = None
    """How the thread ended, in the form of `ThreadResult.as_value`; None while it runs."""


def turn_of(path: str) -> str:
    """Return the path of the innermost turn that contains a path, or an empty text."""
    if "turn[" not in path:
        return ""  # true of nearly all paths, and called for each event
    ends = [match.end() for match in _TURN.finditer(path)]
    return path[: ends[-1]] if ends else ""


def turn_number(path: str) -> int:
    return int(_TURN.findall(path)[-1])


def threads_above(path: str) -> int:
    """Return the number of threads that a turn is in, besides its own."""
    return len(_TURN.findall(path)) - 1


def thread_of(path: str) -> str:
    """Return the path of the thread that a turn, a hook or an offer belongs to."""
    before, _, _ = f"/{path}/".rpartition("/thread/")
    return f"{before}/thread".lstrip("/")


def path_order(path: str) -> tuple[tuple[str, int], ...]:
    """Return a sort key that puts paths in document order: numbers in brackets are compared as numbers."""
    parts = []
    for part in path.split("/"):
        number = _NUMBERED.search(part)
        parts.append((_NUMBERED.sub("", part), int(number[1]) if number else -1))
    return tuple(parts)


def call_number(path: str, turn: str) -> int | None:
    """Return the number of the call in its turn that a path belongs to, or None."""
    if path == f"{turn}/return" or path.startswith(f"{turn}/return["):
        return -1
    match = _CALL.match(path, len(turn))
    return int(match[1]) if match else None


def reply_of_turn(record: EffectRecord, turn: str) -> tuple[str, dict[int, CallView]] | None:
    """Return the text and the tool calls of a model's reply, if the record is the reply of this turn.

    Returning the outputs is not a tool call, so it gets a number below 0.
    """
    if record.kind != "model" or record.state != "ok" or not _REPLY.fullmatch(record.path, len(turn)):
        return None
    reply = cast("Mapping[str, Value]", record.value)
    uses = uses_of(reply)
    # A return call with unreadable arguments returns nothing, so it is reported like any other call.
    working = [CallView(use.name, use.arguments) for use in uses if use.name != RETURN or use.problem]
    handing_back = [CallView(use.name, use.arguments) for use in uses if use.name == RETURN and not use.problem]
    calls = dict(enumerate(working)) | {-number: call for number, call in enumerate(handing_back, 1)}
    return str(reply.get("text", "")), calls
