"""When a process is killed: after a random time, or just when something happens on the disk.

A commit takes a fraction of a millisecond, so a random moment seldom falls into one. A killer that watches the log of
the database strikes in the middle of them.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.chaos.workspace import Place


@dataclass(frozen=True, slots=True)
class Kill:
    """`count` changes of a file are waited for, then `delay` seconds; for `time` the delay is all."""

    by: Literal["time", "tool", "commit"]
    delay: float
    count: int = 0
    cold: bool = False

    def trigger(self, place: Place) -> Callable[[float], bool]:
        if self.by == "time":
            return lambda elapsed: elapsed >= self.delay
        file = place.folder / place.story.ledger if self.by == "tool" else place.log
        last, left, strike = _stamp(file), self.count, math.inf

        def now(elapsed: float) -> bool:
            nonlocal last, left, strike
            stamp = _stamp(file)
            if stamp != last:
                last = stamp
                left -= 1
                if left == 0:
                    strike = elapsed + self.delay
            return elapsed >= strike

        return now


def draw_kill(draw: random.Random, place: Place, typical: float, cold_share: float) -> Kill:
    """`typical` is how long such a process takes when it is left alone."""
    if draw.random() < cold_share:
        return Kill("time", draw.uniform(0.02, 1.2), cold=True)
    how = draw.random()
    if how < 0.45:
        return Kill("time", draw.uniform(0.0, typical))
    if how < 0.65:
        return Kill("tool", draw.choice((0.0, draw.uniform(0.0, 0.008))), draw.randint(1, 3))
    if place.url:
        return Kill("time", draw.uniform(0.0, typical))
    return Kill("commit", draw.choice((0.0, draw.uniform(0.0, 0.001))), draw.randint(1, 9))


def _stamp(file: Path) -> tuple[int, int]:
    try:
        found = file.stat()
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size
