"""Concurrency of one drive: its branches, their slots in fans, and the moment when no branch can move any more.

A branch that waits for a person returns its slot, and so does a branch all of whose children wait. When the root is
suspended, the whole run can only wait.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

if TYPE_CHECKING:
    from quire.engine.driver.journal import Ledger
    from quire.engine.records import Answer, Question
    from quire.engine.requests import Outcome, Walk


class Branch:
    """One running walk in the tree of concurrent walks.

    `active` is the number of runnable parts of this subtree: the branch itself while it moves, and each child that has
    something moving. At 0 the branch is suspended: it returns its fan slot and notifies its parent. `live` becomes true
    with its first effect that is performed in this drive rather than replayed.
    """

    __slots__ = ("active", "live", "moving", "on_rest", "parent", "slots")

    def __init__(self, parent: Branch | None = None, slots: Slots | None = None) -> None:
        self.parent = parent
        self.slots = slots
        self.active = 0
        self.moving = False
        self.live = False
        self.on_rest: Callable[[], None] | None = None

    def start(self) -> None:
        """Begin to move; the slot has been taken already."""
        self.moving = True
        self.up()

    def rest(self) -> None:
        if self.moving:
            self.moving = False
            self.down()

    async def wake(self) -> None:
        """Move again, once there is room for this branch in every fan that it is part of."""
        await self._up_with_slots()
        self.moving = True

    def up(self) -> None:
        self.active += 1
        if self.active == 1 and self.parent:
            self.parent.up()

    def down(self) -> None:
        self.active -= 1
        if self.active > 0:
            return
        if self.slots:
            self.slots.give_back()  # may start a sibling, so that the parent stays active
        if self.on_rest:
            self.on_rest()
        if self.parent:
            self.parent.down()

    async def _up_with_slots(self) -> None:
        if self.active == 0:
            if self.parent:
                await self.parent._up_with_slots()
            if self.slots:
                await self._take_slot(self.slots)
            if self.active > 0:  # a sibling woke this branch while it waited
                if self.slots:
                    self.slots.give_back()
                if self.parent:
                    self.parent.down()
        self.active += 1

    async def _take_slot(self, slots: Slots) -> None:
        """Take a slot in the fan.

        If the branch is cancelled in the queue, its ancestors, which already count as moving, are suspended again.
        """
        try:
            await slots.take()
        except asyncio.CancelledError:
            if self.parent:
                self.parent.down()
            raise

    def within(self, ancestor: Branch) -> bool:
        branch: Branch | None = self
        while branch and branch is not ancestor:
            branch = branch.parent
        return branch is not None

    def mark_live(self) -> None:
        branch: Branch | None = self
        while branch and not branch.live:
            branch.live = True
            branch = branch.parent


class Slots:
    """The slots of one fan. A freed slot goes to a branch that woke up, else to the next child."""

    def __init__(self, limit: int, start_next: Callable[[], bool]) -> None:
        self.free = max(1, limit)
        self._start_next = start_next
        self._waiting: deque[asyncio.Future[None]] = deque()

    def give_back(self) -> None:
        while self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                future.set_result(None)
                return
        self.free += 1
        self.fill()

    def fill(self) -> None:
        while self.free > 0:
            self.free -= 1
            if not self._start_next():
                self.free += 1
                return

    async def take(self) -> None:
        if self.free > 0:
            self.free -= 1
            return
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        try:
            await future
        except asyncio.CancelledError:
            if not future.cancelled():  # the slot was given to this branch in the same turn in which it was cancelled
                self.give_back()
            raise


class FanInProgress:
    """A running fan: starts children as there is room and collects their outcomes in order."""

    def __init__(
        self, parent: Branch, children: Iterator[Walk], limit: int, start: Callable[[Walk, Branch, int], None]
    ) -> None:
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._parent = parent
        self._children = children
        self._start = start
        self._slots = Slots(limit, self._draw)
        self.failed: tuple[str, ...] = ()
        self.ended_by: int | None = None
        self._outcomes: dict[int, Outcome] = {}
        self._drawn = 0
        self._exhausted = False

    def begin(self) -> None:
        """Start the children; from here on they move and the parent rests."""
        self._slots.fill()
        if self._exhausted and not self._drawn:
            self.done.set_result(None)
        else:
            self._parent.rest()

    def finished(self, child: Branch, number: int, outcome: Outcome) -> None:
        self._outcomes[number] = outcome
        self._parent.up()  # held while the freed slot may start another child
        child.rest()
        if self._exhausted and len(self._outcomes) == self._drawn and not self.done.done():
            self._parent.moving = True
            self.done.set_result(None)
        else:
            self._parent.down()

    def _end_late(self) -> None:
        """End the fan if all of its children have finished already.

        A child keeps its slot while something that it spawned is still counted, and then only the slot tells that it
        was the last one.
        """
        if self._drawn and len(self._outcomes) == self._drawn:
            self._parent.start()
            self.done.set_result(None)

    def fail(self, error: BaseException, number: int) -> None:
        """End the fan early; the parent moves again and stops the remaining children."""
        if not self.done.done():
            self.ended_by = number
            self._parent.start()
            self.done.set_exception(error)

    def outcomes(self) -> list[Outcome]:
        return [self._outcomes[number] for number in range(self._drawn)]

    def _draw(self) -> bool:
        if self._exhausted or self.done.done():
            return False
        walk = next(self._children, None)
        if walk is None:
            self._exhausted = True
            self._end_late()
            return False
        child = Branch(self._parent, self._slots)
        child.start()
        self._start(walk, child, self._drawn)
        self._drawn += 1
        return True


T = TypeVar("T")


class _Waiting(Struct):
    """A branch that waits; `question` is None if it rests until the end of the drive."""

    branch: Branch
    question: Question | None
    answered: asyncio.Future[Answer]


class WaitingBranches:
    """The branches of one drive that wait for an answer.

    `waking` counts the branches that were woken and do not move yet: while it is above 0, a run whose branches all rest
    still continues.
    """

    def __init__(self, ledger: Ledger) -> None:
        self.waking = 0
        self._ledger = ledger
        self._waiting: dict[str, _Waiting] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    async def until_answered(self, path: str, question: Question | None, branch: Branch) -> Answer:
        answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[path] = _Waiting(branch, question, answered)
        return await self.until(answered, branch)

    @contextlib.contextmanager
    def expecting(self, question: Question, branch: Branch) -> Iterator[asyncio.Future[Answer]]:
        """Expect an answer from elsewhere while the branch asks a person who is present and does not rest."""
        answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        waiting = self._waiting[question.path] = _Waiting(branch, question, answered)
        try:
            yield answered
            # Not when the branch is stopped: then the code that stops it takes the question back.
            if self._waiting.get(question.path) is waiting:
                del self._waiting[question.path]
        finally:
            if answered.done():
                self.waking -= 1
            answered.cancel()

    async def until(self, woken: asyncio.Future[T], branch: Branch) -> T:
        """Rest until `wake` is called with that future and there is room for the branch again."""
        branch.rest()
        try:
            value = await woken
            await branch.wake()
        finally:
            if not woken.cancelled():  # otherwise it was stopped before it was woken
                self.waking -= 1
        return value

    def wake(self, woken: asyncio.Future[T], value: T) -> None:
        if not woken.done():
            self.waking += 1
            woken.set_result(value)

    def first_expiry(self) -> float | None:
        """Return when the first of the open questions expires; None if none of them does."""
        questions = (waiting.question for waiting in self._waiting.values())
        return min(
            (question.expires_at for question in questions if question and question.expires_at is not None),
            default=None,
        )

    async def take_answers(self) -> bool:
        """Hand answers that came in to the branches that wait for them; return True if there was one."""
        taken = False
        for answer in await self._ledger.store.answers(self._ledger.lease.run):
            waiting = self._waiting.get(answer.path)
            if waiting is None or waiting.question is None or waiting.answered.done():
                continue  # no branch waits for it, or the branch is being stopped
            if waiting.question.hash == answer.hash:
                del self._waiting[answer.path]
                self.wake(waiting.answered, answer)
                taken = True
        return taken

    def withdraw_below(self, branch: Branch, *, itself: bool) -> None:
        """Take back the questions of the branches under this one, and with `itself` its own."""
        for path, waiting in list(self._waiting.items()):
            if (itself or waiting.branch is not branch) and waiting.branch.within(branch):
                del self._waiting[path]
                self._ledger.withdraw(path)

    async def withdraw_all(self) -> None:
        """Take every question back because the run has ended."""
        self._waiting.clear()
        await self.withdraw_stale()

    async def withdraw_stale(self) -> None:
        """Take back questions and answers that no branch waits for: a question of an earlier drive may not be asked
        again.

        An answer to such a question would otherwise keep the run from ever parking.
        """
        store, run = self._ledger.store, self._ledger.lease.run
        paths = [question.path for question in await store.questions(run)] + [
            answer.path for answer in await store.answers(run)
        ]
        for path in paths:
            if path not in self._waiting:
                self._ledger.withdraw(path)
