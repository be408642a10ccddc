"""Rows about runs that start by themselves: the claim of an occurrence, and the processes that may drive runs.

No row holds authority: a claim only names a run, and the pins of that run are sealed.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

StartState: TypeAlias = Literal["started", "skipped", "missed", "refused"]
ProcessState: TypeAlias = Literal["fit", "unfit", "leaving"]


class Occurrence(Struct, frozen=True):
    """An occasion to start a run, which happens once: a due time, a delivery, or a request with a key."""

    source: str
    """`id` for a key that a caller chose, or `trigger:NAME`."""
    key: str
    request: str = ""
    """The hash of what a caller asked for: the same key with another request is a mistake."""
    due: float = 0.0


class Start(Struct, frozen=True):
    """The claim of an occurrence, and what came of it."""

    source: str
    key: str
    request: str
    due: float
    at: float
    state: StartState
    reason: str = ""
    run: str = ""


class Process(Struct, frozen=True):
    """A process that serves or drives runs, as it last reported itself."""

    id: str
    kind: Literal["serve", "worker", "mcp"]
    host: str
    pid: int
    version: str
    queue: str
    started_at: float
    seen_at: float
    slots: int
    driving: int
    state: ProcessState = "fit"
    reason: str = ""
