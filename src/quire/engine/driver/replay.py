"""Replay a run from its journal without performing anything, and find the records that still fit another document.

Step states, outputs, prompts and named results are not stored; a replay computes them.

In another document, a record is kept if the request at its path is the same. A branch stops at the first record that
does not fit, so everything after it is performed again; concurrent branches keep their own records.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct, field

from quire.engine.driver.journal import SPENT, Journal, abort_path
from quire.engine.events import replayed_event
from quire.engine.interpreter.until import StepReached
from quire.engine.premises import PURE_WORK, REPLAY_FACTOR, PureWork, replay_exhausted
from quire.engine.progress import Progress
from quire.engine.requests import Boundary, Effect, Emit, Fan, Metering, Outcome, Spawn, Walk, WorkCheck
from quire.errors import JournalMismatch, LimitReached, StepFailed

if TYPE_CHECKING:
    from quire.engine.records import EffectRecord
    from quire.engine.requests import Recorded
    from quire.values import Value


class Replay(Struct):
    """Events and requests of a walk, up to the end of the journal."""

    progress: Progress
    asked: dict[str, Effect] = field(default_factory=dict)
    """Every requested effect by path, with its prompt or arguments."""
    open: list[Effect] = field(default_factory=list)
    """Requested effects that have no record."""
    finished: bool = False
    result: Value = None
    """The result of the walk, if it reached its end."""
    failure: StepFailed | None = None
    exhausted: str = ""
    """Says that the walk stopped after the last record because it used up its pure work."""


Rests: TypeAlias = Callable[[Boundary], bool]
Begin: TypeAlias = Callable[[PureWork], Walk]
"""Starts the walk of a run, which counts its pure work in the given counter."""


class _Blocked(Exception):
    """The journal has no further records for this branch."""


async def replay(
    begin: Begin,
    records: Iterable[EffectRecord],
    progress: Progress,
    rests: Rests,
    *,
    pure_work: int = PURE_WORK,
    journal: Journal | None = None,
) -> Replay:
    """Walk a run again from its records. The event loop gets its turn meanwhile.

    `rests` tells whether the run has stopped at a boundary that has no record. `journal` is used in place of `records`
    if given. Raises `LimitReached` if reaching the recorded effects takes far more pure work than `pure_work` allows.
    """
    journal = Journal(records) if journal is None else journal
    following = _Following(journal, Replay(progress), rests, pure_work)
    replayed = following.replayed
    try:
        replayed.result = await following.follow(begin(journal.work))
        replayed.finished = True
    except _Blocked:
        pass
    except StepReached as reached:
        replayed.finished, replayed.failure = reached.failure is None, reached.failure
        replayed.result = reached.result if replayed.finished else None
    except StepFailed as error:
        replayed.failure = error
    return replayed


async def to_perform_again(
    begin: Begin, records: Iterable[EffectRecord], *, pure_work: int = PURE_WORK
) -> tuple[str, ...]:
    """Return the effects that would end the run at once if their records were kept: a resume has to perform them again.

    The row names those that the last drive saw. This also finds the others: effects of branches that failed at the same
    moment, or while the run was being stopped.
    """
    left = {record.path: record for record in records}
    gone: dict[str, None] = {}
    while True:
        try:
            again = await replay(begin, left.values(), Progress({}), lambda boundary: False, pure_work=pure_work)
            failure = again.failure
        except JournalMismatch:
            failure = None
        blamed = expanded((failure.path, *failure.also), left) if failure else []
        if not blamed:
            return tuple(gone)
        for path in blamed:
            left.pop(path, None)
            gone[path] = None


def expanded(blamed: Iterable[str], recorded: Iterable[str]) -> list[str]:
    """Return the recorded paths that are blamed; a path that ends in `*` stands for all paths with that prefix, except
    what launched runs have spent, which is counted once."""
    paths = dict.fromkeys(recorded)
    effects: dict[str, None] = {}
    for path in blamed:
        if path.endswith("*"):
            effects.update((at, None) for at in paths if at.startswith(path[:-1]) and f"/{SPENT}[" not in at)
        elif path in paths:
            effects[path] = None
    return list(effects)


class _Following(Struct):
    """A running replay. `most` is the number of units of pure work that it may use."""

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
                    self.replayed.progress.apply(replayed_event(request))
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
                # The parent learns from the record of its `Join` how the child ended.
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
            del self.replayed.open[open_before:]  # cut off: these will not be performed
        if failures:
            first = failures.pop(min(failures) if ended_by is None else ended_by)
            for other in failures.values():
                first.also += (other.path, *other.also)
            first.also += (abort_path(fan),)
            raise first
        if blocked:
            raise _Blocked
        return outcomes


class Refit(Struct, frozen=True):
    """The result of walking another document with an old journal."""

    kept: tuple[EffectRecord, ...]
    misfit: Recorded | None
    """The first request for which a different one was recorded, or None."""
    next: Effect | None
    """The first request without a record, where the walk continues; None if there is none."""


class _Fitting(Journal):
    """A journal in which a record of another request counts as missing."""

    def __init__(self, records: Iterable[EffectRecord]) -> None:
        super().__init__(records)
        self.used: set[str] = set()
        self.misfit: Recorded | None = None

    def find(self, request: Recorded) -> EffectRecord | None:
        try:
            record = super().find(request)
        except JournalMismatch:
            self.misfit = self.misfit or request
            self._records.pop(request.path, None)
            return None
        if record is not None:
            self.used.add(record.path)
        return record

    def ended_by(self, fan: Fan) -> int | None:
        number = super().ended_by(fan)
        if number is not None:
            self.used.add(abort_path(fan))
        return number


async def refit(begin: Begin, records: Iterable[EffectRecord], *, pure_work: int = PURE_WORK) -> Refit:
    """Walk a new document, started by `begin`, with old records. Raises `LimitReached` as a replay does.

    A thread's usage is read from the journal as a whole, so the document is walked again until no more records are
    dropped.
    """
    left = {record.path: record for record in records}
    misfit: Recorded | None = None
    while True:
        journal = _Fitting(left.values())
        try:
            again = await replay(begin, (), Progress({}), lambda boundary: False, pure_work=pure_work, journal=journal)
        except JournalMismatch as error:
            # A fan was ended by a child that no longer fails.
            del left[error.path]
            continue
        misfit = misfit or journal.misfit
        dropped = left.keys() - journal.used
        if not dropped:
            dropped = set(await to_perform_again(begin, left.values(), pure_work=pure_work))
        if not dropped:
            return Refit(tuple(left.values()), misfit, again.open[0] if again.open else None)
        left = {path: record for path, record in left.items() if path not in dropped}
