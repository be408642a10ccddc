"""How often a test repeats itself: a few times under `make test`, many times under `make test-long`."""

from __future__ import annotations

import os

LONG = bool(os.environ.get("QUIRE_LONG"))
"""Whether this is the long version of the suite."""


def depth(short: int, long: int) -> int:
    """The number of random cases, kills or points that a test looks at."""
    return long if LONG else short
