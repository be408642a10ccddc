"""A run as its journal has it: walked again without performing anything.

Step states, outputs, prompts and named results are not stored; this is where they come from.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from quire.engine.journal import Journal, abort_path
from quire.engine.progress import Progress
from quire.engine.records import EffectRecord, Event
from quire.engine.requests import Boundary, Effect, Emit, Fan, Metering, Outcome, Spawn, Walk
from quire.errors import JournalMismatch, StepFailed
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


def to_perform_again(begin: Callable[[], Walk], records: Iterable[EffectRecord]) -> tuple[str, ...]:
    """The effects that would end the run at once if their records were kept: what a resume has to perform again.

    The row names those that the last drive saw. This finds the others too: of branches that failed at the same
    moment, or while the run was being stopped.
    """
    kept = {record.path: record for record in records}
    gone: dict[str, None] = {}
    while True:
        try:
            failure = replay(begin(), kept.values(), Progress({}), lambda boundary: False).failure
        except JournalMismatch:
            failure = None
        blamed = expanded((failure.path, *failure.also), kept) if failure else []
        if not blamed:
            return tuple(gone)
        for path in blamed:
            kept.pop(path, None)
            gone[path] = None


def expanded(blamed: Iterable[str], known: Iterable[str]) -> list[str]:
    """The recorded paths that are to blame: one that ends in `*` stands for all that begin so."""
    paths = list(known)
    found: dict[str, None] = {}
    for one in blamed:
        if one.endswith("*"):
            found.update((path, None) for path in paths if path.startswith(one[:-1]))
        elif one in paths:
            found[one] = None
    return list(found)


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
                continue
            try:
                if isinstance(request, Fan):
                    answer = _follow_fan(request, journal, replayed, rests)
                elif isinstance(request, Metering):
                    answer = journal.metered(request)
                elif isinstance(request, Spawn):
                    # How it ended, the parent learns from the record of its `Join`.
                    with contextlib.suppress(_Blocked, StepFailed):
                        _follow(request.child, journal, replayed, rests)
                else:
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
    failures: dict[int, StepFailed] = {}
    blocked = False
    ended_by = journal.ended_by(fan) if fan.stop_on_first_failure else None
    open_before = len(replayed.open)
    for number, child in enumerate(fan.children):
        try:
            outcomes.append(Outcome(_follow(child, journal, replayed, rests)))
        except StepFailed as error:
            if fan.stop_on_first_failure:
                failures[number] = error
            else:
                outcomes.append(Outcome(failure=error))
        except _Blocked:
            blocked = True
    if ended_by is not None:
        if ended_by not in failures:
            raise JournalMismatch(abort_path(fan))
        del replayed.open[open_before:]  # cut off: nobody will perform it
    if failures:
        first = failures.pop(min(failures) if ended_by is None else ended_by)
        for other in failures.values():
            first.also += (other.path, *other.also)
        first.also += (abort_path(fan),)
        raise first
    if blocked:
        raise _Blocked
    return outcomes
