"""Data that travels through Temporal: names, and two small values. The workflow imports nothing else of Quire.

The names carry a version. Temporal replays the history of a workflow with the code of its name as long as the workflow
lives, so code that would decide differently from the same history needs another name. The values are dataclasses:
Temporal's converter knows these.
"""

from __future__ import annotations

from dataclasses import dataclass

WORKFLOW = "quire.run.v2"
FIRST_WORKFLOW = "quire.run.v1"
"""Its workflows also lived while their runs waited. Those that do are finished by it."""
DRIVE = "quire.drive.v1"
LOOK = "look"

HEARTBEAT_SECONDS = 10.0

ENDED = "ended"
WAITS = "waits"
BUSY = "busy"
HANDED_OVER = "handed_over"


@dataclass(frozen=True, slots=True)
class Order:
    """Look at a run."""

    run: str
    heartbeat: float = HEARTBEAT_SECONDS
    """Seconds of silence after which its worker counts as dead."""
    resume: bool = False
    """Also continue a run that would not continue by itself: after a failure, after a cancel, at a breakpoint."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a look."""

    status: str
    """The status of the run."""
    rests: str
    """How the run rests: one of the words above."""
    expires_at: float | None = None
    """When a waiting run expires, or continues by itself."""
