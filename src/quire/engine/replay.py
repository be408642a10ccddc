"""A run as its journal has it: walked again without performing anything.

Step states, outputs, prompts and named results are not stored; this is where they come from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from quire.engine.journal import Journal
from quire.engine.progress import Progress
from quire.engine.records import EffectRecord, Event
from quire.engine.requests import Boundary, Effect, Emit, Fan, Outcome, Walk
from quire.errors import StepFailed
from quire.values import Value


@dataclass
class Replay:
    """What a walk said and asked for, up to where the journal ends.

    `asked` holds every effect that was asked for, by path (its prompt, its arguments); `open` those that have no
    record. `result` is the walk's own when it reached its end.
    """

    progress: Progress
    asked: dict[str, Effect] = field(default_factory=dict)
    open: list[Effect] = field(default_factory=list)
    finished: bool = False
    result: Value = None
    failure: StepFailed | None = None


Rests: TypeAlias = Callable[[Boundary], bool]


class _Blocked(Exception):
    """The journal has nothing further for this branch."""


def replay(walk: Walk, records: Iterable[EffectRecord], progress: Progress, rests: Rests) -> Replay:
    """`rests` says whether the run stands at a boundary that has no record."""
    replayed = Replay(progress)
    journal = Journal(records)
    try:
        replayed.result = _follow(walk, journal, replayed, rests)
        replayed.finished = True
    except _Blocked:
        pass
    except StepFailed as error:
        replayed.failure = error
    return replayed


def _follow(walk: Walk, journal: Journal, replayed: Replay, rests: Rests) -> Value:
    answer: Any = None
    error: StepFailed | None = None
    try:
        while True:
            request = walk.send(answer) if error is None else walk.throw(error)
            answer = error = None
            if isinstance(request, Emit):
                replayed.progress.apply(
                    Event(request.type, "", 0.0, 0, request.path, request.label, request.data, request.live, True)
                )
            elif isinstance(request, Fan):
                answer = _follow_fan(request, journal, replayed, rests)
            else:
                try:
                    answer = _recorded(request, journal, replayed, rests)
                except StepFailed as failed:
                    error = failed
    except StopIteration as stop:
        result: Value = stop.value
        return result
    finally:
        walk.close()


def _recorded(request: Effect, journal: Journal, replayed: Replay, rests: Rests) -> Value:
    journal.claim(request.path)
    replayed.asked[request.path] = request
    record = journal.find(request)
    if record is not None and record.state == "ok":
        return record.value
    if record is not None and record.failure is not None:
        raise record.failure.raised(request.path)
    if isinstance(request, Boundary) and not rests(request):
        return {}
    replayed.open.append(request)
    raise _Blocked


def _follow_fan(fan: Fan, journal: Journal, replayed: Replay, rests: Rests) -> list[Outcome]:
    outcomes: list[Outcome] = []
    blocked = False
    for child in fan.children:
        try:
            outcomes.append(Outcome(_follow(child, journal, replayed, rests)))
        except StepFailed as error:
            if fan.stop_on_first_failure:
                raise
            outcomes.append(Outcome(failure=error))
        except _Blocked:
            blocked = True
    if blocked:
        raise _Blocked
    return outcomes
