"""A run as its journal has it: walked again without performing anything.

Step states, outputs, prompts and named results are not stored; this is where they come from.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct, field

from quire.engine.driver.journal import Journal, abort_path
from quire.engine.progress import Progress
from quire.engine.pure_work import PURE_WORK, REPLAY_FACTOR, PureWork, replay_exhausted
from quire.engine.records import EffectRecord, Event
from quire.engine.requests import Boundary, Effect, Emit, Fan, Metering, Outcome, Spawn, Walk, WorkCheck
from quire.errors import JournalMismatch, LimitReached, StepFailed

if TYPE_CHECKING:
    from quire.values import Value


class Replay(Struct):
    """What a walk said and asked for, up to where the journal ends.

    `asked` holds every effect that was asked for, by path (its prompt, its arguments); `open` those that have no
    record. `result` is the walk's own when it reached its end. `exhausted` says that it stopped behind the last record
    because it may not compute any further.
    """

    progress: Progress
    asked: dict[str, Effect] = field(default_factory=dict)
    open: list[Effect] = field(default_factory=list)
    finished: bool = False
    result: Value = None
    failure: StepFailed | None = None
    exhausted: str = ""


Rests: TypeAlias = Callable[[Boundary], bool]
Begin: TypeAlias = Callable[[PureWork], Walk]
"""Starts the walk of a run, which counts its pure work there."""


class _Blocked(Exception):
    """The journal has nothing further for this branch."""


async def replay(
    begin: Begin,
    records: Iterable[EffectRecord],
    progress: Progress,
    rests: Rests,
    *,
    pure_work: int = PURE_WORK,
    journal: Journal | None = None,
) -> Replay:
    """`rests` says whether the run stands at a boundary that has no record. The event loop gets its turn meanwhile.
    A `journal` stands in for the records.

    Raises `LimitReached` where it takes far more pure work than `pure_work` allows to come to what is recorded."""
    journal = Journal(records) if journal is None else journal
    following = _Following(journal, Replay(progress), rests, pure_work)
    replayed = following.replayed
    try:
        replayed.result = await following.follow(begin(journal.work))
        replayed.finished = True
    except _Blocked:
        pass
    except StepFailed as error:
        replayed.failure = error
    return replayed


async def to_perform_again(
    begin: Begin, records: Iterable[EffectRecord], *, pure_work: int = PURE_WORK
) -> tuple[str, ...]:
    """The effects that would end the run at once if their records were kept: what a resume has to perform again.

    The row names those that the last drive saw. This finds the others too: of branches that failed at the same
    moment, or while the run was being stopped.
    """
    kept = {record.path: record for record in records}
    gone: dict[str, None] = {}
    while True:
        try:
            again = await replay(begin, kept.values(), Progress({}), lambda boundary: False, pure_work=pure_work)
            failure = again.failure
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
    paths = dict.fromkeys(known)
    found: dict[str, None] = {}
    for one in blamed:
        if one.endswith("*"):
            found.update((path, None) for path in paths if path.startswith(one[:-1]))
        elif one in paths:
            found[one] = None
    return list(found)


class _Following(Struct):
    """One replay under way. `most` are the units of pure work that it may take."""

    journal: Journal
    replayed: Replay
    rests: Rests
    most: int

    async def follow(self, walk: Walk) -> Value:
        answer: Any = None
        error: StepFailed | None = None
        try:
            while True:
                request = walk.send(answer) if error is None else walk.throw(error)
                answer = error = None
                if isinstance(request, Emit):
                    self.replayed.progress.apply(
                        Event(request.type, "", 0.0, 0, request.path, request.label, request.data, request.live, True)
                    )
                    continue
                try:
                    if isinstance(request, Fan | Metering | Spawn | WorkCheck):
                        answer = await self._answer(request)
                    else:
                        answer = self._recorded(request)
                except StepFailed as failed:
                    error = failed
        except StopIteration as stop:
            result: Value = stop.value
            return result
        finally:
            walk.close()

    async def _answer(self, request: Fan | Metering | Spawn | WorkCheck) -> Any:
        match request:
            case Fan():
                return await self._fan(request)
            case Metering():
                return self.journal.metered(request)
            case Spawn():
                # How it ended, the parent learns from the record of its `Join`.
                with contextlib.suppress(_Blocked, StepFailed):
                    await self.follow(request.child)
                return None
            case WorkCheck():
                return await self._check_work(request)

    async def _check_work(self, request: WorkCheck) -> None:
        record = self.journal.find(request)
        if record is not None and record.failure is not None:
            raise record.failure.raised(request.path)
        if request.work.used > self.most and not self.journal.holds_more():
            self.replayed.exhausted = replay_exhausted(self.most)
            raise _Blocked
        if request.work.used > self.most * REPLAY_FACTOR:
            raise LimitReached(replay_exhausted(self.most))
        request.work.allow()
        await asyncio.sleep(0)

    def _recorded(self, request: Effect) -> Value:
        self.journal.claim(request.path)
        self.replayed.asked[request.path] = request
        record = self.journal.find(request)
        if record is not None and record.state == "ok":
            return record.value
        if record is not None and record.failure is not None:
            raise record.failure.raised(request.path)
        if isinstance(request, Boundary) and not self.rests(request):
            return {}
        self.replayed.open.append(request)
        raise _Blocked

    async def _fan(self, fan: Fan) -> list[Outcome]:
        outcomes: list[Outcome] = []
        failures: dict[int, StepFailed] = {}
        blocked = False
        ended_by = self.journal.ended_by(fan) if fan.stop_on_first_failure else None
        open_before = len(self.replayed.open)
        for number, child in enumerate(fan.children):
            try:
                outcomes.append(Outcome(await self.follow(child)))
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
            del self.replayed.open[open_before:]  # cut off: nobody will perform it
        if failures:
            first = failures.pop(min(failures) if ended_by is None else ended_by)
            for other in failures.values():
                first.also += (other.path, *other.also)
            first.also += (abort_path(fan),)
            raise first
        if blocked:
            raise _Blocked
        return outcomes
