"""Threads in what is known of a run: a turn is a step that no plan names, made when it begins.

What a model wanted comes from the record of its reply, what it was told from the events of the thread; either may be
known first, so both only fill in what the other has left open.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct, field

from quire.engine.requests import ToolUse
from quire.trust.capabilities import RETURN

if TYPE_CHECKING:
    from quire.engine.records import EffectRecord
    from quire.values import Value

START, END = "start", "end"
"""The labels of what happens in a thread before its first turn and after its last."""

_TURN = re.compile(r"(?:^|/)thread/turn\[(\d+)\]")
_CALL = re.compile(r"/tool\[(\d+)\]")
_REPLY = re.compile(r"/model(?:/retry\[\d+\])?")
_NUMBERED = re.compile(r"\[(\d+)\]")


class CallView(Struct):
    """One call of a tool. `result` is what the model was told, None before that; `kind` is empty for one that went
    well, and `denied` for one that was not allowed."""

    name: str = ""
    arguments: Mapping[str, Value] = field(default_factory=dict)
    tool: str = ""
    result: str | None = None
    kind: str = ""


class HookView(Struct):
    """An action of a hook: where, on which event, and what with which parameters."""

    path: str
    hook: str
    event: str
    item_id: str
    parameters: Mapping[str, Value]


class ThreadView(Struct):
    """A thread that has begun. `ended` is how it ended, in the words of `Ending.as_value`."""

    path: str
    id: str = ""
    depth: int = 0
    tools: tuple[str, ...] = ()
    hooks: list[HookView] = field(default_factory=list)
    ended: Mapping[str, Value] | None = None


def turn_of(path: str) -> str:
    """The path of the innermost turn that a path is in; empty where it is in none."""
    if "turn[" not in path:
        return ""  # nearly all paths, and each event of a run asks
    found = [match.end() for match in _TURN.finditer(path)]
    return path[: found[-1]] if found else ""


def turn_number(path: str) -> int:
    return int(_TURN.findall(path)[-1])


def threads_above(path: str) -> int:
    """How many threads a turn is in, besides its own."""
    return len(_TURN.findall(path)) - 1


def thread_of(path: str) -> str:
    """The path of the thread that a turn, a hook or an offer belongs to."""
    before, _, _ = f"/{path}/".rpartition("/thread/")
    return f"{before}/thread".lstrip("/")


def in_order(path: str) -> tuple[tuple[str, int], ...]:
    """Sorts paths as the document goes: numbers in brackets by their size."""
    parts = []
    for part in path.split("/"):
        number = _NUMBERED.search(part)
        parts.append((_NUMBERED.sub("", part), int(number[1]) if number else -1))
    return tuple(parts)


def call_number(path: str, turn: str) -> int | None:
    """Which call of its turn a path belongs to, None for none."""
    if path == f"{turn}/return":
        return -1
    found = _CALL.match(path, len(turn))
    return int(found[1]) if found else None


def wanted_in(record: EffectRecord, turn: str) -> tuple[str, dict[int, CallView]] | None:
    """What the model of a turn said and which tools it wants, where the record is its reply.

    Handing back is no call of a tool: it has a number below 0."""
    if record.kind != "model" or record.state != "ok" or not _REPLY.fullmatch(record.path, len(turn)):
        return None
    reply = cast("Mapping[str, Value]", record.value)
    uses = [ToolUse.of(one) for one in cast("list[list[Any]]", reply.get("uses") or [])]
    # What hands nothing back, because its arguments cannot be read, is told like any other call.
    working = [CallView(use.name, use.arguments) for use in uses if use.name != RETURN or use.problem]
    handing_back = [CallView(use.name, use.arguments) for use in uses if use.name == RETURN and not use.problem]
    calls = dict(enumerate(working)) | {-number: call for number, call in enumerate(handing_back, 1)}
    return str(reply.get("text", "")), calls
