"""Count pure work: the steps, items and expressions that a walk computes without any effect.

The count belongs to one walk. A driver or a replay decides how far it may go: the interpreter only stops to ask, with a
`WorkCheck`, at intervals and at every path where the journal has a refusal. An allowed check is not recorded, so a
drive and a replay may ask at different moments; a refusal is recorded at the path of its step and replayed there.
"""

from __future__ import annotations

from collections.abc import Iterable

UNITS_BETWEEN_CHECKS = 100_000
"""About 10 milliseconds: the time that the event loop waits for its turn."""

STEP = 40
"""Units of one step. One unit is about the time that one node of an expression takes."""

REPLAY_FACTOR = 2
"""A replay may use this many times the limit: it asks at other moments than the drive, and a run that kept to the limit
must remain readable."""

WORK = "/work"
"""The last segment of a check's path."""


class PureWork:
    """Count of the work units of one walk. `used` only grows.

    `pause_at` is the count at which to ask next. `refused` are the paths of checks that are recorded as refused; they
    have to be asked again, whatever the count is.
    """

    __slots__ = ("pause_at", "refused", "used")

    def __init__(self, refused: Iterable[str] = ()) -> None:
        self.used = 0
        self.pause_at = UNITS_BETWEEN_CHECKS
        self.refused = frozenset(refused)

    def due(self, path: str) -> bool:
        """Return True if the check at this path has to be asked."""
        return self.used >= self.pause_at or (bool(self.refused) and path in self.refused)

    def allow(self) -> None:
        """Let the work go on until the next check."""
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
