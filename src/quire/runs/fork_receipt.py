"""The receipt of a fork: the effects that it keeps, the steps that it does again, and the most that it may still do."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from quire.library.foresight import Foresight
from quire.plan.bounds import PlanBounds, Range, rest_of
from quire.plan.thread import THREAD_PATH
from quire.runs.fork import Changes, Place, PreparedFork, find_place, prepare_fork

if TYPE_CHECKING:
    from quire.engine.records import EffectRecord
    from quire.runs.runtime import Runtime
    from quire.runs.view import RunView
    from quire.workspace.settings import Settings

_TURN = re.compile(rf"{THREAD_PATH}/turn\[(\d+)\]")
UNREACHED = ("pending", "skipped")


class ForkStep(Struct, frozen=True):
    """A step at which a run can be forked. `reached` tells whether the run has begun it."""

    path: str
    label: str
    title: str
    status: str
    reached: bool
    settable: bool
    """True if values can be set for it."""
    first: bool
    """True for the first step of all: the values that can be set for it are the inputs."""


class Receipt(Struct, frozen=True):
    """The consequences of a fork."""

    fork: PreparedFork
    cost: float | None
    """The price of the effects that are kept; None if that of one is not known."""
    again: Sequence[ForkStep]
    """The steps that the run has done and the fork does again."""
    later: int
    """The number of steps after those, some of which may be skipped."""
    bounds: PlanBounds


def fork_steps(view: RunView) -> list[ForkStep]:
    """Return the steps at which a run can be forked, in the order of the document."""
    plan = view.document.runnable()
    if plan.thread:
        turns = sorted({int(found[1]) for one in view.effects if (found := _TURN.match(one.path))} | {1})
        status = str(view.row.status)
        return [
            ForkStep(f"{THREAD_PATH}/turn[{turn}]", f"turn {turn}", "", status, True, True, turn == 1) for turn in turns
        ]
    known = view.replay.progress.steps
    steps: list[ForkStep] = []
    for path, step in plan.stops().items():
        place = find_place(plan, path)
        status = known[path].status if path in known else "pending"
        settable = place.first or place.before is not None
        reached = place.first or status not in (UNREACHED if "/case[" in path else UNREACHED[:1])
        steps.append(ForkStep(path, step.label, step.title, status, reached, settable, place.first))
    return steps


async def receipt(runtime: Runtime, run: str, step: str, changes: Changes) -> Receipt:
    """Check a fork and tell what it would do; nothing is stored. Raises what `prepare_fork` raises."""
    prepared = await prepare_fork(runtime, run, step, changes)
    again, later = _steps(prepared.origin, prepared.place)
    costs = [one.usage.cost for one in prepared.kept if one.usage]
    known = [cost for cost in costs if cost is not None]
    cost = sum(known) if len(known) == len(costs) else None
    return Receipt(prepared, cost, again, later, _bounds(prepared, runtime.settings))


def _steps(view: RunView, place: Place) -> tuple[list[ForkStep], int]:
    steps = fork_steps(view)
    at = next((at for at, one in enumerate(steps) if one.path == place.path), len(steps))
    rest = steps[at:]
    again = [one for one in rest if one.status not in UNREACHED]
    return again, len(rest) - len(again)


def _bounds(fork: PreparedFork, settings: Settings) -> PlanBounds:
    """Return the bounds of the rest of the run. Those of a directive are the turns that it has left."""
    plan = fork.origin.document.runnable()
    foresight = Foresight(settings)
    if plan.thread:
        whole = foresight.bounds(plan)
        limit = fork.origin.thread.limits.as_value().get("turns") if fork.origin.thread else None
        most = limit if isinstance(limit, int) else whole.model_calls.most
        done = len(_turns(fork.kept))
        return replace(whole, model_calls=Range(1, None if most is None else max(1, most - done)))
    body = rest_of(plan.body, fork.place.path)
    # Steps before the fork may have written any name, also that of an input; nothing is known of those values.
    inputs = {name: value for name, value in fork.pins.inputs.items() if name not in plan.written}
    return foresight.bounds(replace(plan, body=body, declared=None), inputs=inputs, is_rest=True)


def _turns(kept: Sequence[EffectRecord]) -> set[str]:
    return {found[1] for one in kept if (found := _TURN.match(one.path))}
