"""What can go wrong, and when: each fault is for one process, numbered by when it begins to drive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from tests.documents.draw import Draw

Kind = Literal["crash", "write_fails", "takeover", "duplicate", "cancel", "stop", "interrupt"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True)
class Fault:
    """`at` counts the points of the process for `crash` (each of its writes and effects has one before and one after),
    its writes for `write_fails`, and tenths of a second from its beginning for the others.

    `crash` ends the process; `write_fails` is a disk that says no once; `takeover` is a second process that does
    not see the first one's lock, `duplicate` one that does; `cancel` comes from elsewhere; `stop` parks at the
    next boundary; `interrupt` is Ctrl-C.
    """

    process: int
    kind: Kind
    at: int


def draw_faults(draw: Draw) -> tuple[Fault, ...]:
    """A few, most of them crashes: these are what the engine promises to survive unseen."""
    faults = []
    for process in range(draw.below(5)):
        kind: Kind = "crash" if not draw.chance(40) else KINDS[1 + draw.below(len(KINDS) - 1)]
        at = 1 + (draw.below(12) if draw.chance(50) else draw.below(90))
        faults.append(Fault(process, kind, at))
    return tuple(faults)
