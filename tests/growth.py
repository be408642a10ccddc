"""How the time of some work grows with its size, in processor time of this process.

One measurement of each size is enough where all is well. Only one that looks bad is repeated, since other processes and
the garbage collector disturb it.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

TRIES = 4


def assert_linear(
    prepare: Callable[[int], Callable[[], object]], size: int, *, slack: float = 3.2, quick: float = 0.05
) -> None:
    """Fails where twice the size takes more than `slack` times the time: a square gives 4, what is linear gives 2.

    `prepare` makes the work of a size, and is not measured. `quick` are seconds below which the smaller of two sizes
    says nothing.
    """
    small, large = prepare(size), prepare(2 * size)
    once = twice = 1000.0
    for _ in range(TRIES):
        once, twice = min(once, _seconds(small)), min(twice, _seconds(large))
        if twice < max(once, quick) * slack:
            return
    raise AssertionError(f"{twice:.3f} s for a size of {2 * size}, {once:.3f} s for the half of it")


def _seconds(work: Callable[[], object]) -> float:
    # The garbage collector looks at all that is alive, again and again: that is its time, not that of the work.
    gc.disable()
    try:
        started = time.process_time()
        work()
        return time.process_time() - started
    finally:
        gc.enable()
