"""What travels through Temporal: names, and two small values. The workflow imports nothing of Quire but this.

The names carry a version. Histories of a name are replayed by its code for as long as such a workflow lives, so code
that would take other decisions from the same history gets another name.
"""

from __future__ import annotations

from msgspec import Struct

WORKFLOW = "quire.run.v1"
DRIVE = "quire.drive.v1"
LOOK = "look"

HEARTBEAT_SECONDS = 10.0

ENDED = "ended"
WAITS = "waits"
BUSY = "busy"
HANDED_OVER = "handed_over"


class Order(Struct, frozen=True):
    """Look at a run. `heartbeat` is after how many seconds of silence its worker counts as dead.

    `resume` goes on with what rests of its own: a failure, a cancelled run, a breakpoint."""

    run: str
    heartbeat: float = HEARTBEAT_SECONDS
    resume: bool = False


class Outcome(Struct, frozen=True):
    """What a look found or brought about: the run's `status`, and how it `rests` (one of the words above).

    `expires_at` is when a run that waits is not waited for any more."""

    status: str
    rests: str
    expires_at: float | None = None
