"""Limit how deep documents may call each other.

Each call waits on Python's stack for the call that it made. A chain that is too long for the stack must fail its step,
and at the same place in every process that replays the run, however much of the stack is in use there.
"""

from __future__ import annotations

from quire.errors import StepFailed
from quire.plan.limits import MAX_LEVELS


def check_nesting(prefix: str, path: str) -> None:
    """Raise `StepFailed` if the steps of a callee, whose paths begin with `prefix`, would be nested too deep."""
    if prefix.count("/") > MAX_LEVELS:
        raise StepFailed("the calls are nested too deep", kind="depth", path=path)
