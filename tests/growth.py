"""How the time of some work grows with its size, and whether it is far too long, in processor time of this process.

Both are ratios: of one size to another, or of the work to a fixed piece of work that is done beside it. No limit is a
number of seconds that a slower or busier machine would not keep. One measurement is enough where all is well. Only one
that looks bad is repeated, since other processes and the garbage collector disturb it.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

TRIES = 4

PIECES = 1_000_000
PIECES_A_SECOND = 15_000_000
"""How many turns of an empty-handed loop an idle machine does in a second: the machine that limits were written on."""

SLACK = 3
"""A machine that is slower at everything is not slower at everything alike."""


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


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Fails where the body takes far more processor time than so many seconds of an idle machine.

    That is for work that takes minutes when it goes wrong: a square, an exponent, a limit that is not looked at.
    """
    started = time.process_time()
    yield
    used = time.process_time() - started
    if used > seconds:
        pace = max(1.0, _seconds(_fixed_work) * PIECES_A_SECOND / PIECES)
        limit = seconds * pace * SLACK
        assert used <= limit, (
            f"{used:.2f} s of processor time, {limit:.2f} at most on a machine as slow as this one now"
        )


def _fixed_work() -> None:
    total = 0
    for number in range(PIECES):
        total += number & 7
