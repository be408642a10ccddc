"""Repeat a case with a process that dies at each moment in turn, and compare the ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.diagnostics import Diagnostic
from quire.formats.test import codes
from quire.testing.case_run import Bench, CaseRun
from quire.testing.matchers import same
from quire.testing.results import Problem
from quire.values import encode
from quire.wording import cut

if TYPE_CHECKING:
    from quire.formats.test.syntax import Case
    from quire.testing.observation import Observation

MOST_MOMENTS = 2_000
MOST_PROBLEMS = 3
_COMPARED = ("status", "output", "artifact", "named", "stores", "outputs", "files")


def crash_everywhere(bench: Bench, case: Case, run: CaseRun, whole: Observation) -> list[Problem]:
    """Return the moments at which a death changes the end of a case. `run` is the undisturbed one."""
    problems: list[Problem] = []
    for moment in range(1, min(run.process.moments, MOST_MOMENTS) + 1):
        died = CaseRun(bench, case, dies_at=moment)
        seen = died.play()[-1].observation
        if (difference := _difference(whole, seen)) and not _is_uncertain(seen):
            message = f"after a crash at moment {moment} of {run.process.moments}, {difference}"
            problems.append(Problem(Diagnostic(codes.CRASH_DIFFERS, message, case.span)))
            if len(problems) == MOST_PROBLEMS:
                break
    return problems


def _difference(whole: Observation, seen: Observation) -> str:
    """Say what is different after a crash; empty if nothing is."""
    for name in _COMPARED:
        before, after = getattr(whole, name), getattr(seen, name)
        if not same(before, after):
            said = cut(encode(after), 80)
            return f"{name} is {said}" + (f" ({seen.error['message']})" if seen.error and name == "status" else "")
    made = [call.path for call in whole.calls]
    repeated = [call.path for call in seen.calls]
    twice = [path for path in dict.fromkeys(repeated) if repeated.count(path) > made.count(path) + 1]
    return f"the call {twice[0]} was made {repeated.count(twice[0])} times" if twice else ""


def _is_uncertain(seen: Observation) -> bool:
    """Tell whether the run stopped because `on_uncertain` says so: it is not known whether a call was finished."""
    asks = any(one.path.endswith("/uncertain") and one.answer is None for one in seen.asked)
    return asks or (seen.error is not None and seen.error.get("kind") == "uncertain")
