"""A case that finds something, made smaller while it still finds the same: fewer faults, a smaller document."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.simulator.case import Case, check

_PARTICULAR = re.compile(r"\S*[/\[\]\d'\"{}]\S*")


def shape(problem: str) -> str:
    """What a problem says, without where."""
    return _PARTICULAR.sub("…", problem)[:80]


def shrunk(
    case: Case,
    problems: Callable[[Case], list[str]] = lambda case: check(case).problems,
    *,
    seconds: float = 60.0,
    now: Callable[[], float] = time.monotonic,
) -> Case:
    """The smallest that was found in that time. `problems` says what a case finds."""
    until = now() + seconds
    wanted = {shape(problem) for problem in problems(case)}

    def finds(smaller: Case) -> bool:
        try:
            return any(shape(problem) in wanted for problem in problems(smaller))
        except Exception:
            return False  # what a list of numbers makes of itself need not be a document that runs

    found = True
    while found and now() < until:
        found = False
        for smaller in _smaller(case):
            if now() >= until:
                break
            if finds(smaller):
                case, found = smaller, True
                break
    return case


def _smaller(case: Case) -> Iterator[Case]:
    """The boldest first."""
    for number in range(len(case.faults)):
        yield replace(case, faults=case.faults[:number] + case.faults[number + 1 :])
    if case.attended:
        yield replace(case, attended=False)
    if case.slow:
        yield replace(case, slow=False)
    choices = case.choices
    size = len(choices)
    while size:
        for at in range(0, len(choices) - size + 1, size):
            if at or size < len(choices):
                yield replace(case, choices=choices[:at] + choices[at + size :])
        size //= 2
    for at, chosen in enumerate(choices):
        if chosen:
            yield replace(case, choices=(*choices[:at], 0, *choices[at + 1 :]))
            yield replace(case, choices=(*choices[:at], chosen // 2, *choices[at + 1 :]))
