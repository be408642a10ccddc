"""Count pure work: the steps, items and expressions that a walk computes without any effect.

The count belongs to one walk. A driver or a replay decides how far it may go: the interpreter only stops to ask, with
a `WorkCheck`, now and then and wherever the journal has a refusal. A check that is allowed leaves no trace, so the
moments of asking may differ between a drive and a replay; a refusal is recorded at the path of its step and replayed
there.
"""

from __future__ import annotations

from collections.abc import Iterable

PURE_WORK = 100_000_000
"""Units that a run may use by default: 10 to 30 seconds."""

UNITS_BETWEEN_CHECKS = 100_000
"""Some 10 milliseconds: how long the event loop waits for its turn."""

STEP = 40
"""Units of one step. A unit is about as long as one node of an expression takes."""

REPLAY_FACTOR = 2
"""A replay may use this many times the limit: it asks at other moments than the drive, and a run that has kept the
limit must not fail to be looked at."""

WORK = "/work"
"""What the path of a check ends in."""


class PureWork:
    """`used` only grows. `pause_at` is when to ask next; `refused` are the paths of the checks that are recorded as
    refused, which have to be asked again wherever the count stands."""

    __slots__ = ("pause_at", "refused", "used")

    def __init__(self, refused: Iterable[str] = ()) -> None:
        self.used = 0
        self.pause_at = UNITS_BETWEEN_CHECKS
        self.refused = frozenset(refused)

    def due(self, path: str) -> bool:
        """Whether the check at this path has to be asked."""
        return self.used >= self.pause_at or (bool(self.refused) and path in self.refused)

    def allow(self) -> None:
        """Lets the work go on until the next check."""
        self.pause_at = self.used + UNITS_BETWEEN_CHECKS

    def add_text(self, characters: int) -> None:
        """Count text that is built, written as JSON or hashed."""
        self.used += characters >> 5


def exhausted(limit: int, label: str, path: str) -> str:
    """Say which limit is reached, where, and how to raise it."""
    at = path.rpartition(WORK)[0]
    step = f"step {label} ({at})" if label else f"the step at {at}"
    return (
        f"{step} is not begun: the steps before it have used the {limit:,} units of pure work that a run may use "
        f"(go through fewer items, or raise pure_work under [runs] in the user's own quire.toml)"
    )


def replay_exhausted(limit: int) -> str:
    return (
        f"to follow this run takes more than the {limit:,} units of pure work that are allowed "
        f"(raise pure_work under [runs] in the user's own quire.toml)"
    )
