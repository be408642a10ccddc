"""Walk an edited document with the records of a stored run, without performing anything.

A record answers the request at its own path, if that is still the same request. Where steps were inserted, removed or
moved, a record answers the same request at another path. A question to a person keeps its answer if only its words
changed. A branch of the walk stops at the first request that no record answers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from quire.engine.driver.journal import UNCLAIMED, Journal, abort_path, answers
from quire.engine.driver.replay import Begin, Replay, replay
from quire.engine.interpreter.playbook.steps import WrongAnswer, checked_answer
from quire.engine.premises import PURE_WORK
from quire.engine.records import EffectRecord, has_shape
from quire.engine.request_hashes import KINDS, hashed_request
from quire.engine.requests import Boundary, Failure, Halt, HumanRequest, Join, Load, ModelRequest, WorkCheck
from quire.errors import JournalMismatch

if TYPE_CHECKING:
    from quire.engine.progress import Progress
    from quire.engine.requests import Effect, Fan, Recorded

ReadText: TypeAlias = Callable[[Load], EffectRecord | None]
"""Loads a text that is at hand, as it is now; None if only a record can tell it."""

_ALIKE = 0.3
"""Questions of one step that share less than this part of their words are different questions."""


class Recording(Struct, frozen=True):
    """A stored run as a source of answers: its records, and the requests that they answered, in order."""

    records: Sequence[EffectRecord]
    asked: Mapping[str, Effect]
    stops: frozenset[str] = frozenset()
    """The labels of the steps after which the run has been paused, and stands still."""
    steps: Mapping[str, str] = field(default_factory=dict)
    """The old paths of steps that are known to be the same, by their paths now."""

    @classmethod
    def of(cls, replayed: Replay, records: Sequence[EffectRecord], steps: Mapping[str, str] | None = None) -> Recording:
        """Return the recording of a run that was replayed with these records."""
        stops = frozenset(request.label for request in replayed.open if isinstance(request, Boundary))
        return cls(records, replayed.asked, stops, steps or {})


class ShadowJournal(Journal):
    """The records of a stored run, each of which answers one request of another walk."""

    def __init__(self, recording: Recording, read: ReadText, dropped: Iterable[str] = ()) -> None:
        gone = frozenset(dropped)
        super().__init__(record for record in recording.records if record.kind == "work")
        self._old = recording
        self._read = read
        self._left = {
            record.path: record
            for record in recording.records
            if record.state != "intent" and record.kind not in ("terms", "work", "spent") and has_shape(record)
            if record.path not in gone
        }
        self._by_content: dict[tuple[str, str], deque[str]] = {}
        for path in dict.fromkeys((*recording.asked, *self._left)):
            if (record := self._left.get(path)) is not None:
                self._by_content.setdefault((record.kind, record.request), deque()).append(path)
        self._unanswered: dict[str, list[str]] = {}
        recorded = {record.path for record in recording.records}
        for path, request in recording.asked.items():
            if path not in recorded and not isinstance(request, Boundary):
                self._unanswered.setdefault(hashed_request(request)[0], []).append(path)
        self._moved: dict[str, str] = dict(recording.steps)
        self.taken: dict[str, str] = {}
        """The old path of each record that was used, by its path now."""
        self.waits: set[str] = set()
        """Paths of requests that the stored run made as well, and that it has no answer to either."""
        self.reworded: dict[str, str] = {}
        """Questions that kept their answer in other words: their path now, and their old path."""

    @property
    def left(self) -> list[str]:
        """The old paths of effects that were not requested, in their order."""
        return [path for path in self._old.asked if path in self._left]

    def find(self, request: Recorded) -> EffectRecord | None:
        if isinstance(request, WorkCheck):
            return super().find(request)
        digest, characters = hashed_request(request)
        self.work.add_text(characters)
        record = self._read(request) if isinstance(request, Load) else None
        old = self._source(request, digest)
        if record is None and old is not None:
            record = self._limited(request, old, digest) or replace(self._left[old], path=request.path)
        if record is None:
            return self._without_record(request, digest)
        if old is not None:
            self._take(request.path, old)
        self._records[request.path] = record
        return record

    def _without_record(self, request: Effect, digest: str) -> EffectRecord | None:
        if isinstance(request, Boundary):
            if request.label in self._old.stops:
                self.waits.add(request.path)
        elif waiting := self._unanswered.get(digest):
            self.waits.add(request.path)
            self._follow_move(request.path, waiting.pop(0))
        if isinstance(request, Halt):  # nothing is under way in a replay
            return EffectRecord(request.path, "halt", "ok", digest, 0.0, [])
        return None

    def holds_more(self) -> bool:
        return any(record.kind not in UNCLAIMED for record in self._left.values())

    def ended_by(self, fan: Fan) -> int | None:
        for path in self.places(abort_path(fan)):
            record = self._left.get(path)
            if record is not None and record.kind == "abort" and isinstance(record.value, int):
                self._take(abort_path(fan), path)
                self._records[abort_path(fan)] = replace(record, path=abort_path(fan))
                return record.value
        return None

    def places(self, path: str) -> Iterator[str]:
        """Yield the old paths that a path may stand for: where its step was, if it moved, and the path itself."""
        moved = self._moved_to(path)
        if moved is not None:
            yield moved
        yield path

    def _moved_to(self, path: str) -> str | None:
        above = path
        while above:
            if above in self._moved:
                return self._moved[above] + path[len(above) :]
            above = above.rpartition("/")[0]
        return None

    def _source(self, request: Effect, digest: str) -> str | None:
        """Return the old path of the record that answers a request."""
        if isinstance(request, Boundary):
            return self._same_stop(request, digest)
        places = list(self.places(request.path))
        if isinstance(request, ModelRequest) and request.known:
            # The hash leaves out what the thread has said before, so only the same thread can answer.
            return places[0] if self._fits(request, digest, places[0]) else None
        for path in places:
            if self._fits(request, digest, path):
                return path
        waiting = self._by_content.get((KINDS[type(request)], digest), ())
        elsewhere = next((path for path in waiting if path in self._left), None)
        if elsewhere is not None or not isinstance(request, HumanRequest):
            return elsewhere
        return self._same_question(request)

    def _fits(self, request: Effect, digest: str, path: str) -> bool:
        record = self._left.get(path)
        if record is None or record.kind != KINDS[type(request)]:
            return False
        if isinstance(request, Join):
            return self._same_join(request, record, self._old.asked.get(path))
        return answers(record, request, digest)

    def _same_stop(self, request: Boundary, digest: str) -> str | None:
        """Return the old path of the end of the same step. Its hash is that of a label, which other steps may have."""
        path = self._moved_to(request.path)
        if path is None:
            stands_elsewhere = request.path.partition("/")[0] in self._old.steps.values()
            return request.path if not stands_elsewhere and self._fits(request, digest, request.path) else None
        record = self._left.get(path)
        return path if record is not None and record.kind == "break" else None

    def _same_join(self, request: Join, record: EffectRecord, before: Effect | None) -> bool:
        """Tell whether a record holds the ends of the same children. How long to wait for them may have changed, if
        all of them had ended."""
        children = tuple(self._moved_to(child) or child for child in request.children)
        if not isinstance(before, Join) or before.children != children:
            return False
        states = record.value if isinstance(record.value, list | tuple) else []
        running = any(isinstance(state, Mapping) and state.get("state") == "running" for state in states)
        return before.seconds == request.seconds or (record.state == "ok" and not running)

    def _same_question(self, request: HumanRequest) -> str | None:
        """Return the old path of a question of the same step whose words have changed, and whose answer still fits."""
        if "/turn[" in request.path:  # a model asks what it likes, turn by turn
            return None
        candidates = dict.fromkeys((*self.places(request.path), *self._old.asked))
        for path in candidates:
            record, before = self._left.get(path), self._old.asked.get(path)
            if record is None or record.state != "ok" or not isinstance(before, HumanRequest):
                continue
            same_step = (before.label, before.kind) == (request.label, request.kind) and _is_alike(before, request)
            if same_step and _still_fits(request, record):
                self.reworded[request.path] = path
                return path
        return None

    def _limited(self, request: Effect, old: str, digest: str) -> EffectRecord | None:
        """Return the refusal of a call that the limits of the edited document do not allow any more."""
        if not isinstance(request, ModelRequest) or request.bounds is None or request.bounds.reached is None:
            return None
        before = self._old.asked.get(old)
        if isinstance(before, ModelRequest) and before.bounds is not None and before.bounds.reached is not None:
            return None
        code, message = request.bounds.reached
        return EffectRecord(request.path, "model", "failed", digest, 0.0, failure=Failure(code, message))

    def _take(self, path: str, old: str) -> None:
        del self._left[old]
        self.taken[path] = old
        self._follow_move(path, old)

    def _follow_move(self, path: str, old: str) -> None:
        """Remember where the step of an effect was."""
        if path != old and self._moved_to(path) != old:
            step, before = _steps_of(path, old)
            if step and before:
                self._moved[step] = before


def _still_fits(request: HumanRequest, record: EffectRecord) -> bool:
    """Tell whether a recorded answer is one that the question takes."""
    if record.state != "ok":
        return True
    try:
        checked_answer(request.kind, request.options, str(record.value))
    except WrongAnswer:
        return False
    return True


def _is_alike(request: HumanRequest, other: HumanRequest) -> bool:
    if request.title and request.title == other.title:
        return True
    words, others = set(request.prompt.lower().split()), set(other.prompt.lower().split())
    return len(words & others) >= _ALIKE * max(len(words), len(others), 1)


def _steps_of(path: str, old: str) -> tuple[str, str]:
    """Return both paths without the segments at their end that name the same effect of a step."""
    now, then = path.split("/"), old.split("/")
    while now and then and now[-1] == then[-1] and not now[-1].isdecimal():
        now.pop()
        then.pop()
    return "/".join(now), "/".join(then)


class InPlaceJournal(Journal):
    """The journal of a run in which one reply is another. Later calls of models and questions, whose texts it changes,
    keep the answers that they had; all other requests have to be the same."""

    def __init__(self, records: Iterable[EffectRecord], reply: EffectRecord) -> None:
        super().__init__(records)
        self._records[reply.path] = reply

    def find(self, request: Recorded) -> EffectRecord | None:
        record = self._records.get(request.path)
        if isinstance(request, ModelRequest | HumanRequest):
            if record is None or record.kind != KINDS[type(request)] or not has_shape(record):
                return None
            return record if isinstance(request, ModelRequest) or _still_fits(request, record) else None
        try:
            return super().find(request)
        except JournalMismatch:
            return None


class FollowedJournal(ShadowJournal):
    """The records of a stored run, without its replies: those come from another model. A tool that is called with the
    same arguments again gives the same result again."""

    def __init__(self, recording: Recording, replies: Mapping[str, EffectRecord], dropped: Iterable[str] = ()) -> None:
        records = [record for record in recording.records if record.kind != "model"]
        super().__init__(replace(recording, records=records), lambda load: None, dropped)
        self._replies = replies
        self._results = {
            (record.kind, record.request): record for record in self._left.values() if record.kind in ("tool", "load")
        }

    def find(self, request: Recorded) -> EffectRecord | None:
        if isinstance(request, ModelRequest):
            record = self._replies.get(request.path)
        else:
            record = super().find(request)
            if record is None and not isinstance(request, WorkCheck):
                record = self._results.get((KINDS[type(request)], hashed_request(request)[0]))
        if record is None:
            return None
        self._records[request.path] = replace(record, path=request.path)
        return record


class Shadow(Struct, frozen=True):
    """An edited document, walked with the records of a stored run, and the journal that tells how these were used."""

    replay: Replay
    journal: ShadowJournal


async def shadow(
    begin: Begin,
    recording: Recording,
    progress: Callable[[], Progress],
    read: ReadText = lambda load: None,
    *,
    pure_work: int = PURE_WORK,
) -> Shadow:
    """Walk an edited document, started by `begin`. `progress` makes a listener for each try. Raises `LimitReached` as
    a replay does."""
    return await _walked(begin, lambda gone: ShadowJournal(recording, read, gone), progress, recording.stops, pure_work)


async def follow(
    begin: Begin,
    recording: Recording,
    replies: Mapping[str, EffectRecord],
    progress: Callable[[], Progress],
    *,
    pure_work: int = PURE_WORK,
) -> Shadow:
    """Walk a document as far as new replies of a model lead, with everything else from the records of a run."""
    return await _walked(
        begin, lambda gone: FollowedJournal(recording, replies, gone), progress, recording.stops, pure_work
    )


async def _walked(
    begin: Begin,
    opened: Callable[[Iterable[str]], ShadowJournal],
    progress: Callable[[], Progress],
    stops: frozenset[str],
    pure_work: int,
) -> Shadow:
    dropped: set[str] = set()
    while True:
        journal = opened(dropped)
        try:
            walked = await replay(
                begin, (), progress(), lambda boundary: boundary.label in stops, pure_work=pure_work, journal=journal
            )
        except JournalMismatch as error:
            # A fan was ended by a child that does not fail any more.
            dropped.add(journal.taken[error.path])
            continue
        return Shadow(walked, journal)
