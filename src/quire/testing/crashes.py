"""Repeat a case with a process that dies at each moment in turn, and compare the ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
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
    from quire.plan.nodes import Plan
    from quire.testing.observation import Observation
    from quire.values import Value

MOST_MOMENTS = 2_000
MOST_PROBLEMS = 3
_COMPARED = ("status", "output", "artifact", "named", "stores", "outputs", "files")


def crash_everywhere(bench: Bench, case: Case, run: CaseRun, whole: Observation) -> list[Problem]:
    """Return the moments at which a death changes the end of a case. `run` is the undisturbed one."""
    problems: list[Problem] = []
    plan = bench.document.runnable()
    for moment in range(1, min(run.process.moments, MOST_MOMENTS) + 1):
        died = CaseRun(bench, case, dies_at=moment)
        seen = died.play()[-1].observation
        if (difference := _difference(whole, seen, plan)) and not _is_uncertain(seen):
            message = f"after a crash at moment {moment} of {run.process.moments}, {difference}"
            problems.append(Problem(Diagnostic(codes.CRASH_DIFFERS, message, case.span)))
            if len(problems) == MOST_PROBLEMS:
                break
    return problems


def _difference(whole: Observation, seen: Observation, plan: Plan) -> str:
    """Say what is different after a crash; empty if nothing is."""
    made, repeated = Counter(call.path for call in whole.calls), Counter(call.path for call in seen.calls)
    again = {call.way for call in seen.calls if repeated[call.path] > made[call.path]}
    # A call that is made again may have another result: a file that it has written exists by then.
    left_out = {step.capture.name for _, step in plan.steps() if step.capture is not None and step.label in again}
    for name in _COMPARED:
        before, after = getattr(whole, name), getattr(seen, name)
        if same(before, after):
            continue
        if not isinstance(before, Mapping) or not isinstance(after, Mapping) or name == "output":
            why = f" ({seen.error['message']})" if seen.error and name == "status" else ""
            return f"{name} is {_shown(after)}, not {_shown(before)}{why}"
        for key in dict.fromkeys([*before, *after]):
            if key not in left_out and not same(before.get(key), after.get(key)):
                return f"{name}.{key} is {_shown(after.get(key))}, not {_shown(before.get(key))}"
    twice = next((path for path, times in repeated.items() if times > made[path] + 1), None)
    return f"the call {twice} was made {repeated[twice]} times" if twice else ""


def _shown(value: Value) -> str:
    return cut(encode(value), 80)


def _is_uncertain(seen: Observation) -> bool:
    """Tell whether the run stopped because `on_uncertain` says so: it is not known whether a call was finished."""
    asks = any(one.path.endswith("/uncertain") and one.answer is None for one in seen.asked)
    return asks or (seen.error is not None and seen.error.get("kind") == "uncertain")
