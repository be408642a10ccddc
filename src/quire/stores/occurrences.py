"""Rows about runs that start by themselves: the claim of an occurrence, a trigger that is enabled, and the processes
that may drive runs.

No row holds authority by itself: the pins of a run are sealed, and so is the consent to a trigger.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from quire.python_process import is_alive

PREFIX = "trigger:"
"""Begins the source of a trigger's occurrences and runs."""
SEEN_SECONDS = 15.0
"""A process whose report is older counts as gone."""

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


class EnabledTrigger(Struct, frozen=True):
    """The consent of a user to runs that no person starts."""

    name: str
    digest: str
    """Of the settings of the trigger and of the next."""
    authority: str
    """The bounds of the document when the user agreed."""
    cursor: float
    """The time up to which its occurrences are settled."""
    enabled_at: float
    enabled_by: str
    seal: str


class Process(Struct, frozen=True):
    """A process that serves or drives runs, as it last reported itself."""

    id: str
    kind: Literal["serve", "worker", "mcp"]
    host: str
    pid: int
    version: str
    queue: str
    """The task queue of a cluster, else the folder of the workspace."""
    started_at: float
    seen_at: float
    slots: int
    driving: int
    state: ProcessState = "fit"
    reason: str = ""

    def is_recent(self, now: float) -> bool:
        """Tell by the clocks whether the process has reported itself just now, and on its own host whether it lives."""
        from socket import gethostname

        return abs(now - self.seen_at) <= SEEN_SECONDS and (self.host != gethostname() or is_alive(self.pid))
