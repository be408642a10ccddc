"""Branches that rest: until a person answers, until they are woken, or for the rest of the drive."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

if TYPE_CHECKING:
    from quire.engine.driver.branches import Branch
    from quire.engine.driver.journal import Ledger
    from quire.engine.records import Answer, Question

T = TypeVar("T")


class _Waiting(Struct):
    """A branch that waits; `question` is None if it rests until the end of the drive."""

    branch: Branch
    question: Question | None
    answered: asyncio.Future[Answer]


class WaitingBranches:
    """The branches of one drive that wait for an answer.

    `waking` counts the branches that were woken and do not move yet: while it is above 0, a run whose branches all rest
    still goes on.
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
            given = await woken
            await branch.wake()
        finally:
            if not woken.cancelled():  # otherwise it was stopped before it was woken
                self.waking -= 1
        return given

    def wake(self, woken: asyncio.Future[T], given: T) -> None:
        if not woken.done():
            self.waking += 1
            woken.set_result(given)

    def first_expiry(self) -> float | None:
        """Return when the first of the open questions expires; None if none of them does."""
        asked = (waiting.question for waiting in self._waiting.values())
        return min((one.expires_at for one in asked if one and one.expires_at is not None), default=None)

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
        asked = [one.path for one in await store.questions(run)] + [one.path for one in await store.answers(run)]
        for path in asked:
            if path not in self._waiting:
                self._ledger.withdraw(path)
